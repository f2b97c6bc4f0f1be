//go:build !unit

package rig_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/outbox-relay/test/rig"
)

func kafkaClient(t *testing.T, server *rig.KafkaServer, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	opts = append(opts, kgo.SeedBrokers(server.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.ProducerBatchCompression(kgo.NoCompression()))
	client, err := kgo.NewClient(opts...)
	require.NoError(t, err)
	t.Cleanup(client.Close)
	return client
}

func produce(ctx context.Context, client *kgo.Client, topic string, value []byte) error {
	return client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: value}).FirstErr()
}

func TestSharedKafkaIsOneAndRefusesToStop(t *testing.T) {
	t.Parallel()
	server := rig.Kafka(t)
	assert.Equal(t, server.Brokers, rig.Kafka(t).Brokers)
	topic := server.Topic(t, 3)
	require.NoError(t, produce(t.Context(), kafkaClient(t, server), topic, []byte("x")))
	err := produce(t.Context(), kafkaClient(t, server, kgo.UnknownTopicRetries(0)), topic+"_missing", []byte("x"))
	require.ErrorIs(t, err, kerr.UnknownTopicOrPartition, "topics are not created by themselves")
	assert.True(t, fails(t, func(t testing.TB) { server.Stop(t) }))
}

func TestKafkaKeepsRecordsOverRestartAndKill(t *testing.T) {
	t.Parallel()
	server := rig.Kafka(t, rig.KafkaConfig(map[string]string{"message.max.bytes": "5000"}))
	server.CreateTopic(t, "kept", 1, map[string]string{"retention.ms": "600000"})
	client := kafkaClient(t, server)
	require.ErrorIs(t, produce(t.Context(), client, "kept", make([]byte, 20_000)), kerr.MessageTooLarge)

	require.NoError(t, produce(t.Context(), client, "kept", []byte("a")))
	server.Restart(t)
	require.NoError(t, produce(t.Context(), client, "kept", []byte("b")))
	server.Kill(t)
	server.Start(t)
	require.NoError(t, produce(t.Context(), client, "kept", []byte("c")))

	server.Pause(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	require.Error(t, produce(ctx, kafkaClient(t, server), "kept", []byte("lost")), "a paused broker answers nothing")
	server.Resume(t)
	require.NoError(t, produce(t.Context(), client, "kept", []byte("d")))

	reader := kafkaClient(t, server, kgo.ConsumeTopics("kept"))
	var got []string
	for len(got) < 4 {
		fetches := reader.PollFetches(t.Context())
		require.NoError(t, fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	assert.Equal(t, []string{"a", "b", "c", "d"}, got)
}

func TestKafkaOfThreeBrokersLosesReplicas(t *testing.T) {
	t.Parallel()
	server := rig.Kafka(t, rig.KafkaBrokers(3))
	require.Len(t, server.Brokers, 3)
	server.CreateTopic(t, "replicated", 1, map[string]string{"min.insync.replicas": "3"})
	client := kafkaClient(t, server, kgo.RecordRetries(0))
	require.NoError(t, produce(t.Context(), client, "replicated", []byte("a")))
	server.Broker(t, 2).Stop(t)
	require.Eventually(t, func() bool {
		err := produce(t.Context(), client, "replicated", []byte("b"))
		return err != nil && kerr.IsRetriable(err)
	}, 30*time.Second, 50*time.Millisecond, "two of three replicas are not enough")
	server.Broker(t, 2).Start(t)
	require.Eventually(t, func() bool {
		return produce(t.Context(), client, "replicated", []byte("c")) == nil
	}, 30*time.Second, 50*time.Millisecond, "the third is back")
}
