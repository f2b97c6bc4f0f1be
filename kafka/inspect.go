package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"

	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
)

// Inspect checks what the relay needs of Kafka, and the topics that it is known to write to.
func (c *Client) Inspect(ctx context.Context, topics []string) (diagnose.Report, error) {
	var report diagnose.Report
	if err := c.Reachable(ctx); err != nil {
		report.Fail("kafka reachable", fmt.Sprintf("no broker of %v answers: %v", c.cfg.Brokers, explain(err)), repairOf(err))
		return report, nil
	}
	report.OK("kafka reachable", "a broker answers")
	for _, name := range topics {
		if err := ctx.Err(); err != nil {
			return report, fmt.Errorf("inspect kafka: %w", err)
		}
		c.inspectTopic(ctx, &report, name)
	}
	return report, nil
}

func repairOf(err error) string {
	if errors.Is(err, sarama.ErrSASLAuthenticationFailed) || errors.Is(err, sarama.ErrUnsupportedSASLMechanism) {
		return "check kafka.sasl: mechanism, user and password"
	}
	return "start the brokers, or correct kafka.brokers; where they want TLS or a login, set kafka.tls and kafka.sasl"
}

func (c *Client) inspectTopic(ctx context.Context, report *diagnose.Report, name string) {
	check := "topic " + name
	if err := router.CheckTopicName(name); err != nil {
		report.Fail(check, fmt.Sprintf("it can't exist: %v; every row for it will be a dead letter", err), "correct the rows' topic, or add a route in router.routes")
		return
	}
	topic, err := c.Topic(ctx, name)
	switch {
	case err != nil:
		report.Fail(check, err.Error(), fmt.Sprintf("kafka-acls.sh --bootstrap-server %s --add --allow-principal User:%s --operation Write --operation Describe --operation DescribeConfigs --topic %s",
			c.cfg.Brokers[0], c.user(), name))
	case !topic.Exists && c.cfg.CreateTopics:
		report.OK(check, "it does not exist and will be created with the first message")
	case !topic.Exists:
		report.Fail(check, "it does not exist: its messages wait until it does", fmt.Sprintf("kafka-topics.sh --bootstrap-server %s --create --topic %s", c.cfg.Brokers[0], name))
	default:
		c.inspectSettings(report, check, topic)
	}
}

func (c *Client) inspectSettings(report *diagnose.Report, check string, topic Topic) {
	healthy := true
	warn := func(means, repair string) {
		report.Warn(check, means, repair)
		healthy = false
	}
	configs := fmt.Sprintf("kafka-configs.sh --bootstrap-server %s --alter --entity-type topics --entity-name %s --add-config ", c.cfg.Brokers[0], topic.Name)
	if len(topic.Leaderless) > 0 {
		report.Fail(check, fmt.Sprintf("%d of %d partitions have no leader: the topic's messages wait", len(topic.Leaderless), topic.Partitions), "start the missing brokers")
		healthy = false
	}
	if topic.MinInSync == 1 {
		warn("min.insync.replicas is 1: a message that only one broker has counts as sent, and is lost with that broker", configs+"min.insync.replicas=2")
	}
	if topic.MinInSync > topic.Replicas {
		report.Fail(check, fmt.Sprintf("min.insync.replicas is %d and the topic has %d replicas: it can't be written", topic.MinInSync, topic.Replicas), configs+fmt.Sprintf("min.insync.replicas=%d", topic.Replicas))
		healthy = false
	}
	if topic.Settings && topic.MaxMessageBytes < c.cfg.maxMessageBytes() {
		warn(fmt.Sprintf("it takes messages of %d bytes and the relay is configured for %d: larger ones will be dead letters", topic.MaxMessageBytes, c.cfg.maxMessageBytes()),
			configs+fmt.Sprintf("max.message.bytes=%d", c.cfg.maxMessageBytes()))
	}
	if healthy {
		report.OK(check, fmt.Sprintf("%d partitions, %d replicas", topic.Partitions, topic.Replicas))
	}
}

func (c *Client) user() string {
	if c.cfg.SASL.User == "" {
		return "ANONYMOUS"
	}
	return c.cfg.SASL.User
}

// InspectReports checks that the topic of reports can be read, and that the group's offsets can be kept.
func (c *Client) InspectReports(ctx context.Context, name, group string) (report diagnose.Report) {
	check := "topic of reports " + name
	topic, err := c.Topic(ctx, name)
	switch {
	case err != nil:
		report.Fail(check, err.Error(), c.grantReports(name, group))
		return report
	case !topic.Exists:
		report.Fail(check, "it does not exist: no report that consumers send by Kafka arrives", fmt.Sprintf("kafka-topics.sh --bootstrap-server %s --create --topic %s", c.cfg.Brokers[0], name))
		return report
	}
	reader, err := c.NewReportReader(name, group)
	if err != nil {
		report.Fail(check, err.Error(), repairOf(err))
		return report
	}
	err = firstFetch(ctx, reader)
	if closing := reader.Close(); err == nil {
		err = closing
	}
	if err != nil {
		report.Fail(check, "it can't be read as group "+group+": "+err.Error(), c.grantReports(name, group))
		return report
	}
	report.OK(check, fmt.Sprintf("%d partitions, it can be read as group %s", topic.Partitions, group))
	return report
}

func (c *Client) grantReports(name, group string) string {
	return fmt.Sprintf("kafka-acls.sh --bootstrap-server %s --add --allow-principal User:%s --operation Read --operation Describe --topic %s --group %s",
		c.cfg.Brokers[0], c.user(), name, group)
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
