//go:build !unit

package stories

import (
	"database/sql/driver"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestXAIsDeliveredAtOnce: in every form, and never before it is committed.
func TestXAIsDeliveredAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) { xaForms(t, start, kickedWithin) })
}

func xaForms(t *testing.T, start starter, within time.Duration) {
	t.Helper()
	u := newUnseen(t, harness.Cast{SQL: start(t)}, within, func(s *harness.Scene) {
		s.Set("sweep.interval", "24h", "sweep.grace", "1h") // however long it sleeps
	})
	xid := func(name string) string { return fmt.Sprintf("'%s-%s'", u.Source, name) }
	prepare := func(name string, letters ...harness.Letter) harness.Execer {
		session := u.Session("XA START " + xid(name))
		for i := range letters {
			letters[i].Unlogged = true
			u.Insert(session, letters[i])
		}
		u.Exec(session, "XA END "+xid(name))
		return session
	}
	two := []harness.Letter{{ID: "two-a"}, {ID: "two-b"}}
	session := prepare("two", two...)
	u.Exec(session, "XA PREPARE "+xid("two"))
	u.kicked("xa", func() { u.Exec(session, "XA COMMIT "+xid("two")) }, two...)

	gone, late := []harness.Letter{{ID: "gone"}}, []harness.Letter{{ID: "late"}}
	first, second := prepare("gone", gone...), prepare("late", late...)
	u.Exec(first, "XA PREPARE "+xid("gone"))
	u.Exec(second, "XA PREPARE "+xid("late"))
	for i := range 5 {
		u.Post(u.DB, harness.Letter{ID: fmt.Sprintf("meanwhile-%d", i)})
		u.seen++
		u.Seen(u.seen, 15*time.Second)
	}
	u.Exec(first, "XA ROLLBACK "+xid("gone"))
	u.Enter(oracle.RolledBack, time.Time{}, gone...)
	u.kicked("xa", func() { u.Exec(second, "XA COMMIT "+xid("late")) }, late...)

	onePhase := []harness.Letter{{ID: "one-phase"}}
	third := prepare("one", onePhase...)
	u.Exec(third, "XA COMMIT "+xid("one")+" ONE PHASE")
	u.Enter(oracle.Committed, time.Now(), onePhase...)
	u.seen++
	u.Seen(u.seen, within)
	v := u.Exact(20*time.Second, oracle.Options{})
	// MySQL logs it as XA, MariaDB as an ordinary transaction, which is the stream's.
	assert.Contains(t, []int{3, 4}, v.Swept)
	requireReasons(t, u.relay, map[string]int{"xa": v.Swept})
	assert.InDelta(t, v.Swept-1, metric(u.relay, "stream_skipped_total", "reason", "xa"), 0, "transactions")
}

// TestXAAcrossRestarts: prepared, then the server restarts, or the relay, and only then committed.
func TestXAAcrossRestarts(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		u := newUnseen(t, harness.Cast{SQL: start(t, rig.Own())}, 30*time.Second, nil)
		prepared := func(name string) (string, harness.Letter) {
			xid, l := fmt.Sprintf("'%s'", name), harness.Letter{ID: name, Unlogged: true}
			session := u.Session("XA START " + xid)
			u.Insert(session, l)
			u.Exec(session, "XA END "+xid)
			u.Exec(session, "XA PREPARE "+xid)
			// Only a transaction without its session can be committed by another.
			require.ErrorIs(t, session.Raw(func(any) error { return driver.ErrBadConn }), driver.ErrBadConn)
			return xid, l
		}
		commit := func(xid string) func() {
			return func() {
				harness.Eventually(t, 10*time.Second, "the session gone", func() (bool, string) {
					_, err := u.DB.ExecContext(t.Context(), "XA COMMIT "+xid)
					return err == nil, fmt.Sprint(err)
				})
			}
		}
		xid, l := prepared("server-restarts")
		u.CaughtUp(15 * time.Second)
		u.Cast.SQL.Restart(t)
		eventually(t, 30*time.Second, "connected again", func() bool { return metric(u.relay, "source_connected") == 1 })
		u.kicked("xa", commit(xid), l)
		requireReasons(t, u.relay, map[string]int{"xa": 1})

		xid, l = prepared("relay-restarts")
		u.CaughtUp(30 * time.Second)
		code, _ := u.relay.Stop()
		require.Zero(t, code)
		u.relay = u.Start()
		u.CaughtUp(30 * time.Second)
		u.kicked("xa", commit(xid), l)
		u.Exact(20*time.Second, oracle.Options{})
		requireReasons(t, u.relay, map[string]int{"xa": 1})
	})
}
