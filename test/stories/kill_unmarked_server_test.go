//go:build !unit

package stories

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestRestartTellsWhatKafkaHolds kills a relay that has published 300 messages and marked none of them, since another
// session holds their rows. What the next one does about them depends on whether it may read the topic.
func TestRestartTellsWhatKafkaHolds(t *testing.T) {
	kafka := rig.Kafka(t, rig.KafkaACLs())
	for name, c := range map[string]struct {
		deny     bool
		settings []any
		copies   int
		says     string
	}{
		"Readable":    {says: "replay window passed"},
		"NoRight":     {deny: true, copies: 300, says: "could not read all that was published before the restart"},
		"SwitchedOff": {settings: []any{"kafka.dedupe_on_restart", "off"}, copies: 300, says: "kafka.dedupe_on_restart is off"},
	} {
		t.Run(name, func(t *testing.T) {
			s := harness.NewScene(t, harness.Cast{Kafka: kafka, Topics: 1})
			s.Set(c.settings...)
			relay := s.Start()
			s.Post(s.DB, harness.Letter{ID: "first", Key: "k"})
			s.Exact(20*time.Second, oracle.Options{})
			code, _ := relay.Stop()
			require.Zero(t, code)

			s.PostTogether(harness.Numbered("held", 300)...)
			tx, err := s.DB.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = tx.ExecContext(t.Context(), "SELECT id FROM "+s.Tables[0]+" WHERE status = 0 FOR UPDATE")
			require.NoError(t, err)
			relay = s.Start()
			s.Seen(301, 20*time.Second)
			relay.Kill()
			hangUp(t, s)
			require.NoError(t, tx.Rollback())

			if c.deny {
				kafka.DenyRead(t, s.Topics[0])
			}
			relay = s.Start()
			s.Post(s.DB, harness.Letter{ID: "last", Key: "k"})
			harness.Eventually(t, 30*time.Second, "everything marked", func() (bool, string) {
				return s.Number("SELECT COUNT(*) FROM "+s.Tables[0]+" WHERE status <> 1") == 0, ""
			})
			if c.deny {
				kafka.AllowRead(t, s.Topics[0])
			}
			v := s.Exact(20*time.Second, oracle.Options{Duplicates: true})
			assert.Equal(t, c.copies, v.Duplicates, "what was not marked")
			assert.Contains(t, relay.Log(), c.says)
		})
	}
}

// hangUp ends what the server still does for the dead relay: its last UPDATE would wait there for the rows and mark them.
func hangUp(t *testing.T, s *harness.Scene) {
	t.Helper()
	harness.Eventually(t, 10*time.Second, "the dead relay's sessions ended", func() (bool, string) {
		for _, session := range rig.Sessions(t, s.DB) {
			if session.User == s.User {
				_, err := s.DB.ExecContext(t.Context(), fmt.Sprintf("KILL %d", session.ID))
				return false, fmt.Sprint(err)
			}
		}
		return true, ""
	})
}
