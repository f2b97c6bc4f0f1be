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

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// rivals are two relays of one source. Whatever happens to the lock, the worst that may come of it are some copies.
type rivals struct {
	*harness.Scene
	t       *testing.T
	lease   time.Duration
	leader  *harness.Relay
	standby *harness.Relay
	finish  func() workload.Stats
}

// terms are what a story of rivals is told with: short in every test run, as configured by default in make bench.
type terms struct {
	lease time.Duration
	// slack is what a failover may take beyond the lease.
	slack time.Duration
}

// brief is for machines that are busy with other tests, and for the race detector.
var brief = terms{lease: 3 * time.Second, slack: 20 * time.Second}

// rivalRate is how many rows a second are written, rivalFlight how many may be unacked.
const rivalRate, rivalFlight = 300, 500

// newRivals starts both and writes. wire is the leader's way to the primary, "" for the direct one.
func newRivals(t *testing.T, c harness.Cast, lock, wire string, in terms) *rivals {
	t.Helper()
	c.Silent = true
	r := &rivals{Scene: harness.NewScene(t, c), t: t, lease: in.lease}
	r.Set("leader.lock", lock, "leader.lease", in.lease.String(), "checkpoint.interval", "100ms", "limits.in_flight", rivalFlight)
	direct := r.Settings
	if wire != "" {
		r.Set("source.primary.address", wire, "source.replica.address", r.Cast.SQL.Addr)
	}
	r.leader = r.Start()
	r.Settings = direct
	r.standby = r.Launch()
	r.standby.WaitReady(30 * time.Second)
	r.finish = r.Writing(func(cfg *workload.Config) { cfg.Rate = rivalRate })
	r.Committed(rivalRate)
	r.CaughtUp(15 * time.Second)
	return r
}

// taken waits until the standby publishes, and returns how long that took since.
func (r *rivals) taken(since time.Time, limit time.Duration) time.Duration {
	r.t.Helper()
	published(r.t, r.standby, limit)
	return time.Since(since)
}

// published waits until a relay that has not led before has published something.
func published(t *testing.T, r *harness.Relay, limit time.Duration) {
	t.Helper()
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for metric(r, "messages_published_total") <= 0 {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("the standby has published nothing within %s", limit)
		}
	}
}

// deposed waits until the old leader stands by, and judges: nothing lost, nothing out of order, the checkpoint never back or
// ahead, and no more copies than were written while there could be two, or were in the old one's hands.
func (r *rivals) deposed(both time.Duration) *oracle.Verdict {
	r.t.Helper()
	eventually(r.t, 20*time.Second, "the old leader stands by", func() bool { return !r.leader.Leads() && ready(r.leader) == 200 })
	return r.judged(both)
}

// judged is deposed where either may lead.
func (r *rivals) judged(both time.Duration) *oracle.Verdict {
	r.t.Helper()
	epoch := r.Epoch()
	r.Committed(rivalRate)
	r.finish()
	v := r.Exact(30*time.Second, oracle.Options{Duplicates: true})
	assert.LessOrEqual(r.t, v.Duplicates, rivalFlight+int(rivalRate*both.Seconds()), "copies")
	assert.Equal(r.t, epoch, r.Epoch(), "only one has saved since")
	r.CaughtUp(20 * time.Second)
	return v
}

// lockConnection returns the id of the session that holds the leader's lock, and the port that it comes from.
func lockConnection(t *testing.T, s *harness.Scene) (id, port int) {
	t.Helper()
	id = s.Number("SELECT IS_USED_LOCK(?)", "outbox-relay:"+s.Source)
	require.NotZero(t, id, "somebody holds the lock")
	for _, session := range rig.Sessions(t, s.DB) {
		if session.ID != id {
			continue
		}
		_, text, err := net.SplitHostPort(session.Host)
		require.NoError(t, err)
		port, err = strconv.Atoi(text)
		require.NoError(t, err)
	}
	require.NotZero(t, port, "the session that holds the lock is listed")
	return id, port
}

// TestLockSessionKilled: an operator kills the connection that holds the lock. The standby leads at once; the old leader
// notices by its next ping or by its next save, which is fenced.
func TestLockSessionKilled(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) { lockSessionKilled(t, start(t), brief) })
}

func lockSessionKilled(t *testing.T, server *rig.Server, in terms) {
	r := newRivals(t, harness.Cast{SQL: server}, "mysql", "", in)
	id, _ := lockConnection(t, r.Scene)
	r.Exec(r.DB, fmt.Sprintf("KILL %d", id))
	took := r.taken(time.Now(), in.lease+in.slack)
	v := r.deposed(in.lease)
	t.Logf("the standby publishes %s after the kill, %d copies", took, v.Duplicates)
}

// TestLockConnectionHalfOpen: the connection that holds the lock carries nothing any more, and neither end is told. Everything
// else works. The leader stops before the server gives the lock away.
func TestLockConnectionHalfOpen(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) { lockHalfOpen(t, start(t), brief) })
}

func lockHalfOpen(t *testing.T, server *rig.Server, in terms) {
	tap := harness.NewTap(t, server.Addr)
	r := newRivals(t, harness.Cast{SQL: server}, "mysql", tap.Addr, in)
	_, port := lockConnection(t, r.Scene)
	epoch := r.Epoch()
	tap.Swallow(port)
	cut := time.Now()
	// Either gets it: the old leader asks again over a new connection.
	eventually(t, in.lease+in.slack, "somebody leads anew", func() bool { return r.Epoch() > epoch })
	took := time.Since(cut)
	r.leader.WaitLog(5*time.Second, "leadership ends")
	v := r.judged(0)
	t.Logf("a relay leads %s after the connection went silent, %d copies", took, v.Duplicates)
}

// TestPrimaryHalfOpen: the leader's whole way to the primary is silent, while the binlog, which it reads from elsewhere, still
// comes.
func TestPrimaryHalfOpen(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) { primaryHalfOpen(t, start(t), brief) })
}

func primaryHalfOpen(t *testing.T, server *rig.Server, in terms) {
	w := newWire(t, server.Addr)
	r := newRivals(t, harness.Cast{SQL: server}, "mysql", w.Addr, in)
	w.drop("upstream", "downstream")
	took := r.taken(time.Now(), in.lease+in.slack)
	r.leader.WaitLog(20*time.Second, "leadership ends")
	assert.False(t, r.leader.Leads())
	w.heal("upstream", "downstream")
	v := r.deposed(0)
	t.Logf("the standby publishes %s after the link went silent, %d copies", took, v.Duplicates)
}

// TestRedisLeaseDeleted: an operator deletes the lease's key until the standby is the first to take it.
func TestRedisLeaseDeleted(t *testing.T) {
	t.Parallel()
	redisLeaseDeleted(t, brief)
}

func redisLeaseDeleted(t *testing.T, in terms) {
	r := newRivals(t, harness.Cast{}, "redis", "", in)
	client := redisClient(t, r.Scene)
	key := fmt.Sprint(r.Settings["redis.prefix"]) + r.Source + ":leader"
	holder := client.Get(t.Context(), key).Val()
	require.NotEmpty(t, holder)
	for deadline := time.Now().Add(30 * time.Second); client.Get(t.Context(), key).Val() == holder; {
		require.True(t, time.Now().Before(deadline), "the standby never takes the lease")
		require.EqualValues(t, 1, client.Del(t.Context(), key).Val())
		eventually(t, in.lease+in.slack, "somebody takes the lease", func() bool { return client.Exists(t.Context(), key).Val() == 1 })
	}
	took := r.taken(time.Now(), in.lease+in.slack)
	v := r.deposed(in.lease)
	t.Logf("the standby publishes %s after it took the lease, %d copies", took, v.Duplicates)
}

// TestRedisLeaseOverwritten: somebody writes something else over the lease, without an end. Nobody leads until it has been
// there for a lease, then one does.
func TestRedisLeaseOverwritten(t *testing.T) {
	t.Parallel()
	redisLeaseOverwritten(t, brief)
}

func redisLeaseOverwritten(t *testing.T, in terms) {
	r := newRivals(t, harness.Cast{}, "redis", "", in)
	key := fmt.Sprint(r.Settings["redis.prefix"]) + r.Source + ":leader"
	before, begun := r.Epoch(), time.Now()
	redisCommand(t, r.Scene, "SET", key, "by hand")
	eventually(t, in.lease+in.slack, "one of them leads again", func() bool { return r.Epoch() > before })
	took := time.Since(begun)
	assert.LessOrEqual(t, took, in.lease+in.slack)
	if r.leader.Leads() {
		r.leader, r.standby = r.standby, r.leader
	}
	v := r.deposed(in.lease)
	t.Logf("one leads again %s after the lease was overwritten, %d copies", took, v.Duplicates)
}
