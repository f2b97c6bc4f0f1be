package checkpoint_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"
	"pgregory.net/rapid"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
)

// relayModel is a relay that leads, saves, is paused and wakes up, in any order.
type relayModel struct {
	epoch int64
	pos   uint64
}

// fencingModel is what Redis should hold.
type fencingModel struct {
	b       bench
	source  string
	relays  []relayModel
	highest int64
	stored  uint64 // 0: nothing
}

func (m *fencingModel) lead(t *rapid.T) {
	relay := &m.relays[rapid.IntRange(0, len(m.relays)-1).Draw(t, "relay")]
	epoch, err := m.b.store.NextEpoch(t.Context(), m.source)
	require.NoError(t, err)
	require.Equal(t, m.highest+1, epoch)
	m.highest = epoch
	rec, err := m.b.store.Load(t.Context(), m.source)
	if m.stored == 0 {
		require.ErrorIs(t, err, checkpoint.ErrNone)
	} else {
		require.NoError(t, err)
	}
	*relay = relayModel{epoch: epoch, pos: rec.Position.Pos}
}

func (m *fencingModel) save(t *rapid.T) {
	i := rapid.IntRange(0, len(m.relays)-1).Draw(t, "relay")
	relay := &m.relays[i]
	if relay.epoch == 0 {
		return
	}
	relay.pos += rapid.Uint64Range(1, 1000).Draw(t, "step")
	rec := record(relay.epoch, relay.pos)
	rec.By = fmt.Sprintf("relay-%d", i)
	err := m.b.store.Save(t.Context(), m.source, rec)
	if relay.epoch < m.highest {
		require.ErrorIs(t, err, checkpoint.ErrFenced)
		return
	}
	require.NoError(t, err)
	require.Greater(t, relay.pos, m.stored)
	m.stored = relay.pos
}

func (m *fencingModel) reset(t *rapid.T) {
	pos := rapid.Uint64Range(1, 1000).Draw(t, "pos")
	change := checkpoint.Change{Who: operator, To: &checkpoint.Record{Position: at("binlog.000007", pos)}}
	require.NoError(t, m.b.store.Reset(t.Context(), m.source, change))
	m.stored = pos
	m.highest++
}

func (m *fencingModel) loseCounter(t *rapid.T) {
	// Only when the record knows the epoch too: else there is nothing left to fence with.
	rec, err := m.b.store.Load(t.Context(), m.source)
	if err != nil || rec.Epoch != m.highest {
		return
	}
	base := m.b.key("epoch")
	key := base[:len(base)-len(source+":epoch")] + m.source + ":epoch"
	require.NoError(t, m.b.raw.Del(t.Context(), key).Err())
}

func (m *fencingModel) check(t *rapid.T) {
	rec, err := m.b.store.Load(t.Context(), m.source)
	if m.stored == 0 {
		require.ErrorIs(t, err, checkpoint.ErrNone)
		return
	}
	require.NoError(t, err)
	require.Equal(t, m.stored, rec.Position.Pos)
}

// Several relays with epochs of their own: whoever is not the newest leader never moves the checkpoint, and under the leaders
// it only goes forward.
func fencing(t *testing.T, b bench) {
	var run atomic.Int64
	rapid.Check(t, func(t *rapid.T) {
		m := &fencingModel{b: b, source: fmt.Sprintf("s%d", run.Add(1)), relays: make([]relayModel, 3)}
		t.Repeat(map[string]func(*rapid.T){
			"lead": m.lead, "save": m.save, "reset": m.reset, "lose counter": m.loseCounter, "": m.check,
		})
	})
}

func TestFencingOnMiniredis(t *testing.T) {
	t.Parallel()
	fencing(t, miniBench(t))
}

// term is one leadership: take an epoch, load, save on from there until another takes over.
func term(ctx context.Context, store *checkpoint.Store, saves int, saved, fenced *atomic.Int64) error {
	epoch, err := store.NextEpoch(ctx, source)
	if err != nil {
		return err
	}
	rec, err := store.Load(ctx, source)
	if err != nil && !errors.Is(err, checkpoint.ErrNone) {
		return err
	}
	pos := rec.Position.Pos
	for range saves {
		pos++
		err := store.Save(ctx, source, record(epoch, pos))
		if errors.Is(err, checkpoint.ErrFenced) {
			fenced.Add(1)
			return nil
		}
		if err != nil {
			return err
		}
		saved.Add(1)
	}
	return nil
}

// contend lets relays take the leadership from each other as fast as they can, and watches the stored position meanwhile.
func contend(t *testing.T, b bench) {
	const relays, terms, saves = 4, 25, 8
	var fenced, saved atomic.Int64
	group, ctx := errgroup.WithContext(t.Context())
	for n := range relays {
		store := b.again(fmt.Sprintf("relay-%d", n))
		group.Go(func() error {
			for range terms {
				if err := term(ctx, store, saves, &saved, &fenced); err != nil {
					return err
				}
			}
			return nil
		})
	}
	done := make(chan error, 1)
	go func() { done <- group.Wait() }()
	var last position.Position
	for finished := false; !finished; {
		select {
		case err := <-done:
			require.NoError(t, err)
			finished = true
		default:
		}
		rec, err := b.store.Load(t.Context(), source)
		if errors.Is(err, checkpoint.ErrNone) {
			continue
		}
		require.NoError(t, err)
		require.GreaterOrEqual(t, rec.Position.Pos, last.Pos, "the checkpoint went back")
		last = rec.Position
	}
	assert.Positive(t, fenced.Load(), "nobody was ever fenced: nothing was tested")
	assert.LessOrEqual(t, last.Pos, uint64(saved.Load()))
}

func TestContentionOnMiniredis(t *testing.T) {
	t.Parallel()
	contend(t, miniBench(t))
}
