//go:build !unit

package stories

import (
	"fmt"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// redisOf returns a client of the scene's Redis, and the key of the checkpoint.
func redisOf(s *recovery) (*redis.Client, string) {
	s.t.Helper()
	return redisClient(s.t, s.Scene), fmt.Sprint(s.Settings["redis.prefix"]) + s.Source + ":checkpoint"
}

// set changes fields of the saved checkpoint behind the relay's back.
func (s *recovery) set(fields ...any) {
	s.t.Helper()
	client, key := redisOf(s)
	require.NoError(s.t, client.HSet(s.t.Context(), key, fields...).Err())
	s.Sampler.Forget()
}

// spoilt are the ways in which a checkpoint can be of no use, and what the relay calls them.
var spoilt = []struct {
	name, kind string
	spoil      func(s *recovery)
}{
	{"key deleted", "lost", func(s *recovery) {
		client, key := redisOf(s)
		require.NoError(s.t, client.Del(s.t.Context(), key).Err())
	}},
	{"another type of key", "broken", func(s *recovery) {
		client, key := redisOf(s)
		require.NoError(s.t, client.Set(s.t.Context(), key, "mine", 0).Err())
	}},
	{"a place that is no number", "broken", func(s *recovery) { s.set("pos", "four") }},
	{"offsets that are no JSON", "broken", func(s *recovery) { s.set("offsets", `{"t":`) }},
	{"another flavor's name", "broken", func(s *recovery) { s.set("flavor", "oracle") }},
	{"GTIDs that are none", "invalid", func(s *recovery) { s.set("gtid", "one-two-three") }},
	{"a place beyond the end", "invalid", func(s *recovery) { s.set("pos", "99999999999") }},
	{"a place inside an event", "invalid", func(s *recovery) { s.set("pos", s.Saved().Pos-7) }},
	{"a file of another name", "moved", func(s *recovery) { s.set("file", "other.000001") }},
	{"a server that nobody knows", "other-server", func(s *recovery) { s.set("server", "9999:99", "gtid", "") }},
}

// TestCheckpointOfNoUse: the relay says so once, begins at the present end (or where the GTIDs say), and the table brings
// what was pending, although the sweeper looks for nothing by itself: all of it was given to it. What was sent is not sent
// again.
func TestCheckpointOfNoUse(t *testing.T) {
	t.Parallel()
	for name, start := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newRecovery(t, harness.Cast{SQL: start(t), Silent: true})
			for i, row := range spoilt {
				prefix := fmt.Sprintf("row%d", i)
				s.settle(prefix+"-sent", 10)
				row.spoil(s)
				s.Sampler.Forget()
				before := s.Log.Distinct()
				s.Post(s.DB, harness.Numbered(prefix+"-pending", 5)...)
				r := s.Start()
				found := s.recovered(r, row.kind)
				if row.kind == "moved" {
					assert.GreaterOrEqual(t, found.ReadAgain, int64(5), row.name)
				} else {
					assert.EqualValues(t, 5, found.LeftToSweeper, "%s: %s", row.name, found)
				}
				s.Seen(before+5, patience)
				s.Post(s.DB, harness.Numbered(prefix+"-new", 5)...)
				s.Seen(before+10, patience)
				s.CaughtUp(patience)
				s.stop(r)
			}
			s.Exact(patience, oracle.Options{})
			shown := harness.Command(t, s.Settings, "checkpoint", "history", "-o", "json")
			for _, kind := range []string{"lost", "broken", "invalid", "moved", "other-server"} {
				assert.Contains(t, shown.Stdout, "recovered: "+kind)
			}
		})
	}
}

// TestNoCheckpoint: the first start of a source whose table has rows already, of which some are sent.
func TestNoCheckpoint(t *testing.T) {
	t.Parallel()
	for name, start := range both {
		for _, place := range []string{"now", "earliest"} {
			t.Run(name+"/"+place, func(t *testing.T) {
				t.Parallel()
				// All of a binlog that others share would be read: it has none but this test's.
				var opts []rig.Option
				if place == "earliest" {
					opts = append(opts, rig.Own())
				}
				s := newRecovery(t, harness.Cast{SQL: start(t, opts...)})
				s.Set("checkpoint.start", place)
				s.Post(s.DB, harness.Numbered("pending", 20)...)
				r := s.Start()
				found := s.recovered(r, "none")
				assert.False(t, found.Skipped, "nothing was saved, so nothing is skipped")
				if place == "earliest" {
					assert.EqualValues(t, 20, found.ReadAgain)
				}
				s.Post(s.DB, harness.Numbered("new", 5)...)
				s.Exact(patience, oracle.Options{})
				s.CaughtUp(patience)
			})
		}
	}
}

// TestFlushAll: Redis is emptied, while the relay is down and while it runs. What is pending arrives, what was sent is not sent
// again, whichever place the relay is told to begin at. A running one saves again and goes on.
func TestFlushAll(t *testing.T) {
	t.Parallel()
	for name, start := range both {
		for _, place := range []string{"now", "earliest"} {
			t.Run(name+"/"+place, func(t *testing.T) {
				t.Parallel()
				s := newRecovery(t, harness.Cast{SQL: start(t, rig.Own()), Redis: rig.Redis(t, rig.Own())})
				client, _ := redisOf(s)
				flush := func() {
					require.NoError(t, client.FlushAll(t.Context()).Err())
					s.Sampler.Forget()
				}
				r := s.Start()
				for file := range 3 {
					s.PostTogether(harness.Numbered(fmt.Sprintf("sent-%d", file), 500)...)
					s.Exec(s.DB, "FLUSH BINARY LOGS")
				}
				s.Seen(1500, patience)
				s.CaughtUp(patience)
				s.stop(r)
				s.Cast.Redis.Restart(t)
				flush()
				s.Post(s.DB, harness.Numbered("down", 10)...)
				s.Set("checkpoint.start", place)
				r = s.Start()
				found := s.recovered(r, "none")
				if place == "now" {
					assert.EqualValues(t, 10, found.LeftToSweeper)
				} else {
					assert.EqualValues(t, 10, found.ReadAgain-found.AlreadySent, found)
				}
				s.Seen(1510, patience)
				s.CaughtUp(patience)
				flush()
				s.Post(s.DB, harness.Numbered("running", 10)...)
				s.Seen(1520, patience)
				s.CaughtUp(patience)
				r.Kill()
				s.Post(s.DB, harness.Numbered("after", 10)...)
				r = s.Start()
				s.recovered(r, "resumed")
				s.Exact(patience, oracle.Options{})
			})
		}
	}
}

// TestCheckpointOfANewerVersion: the relay ends with a text that says what to do, and touches nothing.
func TestCheckpointOfANewerVersion(t *testing.T) {
	t.Parallel()
	s := newRecovery(t, harness.Cast{Silent: true})
	s.settle("sent", 5)
	s.set("v", "99")
	client, key := redisOf(s)
	before, err := client.HGetAll(t.Context(), key).Result()
	require.NoError(t, err)
	s.Post(s.DB, harness.Numbered("pending", 5)...)
	r := s.Launch()
	select {
	case <-r.Exited():
	case <-time.After(patience):
		t.Fatal("it goes on")
	}
	assert.NotZero(t, r.ExitCode())
	assert.Contains(t, r.Log(), "newer")
	after, err := client.HGetAll(t.Context(), key).Result()
	require.NoError(t, err)
	assert.Equal(t, before, after)
	assert.Equal(t, 5, s.Log.Distinct())
	s.set("v", "1")
	r = s.Start()
	v := s.Exact(patience, oracle.Options{})
	s.ByStream(v)
	assert.EqualValues(t, 5, s.recovered(r, "resumed").ReadAgain)
}

// TestCheckpointUnreadable: Redis answers and does not let the relay read. That is not to say that there is none: it waits,
// says why, and goes on from where it was.
func TestCheckpointUnreadable(t *testing.T) {
	t.Parallel()
	s := newRecovery(t, harness.Cast{Silent: true})
	s.settle("sent", 5)
	client, _ := redisOf(s)
	user := "reader" + strings.ToLower(s.Source[len(s.Source)-8:])
	acl := func(rules ...any) {
		require.NoError(t, client.Do(t.Context(), append([]any{"ACL", "SETUSER", user}, rules...)...).Err())
	}
	acl("on", ">pw", "~*", "&*", "+@all", "-hgetall")
	t.Cleanup(func() { _ = client.Do(t.Context(), "ACL", "DELUSER", user).Err() })
	at, err := url.Parse(s.Cast.Redis.URL())
	require.NoError(t, err)
	at.User = url.UserPassword(user, "pw")
	s.Set("redis.url", at.String())
	s.Post(s.DB, harness.Numbered("pending", 5)...)
	r := s.Launch()
	unready(t, r, patience, "can't run this command")
	assert.Equal(t, 5, s.Log.Distinct())
	acl("+hgetall")
	s.Leads(r)
	v := s.Exact(patience, oracle.Options{})
	s.ByStream(v)
	s.recovered(r, "resumed")
}
