//go:build !unit

package kafka_test

import (
	"fmt"
	"net"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	toxiproxy "github.com/Shopify/toxiproxy/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/test/rig"
)

func TestS77DefaultsSpeakToKafka4(t *testing.T) {
	t.Parallel()
	server := rig.Kafka(t)
	topic := server.Topic(t, 3)
	for _, version := range []string{"", "2.1.0", "4.1.0"} {
		client := open(t, kafka.Config{Brokers: server.Brokers, Version: version})
		require.NoError(t, client.Reachable(t.Context()), version)
		info, err := client.Topic(t.Context(), topic)
		require.NoError(t, err, version)
		assert.True(t, info.Settings, version)
		assert.Equal(t, 1_048_588, info.MaxMessageBytes, version)
		_, _, err = client.Probe(t.Context(), record(topic, "a", 0))
		require.NoError(t, err, version)
		p, got := producer(t, client)
		send(t, p, record(topic, "a", 1), 1)
		require.NoError(t, got.waitFor(t, 1)[0].Err, version)
		ids, complete, err := client.TailMsgIDs(t.Context(), nil, time.Now().Add(-time.Minute), []string{topic}, noLimit)
		require.NoError(t, err, version)
		assert.True(t, complete, version)
		assert.Equal(t, 2, ids.Len(), version)
	}
}

// The largest record that the relay lets through must not be one that the broker refuses, and small records on both
// sides of a refused one go through.
func TestS66TheLargestRecordGoesThrough(t *testing.T) {
	t.Parallel()
	server := rig.Kafka(t)
	topic := server.Topic(t, 1) + "_limited"
	const limit = 10_000
	server.CreateTopic(t, topic, 1, map[string]string{"max.message.bytes": strconv.Itoa(limit)})
	client := openOn(t, server.Brokers)
	exact := record(topic, "a", 0)
	exact.Value = make([]byte, limit-exact.Size()+len(exact.Value))
	require.Equal(t, limit, exact.Size())
	_, _, err := client.Probe(t.Context(), exact)
	require.NoError(t, err)

	p, got := producer(t, client)
	send(t, p, exact, "exact")
	over := record(topic, "a", 1)
	over.Value = make([]byte, 60_000)
	send(t, p, over, "over") // the relay would not: it knows the limit
	for i := range 2000 {
		send(t, p, record(topic, "a", i), "small")
	}
	for _, r := range got.waitFor(t, 2002) {
		if r.Token == "over" {
			assert.Equal(t, retry.Never, kafka.Classify(r.Err), "%v", r.Err)
			continue
		}
		require.NoError(t, r.Err, r.Token)
	}
	_, _, err = client.Probe(t.Context(), over)
	assert.Equal(t, retry.Never, kafka.Classify(err), "%v", err)
}

// cutter puts a proxy before a broker of a cluster that announces the proxy's address.
func cutter(t *testing.T) (server *rig.KafkaServer, cut func()) {
	t.Helper()
	port := freePort(t)
	server = rig.Kafka(t, rig.KafkaConfig(map[string]string{"advertised.listeners": "PLAINTEXT://127.0.0.1:" + port}))
	proxies := toxiproxy.NewServer(toxiproxy.NewMetricsContainer(nil), zerolog.Nop())
	proxy := toxiproxy.NewProxy(proxies, "kafka", "127.0.0.1:"+port, server.Brokers[0])
	require.NoError(t, proxy.Start())
	t.Cleanup(proxy.Stop)
	return server, func() {
		proxy.Stop()
		require.NoError(t, proxy.Start())
	}
}

func freePort(t *testing.T) string {
	t.Helper()
	var config net.ListenConfig
	listener, err := config.Listen(t.Context(), "tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer func() { require.NoError(t, listener.Close()) }()
	_, port, err := net.SplitHostPort(listener.Addr().String())
	require.NoError(t, err)
	return port
}

func TestS69CutConnectionsKeepOrderAndCountOnce(t *testing.T) {
	t.Parallel()
	server, cut := cutter(t)
	createTopic(t, server.Brokers, "orders", 4, nil)
	p, got := producer(t, openOn(t, server.Brokers))
	halt := stream(t, p, "orders")
	for range 20 {
		n := got.count()
		got.waitFor(t, n+200)
		cut()
	}
	requireOrder(t, server.Brokers, "orders", got.waitFor(t, halt()))
}

// S44: one broker is frozen, and with it a topic. The others flow all the while.
func TestS44FrozenBrokerHoldsUpItsTopicsOnly(t *testing.T) {
	t.Parallel()
	server := rig.Kafka(t, rig.KafkaBrokers(2))
	place(t, server.Brokers, "fast", 0)
	place(t, server.Brokers, "frozen", 1)
	var slowest atomic.Int64
	got := &results{}
	p, err := openOn(t, server.Brokers).NewProducer(func(r kafka.Result) {
		if sent, ok := r.Token.(time.Time); ok {
			slowest.Store(max(slowest.Load(), int64(time.Since(sent))))
		}
		got.add(r)
	})
	require.NoError(t, err)
	send(t, p, record("fast", "a", 0), nil)
	send(t, p, record("frozen", "a", 0), nil)
	got.waitFor(t, 2)
	server.Broker(t, 1).Pause(t)
	pace := time.NewTicker(2 * time.Millisecond)
	defer pace.Stop()
	const n = 10_000 // 20 seconds, and several times what sarama holds of one topic
	for i := range n {
		<-pace.C
		send(t, p, record("fast", "a", i), time.Now())
		send(t, p, record("frozen", "a", i), nil)
	}
	for _, r := range got.waitFor(t, n+2)[2:] {
		require.NoError(t, r.Err)
		require.NotNil(t, r.Token, "the frozen broker has answered")
	}
	t.Logf("the slowest ack of the other topic took %s", time.Duration(slowest.Load()))
	assert.Less(t, time.Duration(slowest.Load()), 5*time.Second)
	server.Broker(t, 1).Resume(t)
	for _, r := range got.waitFor(t, 2*n+2) {
		require.NoError(t, r.Err)
	}
	require.NoError(t, p.Close(t.Context()))
}

// place creates a topic of one partition on one broker.
func place(t *testing.T, brokers []string, name string, broker int) {
	t.Helper()
	nodes, ok := ask(t, brokers, kmsg.NewPtrMetadataRequest()).(*kmsg.MetadataResponse)
	require.True(t, ok)
	node := int32(-1)
	for _, n := range nodes.Brokers {
		if net.JoinHostPort(n.Host, strconv.Itoa(int(n.Port))) == brokers[broker] {
			node = n.NodeID
		}
	}
	require.GreaterOrEqual(t, node, int32(0))
	req := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, -1, -1
	topic.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{node}}}
	req.Topics, req.TimeoutMillis = append(req.Topics, topic), 30_000
	resp, ok := ask(t, brokers, req).(*kmsg.CreateTopicsResponse)
	require.True(t, ok)
	require.Zero(t, resp.Topics[0].ErrorCode, "%v", resp.Topics[0].ErrorMessage)
}

// createTopic is rig's without the wait, which would go past the proxy.
func createTopic(t *testing.T, brokers []string, name string, partitions int32, configs map[string]string) {
	t.Helper()
	req := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, partitions, 1
	for key, value := range configs {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = key, &value
		topic.Configs = append(topic.Configs, config)
	}
	req.Topics, req.TimeoutMillis = append(req.Topics, topic), 30_000
	resp, ok := ask(t, brokers, req).(*kmsg.CreateTopicsResponse)
	require.True(t, ok)
	require.Zero(t, resp.Topics[0].ErrorCode)
}

// S71 and S44: replicas that are missing, and a topic whose broker is frozen, hold up their own records only.
func TestS71MissingReplicasHoldUpTheirTopicOnly(t *testing.T) {
	t.Parallel()
	server := rig.Kafka(t, rig.KafkaBrokers(3))
	server.CreateTopic(t, "strict", 2, map[string]string{"min.insync.replicas": "3"})
	server.CreateTopic(t, "easy", 2, map[string]string{"min.insync.replicas": "1"})
	client := openOn(t, server.Brokers)
	p, got := producer(t, client)
	send(t, p, record("strict", "a", 0), "strict")
	send(t, p, record("easy", "a", 0), "easy")
	got.waitFor(t, 2)
	server.Broker(t, 2).Kill(t)
	require.Eventually(t, func() bool {
		_, _, err := client.Probe(t.Context(), record("strict", "probe", 0))
		return err != nil && kafka.Classify(err) == retry.Unreachable
	}, time.Minute, 200*time.Millisecond, "the replica is out of sync after a while")
	before := got.count()
	const n = 3000
	for i := range n {
		send(t, p, record("strict", "a", i), "strict")
		send(t, p, record("easy", string(rune('a'+i%5)), i), "easy")
	}
	easy := 0
	for _, r := range got.waitFor(t, before+n)[before:] {
		require.NoError(t, r.Err)
		if r.Token == "easy" {
			easy++
		}
	}
	assert.GreaterOrEqual(t, easy, n/2)
	server.Broker(t, 2).Start(t)
	for _, r := range got.waitFor(t, before+2*n)[before:] {
		require.NoError(t, r.Err)
	}
}

func TestS72UnknownTopic(t *testing.T) {
	t.Parallel()
	server := rig.Kafka(t)
	name := server.Topic(t, 1) + "_later"
	client := openOn(t, server.Brokers)
	start := time.Now()
	topic, err := client.Topic(t.Context(), name)
	require.NoError(t, err)
	assert.False(t, topic.Exists)
	assert.Less(t, time.Since(start), 3*time.Second)
	_, _, err = client.Probe(t.Context(), record(name, "a", 0))
	assert.Equal(t, retry.Refused, kafka.Classify(err), "%v", err)
	require.NoError(t, client.CreateTopic(t.Context(), name))
	t.Cleanup(func() { server.DeleteTopic(t, name) })
	require.Eventually(t, func() bool {
		_, _, err := client.Probe(t.Context(), record(name, "a", 0))
		return err == nil
	}, waitFor, 100*time.Millisecond)
	err = client.CreateTopic(t.Context(), strings.Repeat("x", 300))
	assert.Equal(t, retry.Never, kafka.Classify(err), "%v", err)
}

func TestS76RecordsCarryThePresent(t *testing.T) {
	t.Parallel()
	server := rig.Kafka(t)
	name := server.Topic(t, 1) + "_timely"
	server.CreateTopic(t, name, 1, map[string]string{"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "60000"})
	client := openOn(t, server.Brokers)
	_, _, err := client.Probe(t.Context(), record(name, "a", 0))
	require.NoError(t, err)
	p, got := producer(t, client)
	for i := range 100 {
		send(t, p, record(name, "a", i), i)
	}
	for _, r := range got.waitFor(t, 100) {
		require.NoError(t, r.Err)
	}
	for _, r := range consume(t, server.Brokers, name, 101) {
		assert.WithinDuration(t, time.Now(), r.Timestamp, time.Minute)
	}
}

func TestCodecsOnRealKafka(t *testing.T) {
	t.Parallel()
	server := rig.Kafka(t)
	for _, codec := range []string{"gzip", "snappy", "lz4", "zstd"} {
		topic := server.Topic(t, 2)
		client := open(t, kafka.Config{Brokers: server.Brokers, Compression: codec})
		p, got := producer(t, client)
		for i := range 500 {
			send(t, p, record(topic, fmt.Sprint("k", i%5), i), i)
		}
		requireOrder(t, server.Brokers, topic, got.waitFor(t, 500))
		ids, complete, err := client.TailMsgIDs(t.Context(), nil, time.Now().Add(-time.Minute), []string{topic}, noLimit)
		require.NoError(t, err)
		assert.True(t, complete)
		assert.Equal(t, 500, ids.Len())
	}
}
