//go:build !unit

package stories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestKilledInsideATransaction kills the relay again and again inside one large transaction. No position within it is
// ever saved, neither by place nor by GTID, and nothing of it is lost.
func TestKilledInsideATransaction(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Silent: true, Topics: 1})
		s.Set("checkpoint.interval", "100ms", "limits.in_flight", 200, "limits.unmarked", 200, "limits.mark_batch", 50)
		relay := s.Start()
		s.CaughtUp(15 * time.Second)
		code, _ := relay.Stop()
		require.Zero(t, code)
		s.PostTogether(harness.Numbered("large", 5000)...)
		for _, row := range []int{300, 1500, 2700, 3900} {
			diesInside(t, s, fmt.Sprintf("large-%04d", row), row)
		}
		relay = s.Start()
		v := s.Exact(30*time.Second, oracle.Options{Duplicates: true})
		s.ByStream(v)
		s.CaughtUp(15 * time.Second)
		assert.NotContains(t, relay.Log(), "table map")
	})
}

// TestIdleOutboxOnABusyServer: other tables' commits and new binlog files move the checkpoint, so that purging the old
// ones hurts nobody.
func TestIdleOutboxOnABusyServer(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t, rig.Own()), Silent: true})
		relay := s.Start()
		s.CaughtUp(15 * time.Second)
		first := s.Saved()
		s.Exec(s.DB, "CREATE TABLE "+s.Database+".other (id INT PRIMARY KEY AUTO_INCREMENT, note VARCHAR(64))")
		for range 10 {
			s.Exec(s.DB, "INSERT INTO "+s.Database+".other (note) VALUES ('busy')")
			s.Exec(s.DB, "FLUSH BINARY LOGS")
		}
		s.CaughtUp(15 * time.Second)
		saved := s.Saved()
		assert.NotEqual(t, first.File, saved.File)
		code, _ := relay.Stop()
		assert.Zero(t, code)
		s.Exec(s.DB, "PURGE BINARY LOGS TO '"+saved.File+"'")
		relay = s.Start()
		assert.Contains(t, relay.Log(), `"recovery":"resumed"`)
		s.Post(s.DB, harness.Numbered("late", 5)...)
		v := s.Exact(15*time.Second, oracle.Options{})
		s.ByStream(v)
	})
}

// TestNewFileAfterALargeOne: the place in the new file is smaller than the one in the old file. Nothing in it counts as
// done.
func TestNewFileAfterALargeOne(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t, rig.Own()), Silent: true})
		relay := s.Start()
		s.Exec(s.DB, "CREATE TABLE "+s.Database+".other (id INT PRIMARY KEY AUTO_INCREMENT, note LONGTEXT)")
		for range 10 {
			s.Exec(s.DB, "INSERT INTO "+s.Database+".other (note) VALUES (REPEAT('x', 1000000))")
		}
		s.Post(s.DB, harness.Numbered("old", 5)...)
		s.CaughtUp(15 * time.Second)
		old := s.Saved()
		require.Greater(t, old.Pos, uint64(10_000_000))
		s.Exec(s.DB, "FLUSH BINARY LOGS")
		s.CaughtUp(15 * time.Second)
		assert.Less(t, s.Saved().Pos, uint64(10_000))
		s.Post(s.DB, harness.Numbered("new", 20)...)
		s.Seen(25, 15*time.Second)
		s.CaughtUp(15 * time.Second)
		relay.Kill()
		s.Look()
		s.Post(s.DB, harness.Numbered("down", 20)...)
		s.Start()
		v := s.Exact(15*time.Second, oracle.Options{})
		s.ByStream(v)
	})
}

// TestReplicaThatDoesNotLog: its binlog has nothing of the primary's, however healthy it looks.
func TestReplicaThatDoesNotLog(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		primary := start(t, rig.Own())
		quiet := rig.Args("--log-replica-updates=OFF", "--read-only=ON")
		if primary.Flavor == rig.FlavorMariaDB {
			quiet = rig.Args("--log-slave-updates=0", "--read-only=1")
		}
		s := harness.NewScene(t, harness.Cast{SQL: primary, Replica: primary.Replica(t, quiet)})
		s.Set("source.mode", "stream")
		begun := time.Now()
		relay := s.Launch()
		assert.Equal(t, 3, exits(t, relay, 10*time.Second))
		t.Logf("refused within %s", time.Since(begun).Round(10*time.Millisecond))
		assert.Regexp(t, "log_(replica|slave)_updates", relay.Log())

		s.Set("source.mode", "auto")
		relay = s.Start()
		relay.WaitLog(5*time.Second, "sweeping alone")
		s.Post(s.DB, harness.Numbered("swept", 20)...)
		v := s.Exact(15*time.Second, oracle.Options{})
		assert.Equal(t, 20, v.Swept)
		_, body := relay.Fetch("/readyz?verbose")
		assert.Contains(t, strings.ToLower(body), "sweep")
	})
}
