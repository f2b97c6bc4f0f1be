package relay

import (
	"context"
	"errors"
	"maps"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// candidate is a row that the stream has read, before anything was decided about it.
type candidate struct {
	txn       *Txn
	row       outbox.Row
	committed time.Time
	end       position.End
	number    int // of the row in its transaction, from 1
	// bodyless is why the row's staged body can't be had.
	bodyless error
	// unread: the row's staged body was not asked for, because its topic deferred everything.
	unread bool
}

// replay is the replay window: from the loaded checkpoint to the binlog's end as it was at the start. What lies in it
// may have been sent before the crash, so the table is asked (by primary key, many rows at once) and the tail of the
// Kafka partitions. Outside it nothing is asked. One goroutine uses it.
//
// A row that the table does not show is sent: with semi-synchronous replication the event arrives before the row can
// be read, and a duplicate is allowed where a loss is not.
type replay struct {
	until position.Position
	rows  Lookup
	tail  *tail
	// topicOf returns the Kafka topic that a row goes to.
	topicOf func(*outbox.Row) string
	log     zerolog.Logger
	// waits: the window ends where the replica has applied what the primary had at the start, which is told later.
	waits   bool
	applied atomic.Pointer[position.Position]
	// cost is what the window is counted in.
	cost *recovery

	over    bool
	pending []candidate
	bytes   int
}

const (
	gatherRows  = 1000
	gatherBytes = 8 << 20
	gatherTime  = 20 * time.Millisecond
)

// replayVerdict is what is known of a row of the window.
type replayVerdict uint8

const (
	replayUnknown  replayVerdict = iota // send it
	replaySettled                       // sent, consumed, dead or discarded
	replaySweepers                      // failed, or deferred: the table says when
	replayInKafka                       // in Kafka, but not marked yet
)

// settled reports whether every row of the window is. It may be called concurrently.
func (r *replay) settled(t *Tracker) bool {
	until, ok := r.bound()
	return ok && (until.IsZero() || t.Settled(until.File, until.Pos))
}

// waiting reports whether rows wait to be looked up.
func (r *replay) waiting() bool { return len(r.pending) > 0 }

// add lets a row wait for its look-up, and reports whether it is time for that.
func (r *replay) add(c candidate) (full bool) {
	r.pending = append(r.pending, c)
	r.bytes += len(c.row.Content)
	return len(r.pending) >= gatherRows || r.bytes >= gatherBytes || r.over && len(r.pending) >= bodyGroup
}

// endsAt reports whether the window ends at or before a transaction's end.
func (r *replay) endsAt(end position.End) bool {
	if r.over {
		return false
	}
	until, ok := r.bound()
	if !ok {
		return false
	}
	order, err := position.Compare(end.File, end.Pos, until.File, until.Pos)
	// Files that can't be compared come from another server than the window's end: nothing of the window follows.
	return err != nil || order >= 0
}

func (r *replay) finish(end position.End) {
	r.over = true
	r.log.Debug().Stringer("position", end).Msg("end of the replay window")
	r.cost.finish()
}

// look asks the table about the rows that wait and returns them with what is known of each. A database that can't be
// read is waited for: without its answer everything would be sent again. Behind the window nothing is asked.
func (r *replay) look(ctx context.Context) ([]candidate, []replayVerdict, error) {
	candidates := r.pending
	r.pending, r.bytes = nil, 0
	if len(candidates) == 0 {
		return nil, nil, nil
	}
	if r.over {
		return candidates, make([]replayVerdict, len(candidates)), nil
	}
	refs := make([]outbox.Ref, len(candidates))
	for i := range candidates {
		refs[i] = candidates[i].row.Ref()
	}
	found, err := r.lookUp(ctx, refs)
	if err != nil {
		return nil, nil, err
	}
	verdicts := make([]replayVerdict, len(candidates))
	for i, ref := range refs {
		row, ok := found[ref]
		verdicts[i] = r.judge(&candidates[i], row, ok)
	}
	r.cost.looked(verdicts)
	return candidates, verdicts, nil
}

// lookUp asks table by table. Of a table that is gone nothing is known but what the tail tells.
func (r *replay) lookUp(ctx context.Context, refs []outbox.Ref) (map[outbox.Ref]store.Found, error) {
	byTable := make(map[outbox.Table][]outbox.Ref)
	for _, ref := range refs {
		byTable[ref.Table] = append(byTable[ref.Table], ref)
	}
	all := make(map[outbox.Ref]store.Found, len(refs))
	for _, some := range byTable {
		err := persist(ctx, r.log, "look up replayed rows", func(ctx context.Context) error {
			found, err := r.rows.Lookup(ctx, some)
			if errors.Is(err, store.ErrGone) {
				return nil
			}
			maps.Copy(all, found)
			return err
		})
		if err != nil {
			return nil, err
		}
	}
	return all, nil
}

func (r *replay) judge(c *candidate, row store.Found, ok bool) replayVerdict {
	switch {
	// A row that was written with a time of its own does not tell by having one that it was deferred. If it was, its
	// topic is closed, and it is deferred again.
	case ok && row.Status == outbox.Failed, ok && row.Status == outbox.Pending && row.HasNextRetry && c.row.NextRetry == "":
		return replaySweepers
	case ok && row.Status != outbox.Pending:
		return replaySettled
	}
	if r.tail.has(r.topicOf(&c.row), c.row.MsgID) {
		return replayInKafka
	}
	return replayUnknown
}

// Where the binlog is read from a replica that lags, rows that are in the table already are still to come in the
// stream. When the saved position is of no use they may have been sent long ago, or have just been recorded as the
// sweeper's. So the replay window, in which the table is asked about each row, is then kept open until the replica
// has applied what the primary had at the start.

// untilApplied closes the window at the replica's end once it has applied all of that.
func (s *session) untilApplied(ctx context.Context, upstream Upstream) error {
	window := s.pump.replay
	if !window.waits {
		return nil
	}
	err := persist(ctx, s.log, "wait until the replica has applied what was committed before the start", func(ctx context.Context) error {
		return upstream.Applied(ctx)
	})
	if err != nil {
		return err
	}
	var end position.Position
	err = persist(ctx, s.log, "read the replica's binlog end", func(ctx context.Context) (err error) {
		end, err = s.reader.End(ctx)
		return err
	})
	if err != nil {
		return err
	}
	window.applied.Store(&end)
	return nil
}

// bound returns where the window ends; ok is false while that is not known.
func (r *replay) bound() (until position.Position, ok bool) {
	if !r.waits {
		return r.until, true
	}
	if p := r.applied.Load(); p != nil {
		return *p, true
	}
	return position.Position{}, false
}

// tail is the msg_ids that Kafka held at the start, from the checkpoint on: what was published before a crash and may
// not be marked. It may be used concurrently; a nil tail knows nothing.
type tail struct {
	mu  sync.Mutex
	ids *kafka.Published
}

func (t *tail) has(topic, msgID string) bool {
	if t == nil {
		return false
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.ids.Has(topic, msgID)
}

// forget frees the memory once nothing from before the crash can turn up any more.
func (t *tail) forget() {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.ids = nil
}

const (
	// tailLimit and tailTime bound the reading of Kafka at a start. Beyond them messages are sent that may be there.
	tailLimit = 1_000_000
	tailTime  = 10 * time.Second
)

// tail returns the msg_ids that Kafka holds from the checkpoint on. Anything odd means nothing is known. Rows that
// were published and not marked are pending, so their topics are read too, from about when the checkpoint was saved.
func (l *leadership) tail(ctx context.Context) *tail {
	if !l.relay.cfg.DedupeOnRestart {
		l.log.Info().Msg("kafka.dedupe_on_restart is off: what was published and not marked before the restart is sent again")
		return nil
	}
	pending, err := l.relay.deps.Tables.Backlog.ClosedTopics(ctx, l.relay.cfg.Sweep.Lease, true)
	if err != nil {
		l.log.Warn().Err(err).Msg("topics of pending rows not read: some messages may be sent twice")
	}
	topics := make([]string, 0, len(l.offsets)+len(pending))
	for topic := range l.offsets {
		topics = append(topics, topic)
	}
	for _, name := range pending {
		topics = append(topics, l.relay.deps.Router.Topic(&outbox.Row{Topic: name}))
	}
	if len(topics) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, tailTime)
	defer cancel()
	ids, complete, err := l.relay.deps.Broker.TailMsgIDs(ctx, l.offsets, l.savedAt.Add(-time.Minute), topics, tailLimit)
	if err != nil || !complete {
		l.log.Warn().Err(err).Bool("complete", complete).Int("found", ids.Len()).
			Msg("could not read all that was published before the restart, so that what was not marked may be sent twice: see that the relay may read its topics")
	}
	return &tail{ids: ids}
}
