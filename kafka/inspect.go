package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/IBM/sarama"

	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
)

// Inspect checks what the relay needs of Kafka, and the topics that it is known to write to.
func (c *Client) Inspect(ctx context.Context, topics []string) (diagnose.Report, error) {
	var findings diagnose.Report
	if err := c.Reachable(ctx); err != nil {
		means := fmt.Sprintf("no broker of %v answers: %v", c.cfg.Brokers, explain(err))
		findings.Fail("kafka reachable", means, repairOf(err))
		return findings, nil
	}
	findings.OK("kafka reachable", "a broker answers")
	for _, name := range topics {
		if err := ctx.Err(); err != nil {
			return findings, fmt.Errorf("inspect kafka: %w", err)
		}
		c.inspectTopic(ctx, &findings, name)
	}
	return findings, nil
}

func repairOf(err error) string {
	if errors.Is(err, sarama.ErrSASLAuthenticationFailed) || errors.Is(err, sarama.ErrUnsupportedSASLMechanism) {
		return "check kafka.sasl: mechanism, user and password"
	}
	return "start the brokers, or correct kafka.brokers; where they want TLS or a login, set kafka.tls and kafka.sasl"
}

func (c *Client) inspectTopic(ctx context.Context, findings *diagnose.Report, name string) {
	check := "topic " + name
	if err := router.CheckTopicName(name); err != nil {
		findings.Fail(check, fmt.Sprintf("it can't exist: %v; every row for it will be a dead letter", err),
			"correct the rows' topic, or add a route in router.routes")
		return
	}
	topic, err := c.Topic(ctx, name)
	switch {
	case err != nil:
		findings.Fail(check, err.Error(), c.grant("--topic "+name, "Write", "Describe", "DescribeConfigs"))
	case !topic.Exists && c.cfg.CreateTopics:
		findings.OK(check, "it does not exist and will be created with the first message")
	case !topic.Exists:
		findings.Fail(check, "it does not exist: its messages wait until it does", c.create(name))
	default:
		c.inspectSettings(findings, check, topic)
	}
}

func (c *Client) inspectSettings(findings *diagnose.Report, check string, topic Topic) {
	before := len(findings.Findings)
	configs := c.tool("kafka-configs.sh", "--alter --entity-type topics --entity-name "+topic.Name+" --add-config ")
	if len(topic.Leaderless) > 0 {
		findings.Fail(check, fmt.Sprintf("%d of %d partitions have no leader: the topic's messages wait",
			len(topic.Leaderless), topic.Partitions), "start the missing brokers")
	}
	if topic.MinInSync == 1 {
		findings.Warn(check,
			"min.insync.replicas is 1: a message that only one broker has counts as sent, and is lost with that broker",
			configs+"min.insync.replicas=2")
	}
	if topic.MinInSync > topic.Replicas {
		findings.Fail(check, fmt.Sprintf("min.insync.replicas is %d and the topic has %d replicas: it can't be written",
			topic.MinInSync, topic.Replicas), configs+fmt.Sprintf("min.insync.replicas=%d", topic.Replicas))
	}
	if most := c.cfg.maxMessageBytes(); topic.Settings && topic.MaxMessageBytes < most {
		findings.Warn(check, fmt.Sprintf(
			"it takes messages of %d bytes and the relay is configured for %d: larger ones will be dead letters",
			topic.MaxMessageBytes, most), configs+fmt.Sprintf("max.message.bytes=%d", most))
	}
	if len(findings.Findings) == before {
		findings.OK(check, fmt.Sprintf("%d partitions, %d replicas", topic.Partitions, topic.Replicas))
	}
}

// tool returns a command line of one of Kafka's own tools.
func (c *Client) tool(name, args string) string {
	return name + " --bootstrap-server " + c.cfg.Brokers[0] + " " + args
}

func (c *Client) create(topic string) string {
	return c.tool("kafka-topics.sh", "--create --topic "+topic)
}

// grant returns the command that gives the relay's user rights on something.
func (c *Client) grant(on string, operations ...string) string {
	return c.tool("kafka-acls.sh", "--add --allow-principal User:"+cmp.Or(c.cfg.SASL.User, "ANONYMOUS")+
		" --operation "+strings.Join(operations, " --operation ")+" "+on)
}

// InspectReports checks that the topic of reports can be read, and that the group's offsets can be kept.
func (c *Client) InspectReports(ctx context.Context, name, group string) (findings diagnose.Report) {
	check, grant := "topic of reports "+name, c.grant("--topic "+name+" --group "+group, "Read", "Describe")
	topic, err := c.Topic(ctx, name)
	switch {
	case err != nil:
		findings.Fail(check, err.Error(), grant)
		return findings
	case !topic.Exists:
		findings.Fail(check, "it does not exist: no report that consumers send by Kafka arrives", c.create(name))
		return findings
	}
	reader, err := c.NewReportReader(name, group)
	if err != nil {
		findings.Fail(check, err.Error(), repairOf(err))
		return findings
	}
	err = firstFetch(ctx, reader)
	if closing := reader.Close(); err == nil {
		err = closing
	}
	if err != nil {
		findings.Fail(check, "it can't be read as group "+group+": "+err.Error(), grant)
		return findings
	}
	findings.OK(check, fmt.Sprintf("%d partitions, it can be read as group %s", topic.Partitions, group))
	return findings
}

// coordinatorTime is what a cluster may take to make the coordinator of its first group.
const coordinatorTime = 10 * time.Second

// firstFetch tries until the topic can be read. What it fetches is not committed, so the relay reads it again.
func firstFetch(ctx context.Context, reader *ReportReader) error {
	ctx, cancel := context.WithTimeout(ctx, coordinatorTime)
	defer cancel()
	backoff := retry.Doubling(100*time.Millisecond, time.Second).Attempts()
	for {
		_, _, err := reader.Fetch(ctx)
		if err == nil || Classify(err) != retry.Unreachable || retry.Wait(ctx, backoff.Next()) != nil {
			return err
		}
	}
}
