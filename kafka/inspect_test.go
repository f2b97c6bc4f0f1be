package kafka_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/kafka"
)

func find(t *testing.T, report diagnose.Report, text string) diagnose.Finding {
	t.Helper()
	for _, f := range report.Findings {
		if strings.Contains(f.Means, text) {
			return f
		}
	}
	t.Fatalf("nothing about %q in %+v", text, report.Findings)
	return diagnose.Finding{}
}

func TestInspect(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.NumBrokers(3))
	for name, configs := range map[string]map[string]string{
		"good":      {"min.insync.replicas": "2", "max.message.bytes": "2000000"},
		"single":    {"min.insync.replicas": "1", "max.message.bytes": "2000000"},
		"toomany":   {"min.insync.replicas": "9", "max.message.bytes": "2000000"},
		"small":     {"min.insync.replicas": "2", "max.message.bytes": "1000"},
		"forbidden": nil,
	} {
		require.NoError(t, cluster.CreateTopic(name, 2, configs))
	}
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "forbidden", Err: kerr.TopicAuthorizationFailed, Count: -1})
	client := openOn(t, cluster.ListenAddrs())
	for _, c := range []struct {
		topic, text string
		level       diagnose.Level
		repair      string
	}{
		{"good", "partitions", diagnose.OK, ""},
		{"single", "min.insync.replicas is 1", diagnose.Warning, "kafka-configs.sh"},
		{"toomany", "can't be written", diagnose.Failure, "kafka-configs.sh"},
		{"small", "larger ones will be dead letters", diagnose.Warning, "max.message.bytes=1048576"},
		{"missing", "does not exist", diagnose.Failure, "kafka-topics.sh --bootstrap-server"},
		{"a b", "can't exist", diagnose.Failure, "router.routes"},
		{"forbidden", "not authorized", diagnose.Failure, "kafka-acls.sh"},
	} {
		t.Run(c.topic, func(t *testing.T) {
			t.Parallel()
			report, err := client.Inspect(t.Context(), []string{c.topic})
			require.NoError(t, err)
			assert.Equal(t, diagnose.OK, find(t, report, "a broker answers").Level)
			finding := find(t, report, c.text)
			assert.Equal(t, "topic "+c.topic, finding.Check)
			assert.Equal(t, c.level, finding.Level)
			assert.Equal(t, c.level, report.Worst())
			assert.Contains(t, finding.Repair, c.repair)
		})
	}
}

func TestInspectUnreachable(t *testing.T) {
	t.Parallel()
	report, err := openOn(t, []string{"127.0.0.1:1"}).Inspect(t.Context(), []string{"orders"})
	require.NoError(t, err)
	require.Len(t, report.Findings, 1, "nothing else can be told")
	assert.Equal(t, diagnose.Failure, report.Worst())
	assert.Contains(t, report.Findings[0].Repair, "kafka.brokers")
}

func TestInspectWillCreate(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	report, err := open(t, kafka.Config{Brokers: cluster.ListenAddrs(), CreateTopics: true}).Inspect(t.Context(), []string{"missing"})
	require.NoError(t, err)
	assert.Equal(t, diagnose.OK, find(t, report, "will be created").Level)
}
