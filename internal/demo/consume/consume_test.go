package consume_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"example.com/outbox-relay/internal/demo/consume"
	"example.com/outbox-relay/internal/oracle"
)

// start runs a consumer until the test ends, and a producer beside it.
func start(t *testing.T, topics ...string) (*oracle.Log, *kgo.Client) {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(3), kfake.AllowAutoTopicCreation())
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	log := oracle.NewLog()
	consumer, err := consume.Open(consume.Config{Brokers: cluster.ListenAddrs(), Topics: topics}, log)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1) // size 1: the consumer must be able to leave
	go func() { ended <- consumer.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		assert.NoError(t, <-ended)
	})
	producer, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.AllowAutoTopicCreation())
	require.NoError(t, err)
	t.Cleanup(producer.Close)
	return log, producer
}

func send(t *testing.T, producer *kgo.Client, topic, msgID, body string) {
	t.Helper()
	record := &kgo.Record{
		Topic: topic, Key: []byte("k"), Value: []byte(body), Headers: []kgo.RecordHeader{{Key: "msg_id", Value: []byte(msgID)}},
	}
	require.NoError(t, producer.ProduceSync(t.Context(), record).FirstErr())
}

func TestConsumerReadsEverythingIncludingCopies(t *testing.T) {
	t.Parallel()
	log, producer := start(t, "a", "b")
	send(t, producer, "a", "m1", "one")
	send(t, producer, "b", "m2", "two")
	send(t, producer, "a", "m1", "one")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, log.Until(ctx, func() bool { return log.Len() == 3 }))
	assert.Equal(t, 2, log.Distinct())
	for _, r := range log.Records() {
		assert.Equal(t, "k", r.Key)
		assert.Equal(t, r.MsgID, r.Headers["msg_id"])
		assert.WithinDuration(t, time.Now(), r.Seen, 10*time.Second)
		if r.MsgID == "m2" {
			assert.Equal(t, "b", r.Topic)
			assert.Equal(t, oracle.HashOf([]byte("two")), r.Value)
		}
	}
}

func TestConsumerWaitsForATopicThatIsCreatedLater(t *testing.T) {
	t.Parallel()
	log, producer := start(t, "early", "late")
	send(t, producer, "early", "m1", "one")
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	require.NoError(t, log.Wait(ctx, 1))
	send(t, producer, "late", "m2", "two")
	require.NoError(t, log.Wait(ctx, 2))
}

func TestOpenRefusesABrokenAddress(t *testing.T) {
	t.Parallel()
	_, err := consume.Open(consume.Config{Brokers: []string{"127.0.0.1:port"}}, oracle.NewLog())
	assert.Error(t, err)
}

func TestConsumerKeepsOnlyItsPrefix(t *testing.T) {
	t.Parallel()
	cluster, err := kfake.NewCluster(
		kfake.NumBrokers(1), kfake.SeedTopics(1, "a"), kfake.EnableSASL(), kfake.Superuser("SCRAM-SHA-512", "relay", "secret"))
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	login := consume.Login{Mechanism: "scram-sha-512", User: "relay", Password: "secret"}
	log := oracle.NewLog()
	consumer, err := consume.Open(consume.Config{
		Brokers: cluster.ListenAddrs(), Topics: []string{"a"}, Prefix: "run2-", Login: login,
	}, log)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1) // size 1: the consumer must be able to leave
	go func() { ended <- consumer.Run(ctx) }()
	producer, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...),
		kgo.SASL(scram.Auth{User: "relay", Pass: "secret"}.AsSha512Mechanism()))
	require.NoError(t, err)
	t.Cleanup(producer.Close)
	for _, id := range []string{"run1-1", "run2-1", "run1-2", "run2-2"} {
		send(t, producer, "a", id, "body")
	}
	waiting, stop := context.WithTimeout(t.Context(), 10*time.Second)
	defer stop()
	require.NoError(t, log.Wait(waiting, 2))
	assert.Equal(t, map[string]int{"run2-1": 1, "run2-2": 1}, log.IDs())
	cancel()
	require.NoError(t, <-ended)
}

func TestOpenRefusesAnUnknownMechanism(t *testing.T) {
	t.Parallel()
	_, err := consume.Open(consume.Config{Brokers: []string{"127.0.0.1:1"}, Login: consume.Login{Mechanism: "kerberos"}}, oracle.NewLog())
	assert.ErrorContains(t, err, `"kerberos"`)
}
