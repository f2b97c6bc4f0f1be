//go:build !unit

package stories

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// stagedScene is a scene whose table has body_ref, with a staging topic.
func stagedScene(t *testing.T, cast harness.Cast) (s *harness.Scene, staging string, stage outbox.Stager) {
	t.Helper()
	s = harness.NewScene(t, cast)
	for _, table := range s.Tables {
		s.Exec(s.DB, "ALTER TABLE "+table+" ADD COLUMN body_ref VARCHAR(320) NULL")
	}
	staging = s.Cast.Kafka.Topic(t, 3)
	stage, closeIt, err := harness.OpenStager(s.Cast.Kafka.Brokers, staging)
	require.NoError(t, err)
	t.Cleanup(closeIt)
	return s, staging, stage
}

// TestStagedBodiesAreDeliveredLikeOthers: half of the bodies stay out of the database, under kills, clean restarts and a topic that
// comes late. The guarantees are the same.
func TestStagedBodiesAreDeliveredLikeOthers(t *testing.T) {
	for name, server := range both {
		t.Run(name, func(t *testing.T) {
			s, _, stage := stagedScene(t, harness.Cast{SQL: server(t), Topics: 2, Missing: 1})
			s.Set("retry.backoff", []string{"1s"})
			relay := s.Start()
			finish := s.Writing(func(cfg *workload.Config) {
				cfg.Rate, cfg.MaxTxn, cfg.Staged, cfg.Stage = 800, 20, 0.5, stage
			})
			for round := range 2 {
				s.Committed(200 + rand.IntN(300))
				if round%2 == 0 {
					relay.Kill()
				} else {
					code, _ := relay.Stop()
					require.Zero(t, code)
				}
				relay = s.Start()
			}
			s.Cast.Kafka.CreateTopic(t, s.Missing[0], 3, nil)
			s.Committed(200)
			finish()
			v := s.Exact(60*time.Second, oracle.Options{Duplicates: true, Retries: true})
			assert.LessOrEqual(t, v.Duplicates, v.Committed/100)
			assert.NotZero(t, s.Number("SELECT COUNT(*) FROM "+s.Tables[0]+" WHERE body_ref IS NOT NULL AND msg_content = ''"))
		})
	}
}

// TestStagedBodyIsGone: what retention has removed makes dead letters with that reason; the rest of the key goes on.
func TestStagedBodyIsGone(t *testing.T) {
	s, staging, stage := stagedScene(t, harness.Cast{Topics: 1})
	s.Start()
	insert := func(id, ref, content string, fate oracle.Fate) {
		t.Helper()
		s.Exec(s.DB, "INSERT INTO "+s.Tables[0]+` (msg_id, topic, msg_content, body_ref, status, create_time, update_time, msg_key)
			VALUES (?, ?, '', ?, 0, NOW(), NOW(), 'k')`, id, s.Topics[0], ref)
		s.Enter(oracle.Committed, time.Now(), harness.Letter{ID: id, Key: "k", Content: content, Fate: fate})
	}
	good, err := stage(t.Context(), "good", []byte(`{"good":true}`))
	require.NoError(t, err)
	insert("gone", outbox.BodyRef{Topic: staging, Partition: good.Partition, Offset: good.Offset + 1000}.String(), "x", oracle.Die)
	insert("nonsense", "nowhere", "x", oracle.Die)
	insert("another", good.String(), "x", oracle.Die) // the record's msg_id is good's
	insert("good", good.String(), `{"good":true}`, oracle.Deliver)
	s.Exact(20*time.Second, oracle.Options{})
	for id, reason := range map[string]string{"gone": "gone", "nonsense": "topic/partition/offset", "another": "another msg_id"} {
		var text string
		require.NoError(t, s.DB.QueryRowContext(t.Context(), "SELECT last_error FROM "+s.Tables[0]+" WHERE msg_id = ?", id).Scan(&text))
		assert.Contains(t, text, reason)
	}
}

// TestStagingTopicAway: while the staging topic can't be read, the messages that need it wait with their topic, in order; other topics
// flow on.
func TestStagingTopicAway(t *testing.T) {
	kafka := rig.Kafka(t, rig.KafkaACLs())
	s, staging, stage := stagedScene(t, harness.Cast{Kafka: kafka, Topics: 2})
	s.Set("retry.backoff", []string{"1s"})
	relay := s.Start()
	s.Post(s.DB, harness.Letter{ID: "first", Key: "k"}, harness.Letter{ID: "other", Key: "k", Topic: s.Topics[1]})
	s.Seen(2, 20*time.Second)
	kafka.DenyRead(t, staging)
	for i := range 20 {
		id := fmt.Sprintf("staged-%d", i)
		content := fmt.Sprintf(`{"id":%q}`, id)
		if i%2 == 1 { // every other one has its body with it, and must wait for those before it
			s.Post(s.DB, harness.Letter{ID: id, Key: "k"})
			continue
		}
		ref, err := stage(t.Context(), id, []byte(content))
		require.NoError(t, err)
		s.Exec(s.DB, "INSERT INTO "+s.Tables[0]+` (msg_id, topic, msg_content, body_ref, status, create_time, update_time, msg_key)
			VALUES (?, ?, '', ?, 0, NOW(), NOW(), 'k')`, id, s.Topics[0], ref.String())
		s.Enter(oracle.Committed, time.Now(), harness.Letter{ID: id, Key: "k", Content: content})
	}
	s.Post(s.DB, harness.Letter{ID: "flows", Key: "k", Topic: s.Topics[1]})
	s.Seen(3, 20*time.Second)
	relay.WaitLog(20*time.Second, "topic closed")
	relay.WaitLog(20*time.Second, "the right to Read it")
	kafka.AllowRead(t, staging)
	s.Exact(60*time.Second, oracle.Options{Retries: true})
}
