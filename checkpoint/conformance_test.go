package checkpoint_test

import (
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
)

const source = "orders"

// bench is a store on some Redis, and the same Redis seen raw.
type bench struct {
	store *checkpoint.Store
	raw   redis.UniversalClient
	key   func(name string) string
	// again opens another store on the same keys: another relay.
	again func(owner string) *checkpoint.Store
}

// newBench opens a store under a prefix of its own, so that tests share a server.
func newBench(t testing.TB, raw redis.UniversalClient, cluster bool, urls ...string) bench {
	t.Helper()
	prefix := "t" + uuid.NewString() + ":"
	again := func(owner string) *checkpoint.Store {
		s, err := checkpoint.Open(checkpoint.Config{URLs: urls, Prefix: prefix, Owner: owner}, zerolog.Nop())
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, s.Close()) })
		return s
	}
	key := func(name string) string {
		if cluster {
			return prefix + "{" + source + "}:" + name
		}
		return prefix + source + ":" + name
	}
	return bench{store: again("relay-1"), raw: raw, key: key, again: again}
}

func at(file string, pos uint64) position.Position {
	return position.Position{Server: "3e11fa47-71ca-11e1-9e33-c80aa9429562", Flavor: position.MySQL, File: file, Pos: pos}
}

func record(epoch int64, pos uint64) checkpoint.Record {
	return checkpoint.Record{Epoch: epoch, Position: at("binlog.000007", pos)}
}

var operator = checkpoint.Who{User: "ann", Host: "desk", Reason: "ticket 7"}

// conformance is what every kind of Redis must do.
func conformance(t *testing.T, open func(t *testing.T) bench) {
	for name, test := range map[string]func(*testing.T, bench){
		"nothing there":              nothingThere,
		"a record survives whole":    recordSurvivesWhole,
		"a stale epoch is refused":   staleEpochIsRefused,
		"one epoch has one writer":   oneEpochHasOneWriter,
		"a lost counter comes back":  lostCounterComesBack,
		"a nonsense counter heals":   nonsenseCounterHeals,
		"a newer format stays":       newerFormatStays,
		"nonsense is named":          nonsenseIsNamed,
		"a lost record is told":      lostRecordIsTold,
		"keys of other types heal":   keysOfOtherTypesHeal,
		"reset fences the leader":    resetFencesTheLeader,
		"removal is no loss":         removalIsNoLoss,
		"undo goes back and forth":   undoGoesBackAndForth,
		"undo of nothing":            undoOfNothing,
		"history has what matters":   historyHasWhatMatters,
		"history is capped":          historyIsCapped,
		"an incomplete save":         incompleteSave,
		"lease has one holder":       leaseHasOneHolder,
		"lease is lost to another":   leaseIsLostToAnother,
		"lease without an end":       leaseWithoutAnEnd,
		"lease survives lost data":   leaseSurvivesLostData,
		"lease refuses short times":  leaseRefusesShortTimes,
		"lease of another is spared": leaseOfAnotherIsSpared,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

func nothingThere(t *testing.T, b bench) {
	_, err := b.store.Load(t.Context(), source)
	require.ErrorIs(t, err, checkpoint.ErrNone)
	require.NotErrorIs(t, err, checkpoint.ErrLost)
	history, err := b.store.History(t.Context(), source, 10)
	require.NoError(t, err)
	assert.Empty(t, history)
}

func recordSurvivesWhole(t *testing.T, b bench) {
	epoch, err := b.store.NextEpoch(t.Context(), source)
	require.NoError(t, err)
	require.EqualValues(t, 1, epoch)
	want := checkpoint.Record{
		Version: checkpoint.Version,
		Position: position.Position{
			Server: "1:0", Flavor: position.MariaDB, GTID: "0-1-18446744073709551615", File: "binlog.000001", Pos: math.MaxUint64,
		},
		Offsets: map[string]map[int32]int64{"orders": {0: math.MaxInt64, 11: 1<<53 + 1}, `q"uote`: {}},
		Epoch:   epoch,
		SavedAt: time.Date(2026, 1, 2, 3, 4, 5, 678901234, time.UTC),
		By:      "relay-1",
	}
	require.NoError(t, b.store.Save(t.Context(), source, want))
	got, err := b.store.Load(t.Context(), source)
	require.NoError(t, err)
	assert.Equal(t, want, got)
	pos, err := b.raw.HGet(t.Context(), b.key("checkpoint"), "pos").Result()
	require.NoError(t, err)
	assert.Equal(t, "18446744073709551615", pos)
}

func staleEpochIsRefused(t *testing.T, b bench) {
	ctx := t.Context()
	next := b.again("relay-2")
	first, err := b.store.NextEpoch(ctx, source)
	require.NoError(t, err)
	require.NoError(t, b.store.Save(ctx, source, record(first, 100)))
	second, err := next.NextEpoch(ctx, source)
	require.NoError(t, err)
	require.Equal(t, first+1, second)
	// Handed out is enough: the new leader may not have saved yet.
	err = b.store.Save(ctx, source, record(first, 200))
	require.ErrorIs(t, err, checkpoint.ErrFenced)
	require.ErrorContains(t, err, "our epoch is 1, the present one 2")
	assert.Equal(t, checkpoint.CodeFenced, checkpoint.CodeOf(err))
	require.NoError(t, next.Save(ctx, source, record(second, 150)))
	require.ErrorIs(t, b.store.Save(ctx, source, record(first, 300)), checkpoint.ErrFenced)
	got, err := b.store.Load(ctx, source)
	require.NoError(t, err)
	assert.EqualValues(t, 150, got.Position.Pos)
}

// A failover of Redis to a replica that missed the last INCR makes two leaders with one epoch.
func oneEpochHasOneWriter(t *testing.T, b bench) {
	ctx := t.Context()
	other := b.again("relay-2")
	epoch, err := b.store.NextEpoch(ctx, source)
	require.NoError(t, err)
	require.NoError(t, b.raw.Set(ctx, b.key("epoch"), epoch-1, 0).Err())
	same, err := other.NextEpoch(ctx, source)
	require.NoError(t, err)
	require.Equal(t, epoch, same)
	require.NoError(t, other.Save(ctx, source, record(same, 10)))
	require.ErrorIs(t, b.store.Save(ctx, source, record(epoch, 20)), checkpoint.ErrFenced)
}

func lostCounterComesBack(t *testing.T, b bench) {
	ctx := t.Context()
	for range 4 {
		_, err := b.store.NextEpoch(ctx, source)
		require.NoError(t, err)
	}
	require.NoError(t, b.store.Save(ctx, source, record(4, 1)))
	require.NoError(t, b.raw.Del(ctx, b.key("epoch")).Err())
	// From the record ...
	epoch, err := b.store.NextEpoch(ctx, source)
	require.NoError(t, err)
	require.EqualValues(t, 5, epoch)
	// ... and from the leader's next save, when everything was lost.
	require.NoError(t, b.raw.Del(ctx, b.key("epoch"), b.key("checkpoint"), b.key("history")).Err())
	require.NoError(t, b.store.Save(ctx, source, record(5, 2)))
	epoch, err = b.store.NextEpoch(ctx, source)
	require.NoError(t, err)
	assert.EqualValues(t, 6, epoch)
}

func nonsenseCounterHeals(t *testing.T, b bench) {
	ctx := t.Context()
	require.NoError(t, b.raw.Set(ctx, b.key("epoch"), "many", 0).Err())
	epoch, err := b.store.NextEpoch(ctx, source)
	require.NoError(t, err)
	assert.EqualValues(t, 1, epoch)
	// Beyond 2^53, where Lua's numbers would take these two for the same.
	require.NoError(t, b.raw.Set(ctx, b.key("epoch"), "9007199254740993", 0).Err())
	require.ErrorIs(t, b.store.Save(ctx, source, record(9007199254740992, 1)), checkpoint.ErrFenced)
	require.NoError(t, b.store.Save(ctx, source, record(9007199254740993, 1)))
}

func newerFormatStays(t *testing.T, b bench) {
	ctx := t.Context()
	epoch, err := b.store.NextEpoch(ctx, source)
	require.NoError(t, err)
	require.NoError(t, b.store.Save(ctx, source, record(epoch, 1)))
	require.NoError(t, b.raw.HSet(ctx, b.key("checkpoint"), "v", "2", "pos", "77", "shape", "new").Err())
	before := b.raw.HGetAll(ctx, b.key("checkpoint")).Val()

	_, err = b.store.Load(ctx, source)
	require.ErrorIs(t, err, checkpoint.ErrNewer)
	require.ErrorContains(t, err, "upgrade this relay")
	_, err = b.store.NextEpoch(ctx, source)
	require.ErrorIs(t, err, checkpoint.ErrNewer)
	for what, err := range map[string]error{
		"save":  b.store.Save(ctx, source, record(epoch, 2)),
		"reset": b.store.Reset(ctx, source, checkpoint.Change{Who: operator}),
		"undo":  b.store.Undo(ctx, source, operator),
	} {
		require.ErrorIs(t, err, checkpoint.ErrNewer, what)
		assert.Equal(t, checkpoint.CodeNewer, checkpoint.CodeOf(err), what)
	}
	assert.Equal(t, before, b.raw.HGetAll(ctx, b.key("checkpoint")).Val())
	assert.Equal(t, "1", b.raw.Get(ctx, b.key("epoch")).Val(), "an old relay must not fence off the newer one")
}

func nonsenseIsNamed(t *testing.T, b bench) {
	ctx := t.Context()
	good := map[string]string{
		"v": "1", "server": "s", "flavor": "mysql", "gtid": "", "file": "b.1", "pos": "4", "offsets": "{}", "epoch": "1",
		"saved_at": "2026-01-02T03:04:05Z", "by": "x",
	}
	long := fmt.Sprintf("%060d", 0) + "x"
	for name, bad := range map[string]struct{ field, value, want string }{
		"v missing":     {"v", "-", "field v is missing"},
		"v garbage":     {"v", "one", `field v is "one"`},
		"v zero":        {"v", "0", `field v is "0"`},
		"pos missing":   {"pos", "-", "field pos is missing"},
		"pos garbage":   {"pos", "4.5", `field pos is "4.5"`},
		"pos negative":  {"pos", "-4", `field pos is "-4"`},
		"pos long":      {"pos", long, `field pos is "0000000000000000000000000000000000000000": it`},
		"server":        {"server", "-", "field server is missing"},
		"flavor":        {"flavor", "oracle", `field flavor is "oracle": it must be mysql or mariadb`},
		"file and gtid": {"file", "", "fields file and gtid are both empty"},
		"offsets":       {"offsets", `{"t":[1]}`, "field offsets is"},
		"epoch":         {"epoch", "", `field epoch is ""`},
		"saved_at":      {"saved_at", "yesterday", `field saved_at is "yesterday"`},
	} {
		fields := map[string]any{}
		for k, v := range good {
			fields[k] = v
		}
		fields[bad.field] = bad.value
		if bad.value == "-" {
			delete(fields, bad.field)
		}
		require.NoError(t, b.raw.Del(ctx, b.key("checkpoint")).Err())
		require.NoError(t, b.raw.HSet(ctx, b.key("checkpoint"), fields).Err())
		_, err := b.store.Load(ctx, source)
		require.ErrorIs(t, err, checkpoint.ErrBroken, name)
		require.ErrorContains(t, err, bad.want, name)
		require.NotErrorIs(t, err, checkpoint.ErrNone, name)
	}
	require.NoError(t, b.raw.HSet(ctx, b.key("checkpoint"), "v", "x", "pos", "y").Err())
	_, err := b.store.Load(ctx, source)
	require.ErrorContains(t, err, "field v is", "all problems are named at once")
	require.ErrorContains(t, err, "field pos is", "all problems are named at once")
}

func lostRecordIsTold(t *testing.T, b bench) {
	ctx := t.Context()
	epoch, err := b.store.NextEpoch(ctx, source)
	require.NoError(t, err)
	_, err = b.store.Load(ctx, source)
	require.NotErrorIs(t, err, checkpoint.ErrLost, "a first start is no loss")
	require.NoError(t, b.store.Save(ctx, source, record(epoch, 1)))
	require.NoError(t, b.raw.Del(ctx, b.key("checkpoint")).Err())
	_, err = b.store.Load(ctx, source)
	require.ErrorIs(t, err, checkpoint.ErrNone)
	require.ErrorIs(t, err, checkpoint.ErrLost)
}

// A key of another type must not stop the relay for ever.
func keysOfOtherTypesHeal(t *testing.T, b bench) {
	ctx := t.Context()
	require.NoError(t, b.raw.Set(ctx, b.key("checkpoint"), "text", 0).Err())
	require.NoError(t, b.raw.SAdd(ctx, b.key("epoch"), "member").Err())
	require.NoError(t, b.raw.Set(ctx, b.key("history"), "text", 0).Err())
	_, err := b.store.Load(ctx, source)
	require.ErrorIs(t, err, checkpoint.ErrBroken)
	require.ErrorContains(t, err, "is no hash")
	require.ErrorIs(t, b.store.Undo(ctx, source, operator), checkpoint.ErrNothingToUndo)
	epoch, err := b.store.NextEpoch(ctx, source)
	require.NoError(t, err)
	require.NoError(t, b.store.Save(ctx, source, record(epoch, 5)))
	got, err := b.store.Load(ctx, source)
	require.NoError(t, err)
	assert.EqualValues(t, 5, got.Position.Pos)
	history, err := b.store.History(ctx, source, 5)
	require.NoError(t, err)
	assert.Len(t, history, 1)
}

func incompleteSave(t *testing.T, b bench) {
	require.ErrorContains(t, b.store.Save(t.Context(), source, checkpoint.Record{Epoch: 1}), "is empty")
	require.ErrorContains(t, b.store.Save(t.Context(), source, record(0, 4)), "is empty")
	for _, name := range []string{"", "a b", "{a}", "a\n"} {
		require.ErrorContains(t, b.store.Save(t.Context(), name, record(1, 4)), "can't be part of a redis key")
		_, err := b.store.Load(t.Context(), name)
		require.Error(t, err)
		require.NotErrorIs(t, err, checkpoint.ErrNone)
	}
}
