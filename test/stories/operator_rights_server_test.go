//go:build !unit

package stories

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
)

// TestAPrivilegeIsMissing takes one right at a time away, before the start and while the relay runs. What is missing is
// named, nothing is sent again and again, and all is well once it is granted.
func TestAPrivilegeIsMissing(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		for right, where := range map[string]string{"REPLICATION SLAVE": "*.*", "REPLICATION CLIENT": "*.*", "SELECT": "", "UPDATE": ""} {
			t.Run(right, func(t *testing.T) {
				t.Parallel()
				s := harness.NewScene(t, harness.Cast{SQL: start(t)})
				if where == "" {
					where = s.Database + ".*"
				}
				account := "'" + s.User + "'@'%'"
				revoke := func() { s.Exec(s.DB, "REVOKE "+right+" ON "+where+" FROM "+account) }
				grant := func() { s.Exec(s.DB, "GRANT "+right+" ON "+where+" TO "+account) }
				revoke()
				relay := s.Launch()
				s.Post(s.DB, harness.Numbered("start", 20)...)
				relay.WaitLog(15*time.Second, right)
				grant()
				select {
				case <-relay.Exited():
					assert.NotZero(t, relay.ExitCode())
					relay = s.Start()
				default:
				}
				s.Seen(20, 45*time.Second)
				eventually(t, 45*time.Second, "all marked", func() bool { return s.Statuses()[1] == 20 })

				revoke()
				s.Post(s.DB, harness.Numbered("running", 20)...)
				pass(t.Context(), 3*time.Second)
				grant()
				s.Exact(45*time.Second, oracle.Options{Duplicates: true})
				for id, n := range s.Log.IDs() {
					assert.LessOrEqual(t, n, 2, "%s was sent %d times", id, n)
				}
				assert.Empty(t, exited(relay))
			})
		}
	})
}

// exited tells that a relay has ended.
func exited(r *harness.Relay) string {
	select {
	case <-r.Exited():
		return fmt.Sprintf("ended with %d", r.ExitCode())
	default:
		return ""
	}
}
