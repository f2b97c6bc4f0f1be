//go:build !unit

package stories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestOneOversizeMessage: the topic takes 10 kB. What is larger, be it larger than the relay's own limit or only than the
// topic's, dies with its reason; the rest flows.
func TestOneOversizeMessage(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		for name, limit := range map[string]string{"Below": "8KiB", "Above": "1MiB"} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s := harness.NewScene(t, harness.Cast{SQL: start(t)})
				small := s.Topics[0] + "-small"
				s.Cast.Kafka.CreateTopic(t, small, 3, map[string]string{"max.message.bytes": "10000"})
				s.Consume(small)
				s.Set("kafka.max_message_bytes", limit)
				s.Start()
				for i := range 30 {
					l := harness.Letter{ID: fmt.Sprintf("m-%d", i), Topic: small, Key: "k", Content: fmt.Sprintf(`{"n":%d}`, i)}
					switch i {
					case 10:
						l.Content, l.Fate = strings.Repeat("x", 60_000), oracle.Die
					case 20: // only with its key and its headers it is too large
						l.Content, l.Fate = strings.Repeat("x", 9990), oracle.Die
					}
					s.Post(s.DB, l)
				}
				v := s.Exact(20*time.Second, oracle.Options{})
				assert.Equal(t, 2, v.Dead)
				assert.Less(t, v.Latency.Max, 5*time.Second, "the others are not held up")
				rows, err := workload.Rows(t.Context(), s.DB, s.Tables...)
				require.NoError(t, err)
				for _, row := range rows {
					if row.MsgID == "m-10" || row.MsgID == "m-20" {
						assert.NotEmpty(t, row.LastError, row.MsgID)
					}
				}
			})
		}
	})
}

// TestNotEnoughReplicas: a topic wants two replicas and one is away. It spends no retries, others flow, and it goes on by
// itself when the replica is back.
func TestNotEnoughReplicas(t *testing.T) {
	t.Parallel()
	kafka := rig.Kafka(t, rig.KafkaBrokers(2))
	s := harness.NewScene(t, harness.Cast{SQL: rig.MariaDB(t), Kafka: kafka, Topics: 1})
	strict := s.Topics[0] + "-strict"
	kafka.CreateTopic(t, strict, 3, map[string]string{"min.insync.replicas": "2"})
	s.Consume(strict)
	s.Start()
	post := func(prefix string, n int) {
		for i := range n {
			id := fmt.Sprintf("%s-%d", prefix, i)
			s.Post(s.DB, harness.Letter{ID: "easy-" + id, Key: "k"}, harness.Letter{ID: "strict-" + id, Key: "k", Topic: strict})
		}
	}
	post("before", 5)
	s.Seen(10, 20*time.Second)
	// A broker that has not heard of the new topic yet may have refused its first message.
	spent := s.Number("SELECT SUM(retry_count) FROM " + s.Tables[0])
	kafka.Broker(t, 1).Stop(t)
	post("during", 100)
	s.Seen(110, 30*time.Second)
	pass(t.Context(), 3*time.Second) // time to try a few times
	assert.Equal(t, 110, s.Log.Distinct(), "none of the strict topic's")
	kafka.Broker(t, 1).Start(t)
	post("after", 5)
	s.Exact(60*time.Second, oracle.Options{Duplicates: true, Retries: true})
	assert.Equal(t, spent, s.Number("SELECT SUM(retry_count) FROM "+s.Tables[0]), "the outage spends no retries")
}

// TestTimestampsRefused: the topic refuses records that are dated a minute off. Rows of two days ago and of two hours
// ahead go out all the same.
func TestTimestampsRefused(t *testing.T) {
	inModes(t, func(t *testing.T, start starter, silent bool) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Silent: silent, Topics: 1})
		strict := s.Topics[0] + "-strict"
		s.Cast.Kafka.CreateTopic(t, strict, 1, map[string]string{
			"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "60000",
		})
		s.Consume(strict)
		s.Start()
		for name, off := range map[string]time.Duration{"past": -48 * time.Hour, "future": 2 * time.Hour} {
			session := s.Session(fmt.Sprintf("SET SESSION timestamp = %d", time.Now().Add(off).Unix()))
			for _, l := range harness.Numbered(name, 5) {
				l.Topic = strict
				s.Post(session, l)
			}
		}
		v := s.Exact(20*time.Second, oracle.Options{})
		if silent {
			s.ByStream(v)
		}
		for _, r := range s.Log.Records() {
			assert.WithinDuration(t, time.Now(), r.Timestamp, time.Minute)
			assert.NotEmpty(t, r.Headers["outbox_created"])
		}
	})
}

// TestTopicCreatedAfter15s: messages for a topic that does not exist wait in the table, in order, at the cost of one
// probe; the other topics do not notice. The topic comes while more is being written.
func TestTopicCreatedAfter15s(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Topics: 2, Missing: 1, Patient: true})
		s.Set("retry.backoff", []string{"1s", "2s", "3s"}, "sweep.interval", "1s")
		relay := s.Start()
		begun := time.Now()
		finish := s.Writing(func(cfg *workload.Config) { cfg.Rate = 200 })
		s.Committed(1000)
		harness.Eventually(t, 10*time.Second, "the other topics flow on", func() (bool, string) {
			waiting := s.Number("SELECT COUNT(*) FROM "+s.Tables[0]+" WHERE topic <> ? AND status <> 1 AND create_time < NOW() - INTERVAL 2 SECOND", s.Missing[0])
			return waiting == 0, fmt.Sprint(waiting, " rows of other topics wait")
		})
		pass(t.Context(), 15*time.Second-time.Since(begun))
		tries, most := s.Number("SELECT SUM(retry_count) FROM "+s.Tables[0]), s.Number("SELECT MAX(retry_count) FROM "+s.Tables[0])
		// The stream's probe was the first to commit, which is not the lowest id for certain: ids commit out of order.
		assert.GreaterOrEqual(t, most, tries-3, "only the topic's oldest message is tried and spends retries")
		assert.Less(t, most, 12, "the probe backs off")
		deferred := s.Number("SELECT COUNT(*) FROM "+s.Tables[0]+" WHERE topic = ? AND next_retry_time IS NOT NULL", s.Missing[0])
		s.Cast.Kafka.CreateTopic(t, s.Missing[0], 3, nil)
		s.Committed(1000)
		finish()
		v := s.Exact(60*time.Second, oracle.Options{Retries: true})
		assert.GreaterOrEqual(t, v.Swept, deferred)
		assert.Positive(t, deferred)
		if !strings.Contains(relay.Log(), "probe takes long") { // a slow machine's doing
			for _, r := range s.Log.Records() {
				assert.False(t, r.Topic != s.Missing[0] && r.Headers["outbox_position"] == "sweep", "%s of another topic was swept", r.MsgID)
			}
		}
		s.CaughtUp(12 * time.Second)
	})
}
