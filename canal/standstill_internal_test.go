package canal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
)

func TestStandstillIsSuspected(t *testing.T) {
	t.Parallel()
	place := func(file string, pos uint64) position.Position { return position.Position{File: file, Pos: pos} }
	now := time.Now()
	s := &standstill{}
	require.False(t, s.suspicious("bin.000002", 100, place("bin.000002", 100), now))
	require.True(t, s.suspicious("bin.000002", 100, place("bin.000001", 500), now), "the binlog is shorter than what was read")
	require.True(t, s.suspicious("bin.000002", 100, place("other.000002", 500), now), "the files are called otherwise")
	require.False(t, s.suspicious("bin.000002", 100, place("bin.000002", 300), now), "only just written")
	require.Equal(t, now, s.since)
	require.True(t, s.suspicious("bin.000002", 100, place("bin.000002", 400), now.Add(time.Minute)), "it did not come")
	require.Equal(t, now, s.since)
	require.False(t, s.suspicious("bin.000002", 300, place("bin.000002", 400), now.Add(time.Minute)), "it came, and more was written")
	require.Equal(t, now.Add(time.Minute), s.since)
	require.Equal(t, words.ReconnectStuck, reasonOf(errStandstill))
}
