//go:build !unit

package stories

import (
	"fmt"
	"net"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestAcksOutOfOrder: one topic's broker is frozen, the other topic's acks come. A relay that is killed then has saved
// nothing beyond what is not acked.
func TestAcksOutOfOrder(t *testing.T) {
	t.Parallel()
	kafka := rig.Kafka(t, rig.KafkaBrokers(2))
	s := harness.NewScene(t, harness.Cast{Kafka: kafka, Silent: true})
	fast, frozen := s.Source+"-fast", s.Source+"-frozen"
	place(t, kafka, fast, 0)
	place(t, kafka, frozen, 1)
	s.Consume(fast, frozen)
	s.Set("checkpoint.interval", "100ms")
	relay := s.Start()
	post := func(prefix string, n int) {
		letters := harness.Numbered(prefix, n)
		for i := range letters {
			letters[i].Topic = []string{fast, frozen}[i%2]
		}
		s.Post(s.DB, letters...)
	}
	post("before", 10) // both topics are open
	s.Seen(10, 15*time.Second)
	s.CaughtUp(15 * time.Second)
	kafka.Broker(t, 1).Pause(t)
	post("frozen", 200)
	eventually(t, 15*time.Second, "the other topic's rows marked", func() bool {
		return s.Number("SELECT COUNT(*) FROM "+s.Tables[0]+" WHERE status = 1 AND topic = ?", fast) == 105
	})
	relay.Kill()
	s.Look()
	kafka.Broker(t, 1).Resume(t)
	s.Start()
	v := s.Exact(30*time.Second, oracle.Options{Duplicates: true})
	s.ByStream(v)
}

// place creates a topic of one partition on one broker.
func place(t *testing.T, kafka *rig.KafkaServer, name string, broker int) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(kafka.Brokers...))
	require.NoError(t, err)
	defer client.Close()
	nodes, err := kmsg.NewPtrMetadataRequest().RequestWith(t.Context(), client)
	require.NoError(t, err)
	node := int32(-1)
	for _, n := range nodes.Brokers {
		if net.JoinHostPort(n.Host, strconv.Itoa(int(n.Port))) == kafka.Brokers[broker] {
			node = n.NodeID
		}
	}
	require.GreaterOrEqual(t, node, int32(0))
	req := kmsg.NewPtrCreateTopicsRequest()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, -1, -1
	topic.ReplicaAssignment = []kmsg.CreateTopicsRequestTopicReplicaAssignment{{Partition: 0, Replicas: []int32{node}}}
	req.Topics, req.TimeoutMillis = append(req.Topics, topic), 30_000
	resp, err := req.RequestWith(t.Context(), client)
	require.NoError(t, err)
	require.Zero(t, resp.Topics[0].ErrorCode, "%v", resp.Topics[0].ErrorMessage)
}

// TestStoppedWithNothingAcked: Kafka is frozen, rows are read and not acked, and the relay is told to end. It ends in its
// time and has saved nothing beyond what is settled.
func TestStoppedWithNothingAcked(t *testing.T) {
	t.Parallel()
	kafka := rig.Kafka(t, rig.Own())
	for name, sql := range map[string]*rig.Server{"MySQL": rig.MySQL(t), "MariaDB": rig.MariaDB(t)} {
		s := harness.NewScene(t, harness.Cast{SQL: sql, Kafka: kafka, Silent: true})
		s.Set("shutdown.timeout", "4s")
		relay := s.Start()
		s.Post(s.DB, harness.Numbered("before", 10)...)
		s.Seen(10, 15*time.Second)
		s.CaughtUp(15 * time.Second)
		kafka.Pause(t)
		s.Post(s.DB, harness.Numbered("frozen", 300)...)
		harness.Eventually(t, 15*time.Second, "all read", func() (bool, string) {
			n := metric(relay, "in_flight_messages")
			return n == 300, fmt.Sprint(n)
		})
		code, took := relay.Stop()
		t.Logf("%s: ended with %d after %s", name, code, took)
		assert.Zero(t, code)
		assert.Less(t, took, 5*time.Second)
		s.Look()
		kafka.Resume(t)
		s.Start()
		v := s.Exact(30*time.Second, oracle.Options{Duplicates: true})
		s.ByStream(v)
	}
}

// TestEndsWithTheBrokerDead: the broker dies with thousands in flight and the relay is told to end at once.
func TestEndsWithTheBrokerDead(t *testing.T) {
	t.Parallel()
	kafka := rig.Kafka(t, rig.Own())
	s := harness.NewScene(t, harness.Cast{Kafka: kafka, Silent: true})
	s.Set("shutdown.timeout", "3s")
	for round := range 2 {
		relay := s.Start()
		s.Post(s.DB, harness.Letter{ID: fmt.Sprintf("first-%d", round)})
		eventually(t, 20*time.Second, "the topic open", func() bool { return s.Log.Seen(fmt.Sprintf("first-%d", round)) > 0 })
		for part := range 5 {
			s.PostTogether(harness.Numbered(fmt.Sprintf("m-%d-%d", round, part), 500)...)
		}
		kafka.Kill(t)
		code, took := relay.Stop()
		t.Logf("ended with %d after %s", code, took)
		assert.Zero(t, code)
		assert.Less(t, took, 4*time.Second)
		s.Look()
		kafka.Start(t)
	}
	s.Start()
	s.Exact(60*time.Second, oracle.Options{Duplicates: true})
}
