//go:build !unit

package cli_test

import (
	"os"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/cmd/cli"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// A checkpoint is set, moved back and forth, forgotten and put back; each move says first what follows, in rows.
func TestCheckpointMoves(t *testing.T) {
	flavors(t, func(t *testing.T, server *rig.Server) {
		s := newScene(t, server, nil)
		assert.Contains(t, s.ok("checkpoint", "show"), "there is no checkpoint")
		assert.Contains(t, s.ok("checkpoint", "history"), "never had a checkpoint")
		assert.Contains(t, s.fails(cli.ExitFailed, "checkpoint", "undo"), "no operator's change to undo")

		first := s.end()
		s.insertMany("sent", "orders", 7)
		s.settle()
		s.exec("DELETE FROM " + s.table + " WHERE msg_id='sent-000'") // as archiving does
		s.insertMany("open", "orders", 3)

		var p plan
		s.json(&p, "checkpoint", "reset", "--to", "now")
		assert.False(t, p.Applied)
		assert.Nil(t, p.Old)
		assert.Contains(t, s.ok("checkpoint", "show"), "there is no checkpoint", "a dry run changes nothing")

		s.json(&p, "checkpoint", "set", first, "--yes", "--reason", "from the beginning")
		assert.True(t, p.Applied)
		assert.Equal(t, first, p.New.String())
		assert.Zero(t, p.Deferred, "what is behind the position is the stream's")

		var shown struct {
			Binlog struct {
				SecondsBehind *float64 `json:"seconds_behind"`
				BytesBehind   uint64   `json:"bytes_behind"`
			}
		}
		s.json(&shown, "checkpoint", "show")
		require.NotNil(t, shown.Binlog.SecondsBehind)
		assert.Less(t, *shown.Binlog.SecondsBehind, 300.0)
		assert.Positive(t, shown.Binlog.BytesBehind)

		// Forward: three rows are passed over. They become the sweeper's before the position moves.
		p = plan{}
		s.json(&p, "checkpoint", "reset", "--to", "now")
		assert.Equal(t, "forward", p.Direction)
		require.NotNil(t, p.Range)
		// Without column names in the binlog (MariaDB's default) a row is proven by how it stands: one that is gone can't be.
		assert.EqualValues(t, 10, p.Range.Rows+p.Range.Missed)
		assert.EqualValues(t, 6, p.Range.Settled)
		assert.EqualValues(t, 3, p.Range.Open)
		assert.EqualValues(t, 1, p.Range.Gone+p.Range.Missed)
		assert.False(t, p.Range.Estimate)
		_, due := s.status("open-001")
		assert.False(t, due)
		p = plan{}
		s.json(&p, "checkpoint", "reset", "--to", "now", "--yes", "--reason", "skip")
		assert.True(t, p.Applied)
		assert.EqualValues(t, 3, p.Deferred)
		status, due := s.status("open-001")
		assert.Equal(t, 0, status)
		assert.True(t, due)

		// Back again.
		p = plan{}
		s.json(&p, "checkpoint", "set", first)
		assert.Equal(t, "back", p.Direction)
		require.NotNil(t, p.Range)
		assert.EqualValues(t, 10, p.Range.Rows+p.Range.Missed)
		assert.Equal(t, p.Range.Gone > 0, slices.Contains(p.Follows, "Rows that are not in the table any more (archived or deleted) are sent again: their consumers see duplicates."))
		assert.True(t, p.Binlog.FileExists)
		assert.Positive(t, p.Binlog.Bytes)

		undone(t, s, first)
	})
}

// undone forgets the checkpoint and puts it back.
func undone(t *testing.T, s *scene, first string) {
	t.Helper()
	var p plan
	s.json(&p, "checkpoint", "reset", "--to", "table", "--yes", "--reason", "forget")
	assert.True(t, p.Applied)
	assert.Nil(t, p.New)
	assert.Contains(t, s.ok("checkpoint", "show"), "removed by")
	was := p.Old.String()

	p = plan{}
	s.json(&p, "checkpoint", "undo")
	assert.False(t, p.Applied)
	assert.Equal(t, was, p.New.String())
	s.json(&p, "checkpoint", "undo", "--yes")
	var shown struct{ Position *place }
	s.json(&shown, "checkpoint", "show")
	assert.Equal(t, was, shown.Position.String())

	var h history
	s.json(&h, "checkpoint", "history")
	require.Len(t, h.Entries, 4)
	host, err := os.Hostname()
	require.NoError(t, err)
	for i, want := range []struct{ event, reason string }{{"undo", ""}, {"reset", "forget"}, {"reset", "skip"}, {"set", "from the beginning"}} {
		assert.Equal(t, want.event, h.Entries[i].Event)
		assert.Equal(t, want.reason, h.Entries[i].Reason)
		assert.Equal(t, host, h.Entries[i].Host)
		assert.NotEmpty(t, h.Entries[i].User)
	}
	assert.Equal(t, first, h.Entries[3].New.String())
	assert.Nil(t, h.Entries[3].Old)
	assert.Contains(t, s.ok("checkpoint", "history"), "skip")
}

// A position from which the server can't go on is refused, and nothing is touched.
func TestCheckpointSetRefusesNonsense(t *testing.T) {
	flavors(t, func(t *testing.T, server *rig.Server) {
		s := newScene(t, server, nil)
		s.insert("a", "orders", "")
		end, err := harness.BinlogEnd(t.Context(), s.db, server.Flavor)
		require.NoError(t, err)
		gtid := "3e11fa47-71ca-11e1-9e33-c80aa9429562:1-77"
		if server.Flavor == rig.FlavorMariaDB {
			gtid = "7-7-4711"
		}
		for _, position := range []string{"binlog.999999:4", end.File + ":99999999", end.File + ":5", "other.000001:4", gtid} {
			o := s.run("checkpoint", "set", position, "--yes")
			assert.Equal(t, cli.ExitFailed, o.code, position)
			assert.Contains(t, o.err, "the server can't go on from there", position)
		}
		assert.Contains(t, s.ok("checkpoint", "history"), "never had a checkpoint")
	})
}

// By a set of transactions the same place is found as by file and offset.
func TestCheckpointSetByGTID(t *testing.T) {
	flavors(t, func(t *testing.T, server *rig.Server) {
		s := newScene(t, server, nil)
		var p plan
		s.json(&p, "checkpoint", "reset", "--to", "now", "--yes")
		before := p.New.GTID
		require.NotEmpty(t, before)
		s.insertMany("m", "orders", 4)
		s.json(&p, "checkpoint", "reset", "--to", "now", "--yes")

		p = plan{}
		s.json(&p, "checkpoint", "set", before)
		assert.Equal(t, "back", p.Direction)
		require.NotNil(t, p.Range)
		assert.EqualValues(t, 4, p.Range.Rows)
		s.json(&p, "checkpoint", "set", before, "--yes")
		var shown struct{ Position *place }
		s.json(&shown, "checkpoint", "show")
		assert.Equal(t, before, shown.Position.GTID)
	})
}

// While a relay leads, nothing moves; --force fences it off, and it goes on from what was set.
func TestCheckpointOfARunningRelay(t *testing.T) {
	t.Parallel()
	kafka := rig.Kafka(t)
	s := newScene(t, rig.MySQL(t), kafka)
	topic := kafka.Topic(t, 1)
	relay := s.lead()
	s.insertMany("m", topic, 5)
	harness.Eventually(t, 20*time.Second, "rows sent", func() (bool, string) {
		status, _ := s.status("m-004")
		return status == 1, ""
	})
	harness.Eventually(t, 20*time.Second, "checkpoint saved", func() (bool, string) {
		var shown struct{ Present bool }
		s.json(&shown, "checkpoint", "show")
		return shown.Present, ""
	})
	out := s.ok("checkpoint", "show")
	assert.Contains(t, out, "binlog exists")
	assert.Contains(t, out, "behind")
	assert.Contains(t, out, "purged in")

	says := s.fails(cli.ExitFailed, "checkpoint", "reset", "--to", "earliest", "--yes")
	assert.Contains(t, says, "a relay leads source")
	assert.Contains(t, says, "use --force")
	var h history
	s.json(&h, "checkpoint", "history")
	for _, e := range h.Entries {
		assert.NotEqual(t, "reset", e.Event)
	}

	var p plan
	s.json(&p, "checkpoint", "reset", "--to", "earliest", "--yes", "--force", "--measure", "0")
	assert.True(t, p.Applied)
	assert.True(t, p.Leader.Led)
	harness.Eventually(t, 60*time.Second, "the relay leads again, from what was set", func() (bool, string) {
		s.json(&h, "checkpoint", "history")
		return h.Entries[0].Event == "leader" && h.Entries[1].Event == "reset", h.Entries[0].Event
	})
	s.insert("after", topic, "")
	harness.Eventually(t, 60*time.Second, "it publishes", func() (bool, string) {
		status, _ := s.status("after")
		return status == 1, ""
	})
	code, _ := relay.Stop()
	assert.Zero(t, code)

	// Once it is gone the checkpoint may move.
	s.ok("checkpoint", "reset", "--to", "now", "--yes")
}

// With the lease in Redis the same holds.
func TestCheckpointRefusedByLease(t *testing.T) {
	t.Parallel()
	kafka := rig.Kafka(t)
	s := newScene(t, rig.MariaDB(t), kafka)
	s.with("leader.lock", "redis", "leader.lease", "3s")
	relay := s.lead()
	assert.Contains(t, s.fails(cli.ExitFailed, "checkpoint", "reset", "--to", "table", "--yes"), "a relay leads source")
	code, _ := relay.Stop()
	assert.Zero(t, code)
	s.ok("checkpoint", "reset", "--to", "table", "--yes")
}

// What can't be read in time is estimated, and said to be.
func TestCheckpointEstimates(t *testing.T) {
	t.Parallel()
	s := newScene(t, rig.MySQL(t), nil)
	first := s.end()
	s.insertMany("m", "orders", 20)
	var p plan
	s.json(&p, "checkpoint", "set", first, "--measure", "1ms")
	if p.Range != nil && !p.Range.Estimate {
		assert.EqualValues(t, 20, p.Range.Rows, "it was read in time after all")
	}
	p = plan{}
	s.json(&p, "checkpoint", "set", first, "--measure", "0")
	assert.Nil(t, p.Range)
}

// A source that cannot be streamed has no position to set: exit 3. In mode sweep there is none by design: exit 2.
func TestCheckpointWithoutBinlog(t *testing.T) {
	t.Parallel()
	s := newScene(t, rig.MySQL(t, rig.Args("--skip-log-bin")), nil)
	assert.Contains(t, s.fails(cli.ExitSource, "checkpoint", "reset", "--to", "now", "--yes"), "log_bin")
	s.ok("checkpoint", "reset", "--to", "table", "--yes")
	s.with("source.mode", "sweep")
	assert.Contains(t, s.fails(cli.ExitUsage, "checkpoint", "reset", "--to", "now"), "mode sweep")
}
