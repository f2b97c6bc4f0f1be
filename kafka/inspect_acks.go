package kafka

import (
	"context"
	"fmt"
	"time"

	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/retry"
)

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
