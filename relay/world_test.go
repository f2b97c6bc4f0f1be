package relay_test

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// world is a database, a Kafka and a Redis in memory, small and honest: what the relay's parts are tried against under a
// fake clock. A relay is attached by a generation; after a crash the old generation's hands can't do anything any more.
type world struct {
	mu         sync.Mutex
	random     *rand.Rand
	generation int

	table   map[uint64]*tableRow
	log     []logged // the binlog
	nextID  uint64
	written chan struct{}

	topics  map[string]*topicState
	records []published
	sizes   map[string]int64

	epoch int64
	saved *checkpoint.Record

	sqlDown bool
	kafkaUp bool
}

type tableRow struct {
	row    outbox.Row
	status outbox.Status
	next   time.Time // zero: NULL
	lease  time.Time // a claim's end: then next is the same
	tries  int
}

type logged struct {
	end  position.End
	at   time.Time
	rows []outbox.Row
}

// topicState is what a topic answers: nil is an ack.
type topicState struct {
	exists bool
	refuse error
}

type published struct {
	topic, key, msgID string
}

func newWorld(seed uint64) *world {
	return &world{
		random: rand.New(rand.NewPCG(seed, seed)), table: map[uint64]*tableRow{}, topics: map[string]*topicState{},
		sizes: map[string]int64{}, written: make(chan struct{}), kafkaUp: true, nextID: 1,
	}
}

var messages = outbox.Table{Database: "app", Name: "local_message"}

const binlogFile = "binlog.000001"

// commit writes a transaction of rows to topic, with the keys. Rows that are not logged are only in the table.
func (w *world) commit(logs bool, topic string, keys ...string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	var rows []outbox.Row
	for _, key := range keys {
		row := outbox.Row{
			Table: messages, ID: w.nextID, MsgID: fmt.Sprintf("m%06d", w.nextID),
			Topic: topic, Content: []byte(`{}`), Key: []byte(key),
		}
		w.nextID++
		w.table[row.ID] = &tableRow{row: row}
		rows = append(rows, row)
	}
	if logs {
		pos := uint64(4 + 100*(len(w.log)+1))
		w.log = append(w.log, logged{
			end: position.End{File: binlogFile, Pos: pos, GTID: fmt.Sprintf("3e11fa47-71ca-11e1-9e33-c80aa9429562:%d", len(w.log)+1)},
			at:  time.Now(), rows: rows,
		})
		close(w.written)
		w.written = make(chan struct{})
	}
}

// crash makes the present generation's hands useless and returns the next one.
func (w *world) crash() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.generation++
	return w.generation
}

func (w *world) topic(name string) *topicState {
	t := w.topics[name]
	if t == nil {
		t = &topicState{exists: true}
		w.topics[name] = t
	}
	return t
}

func (w *world) setTopic(name string, exists bool, refuse error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	t := w.topic(name)
	t.exists, t.refuse = exists, refuse
}

// deliver appends a record or says why not. The caller holds mu.
func (w *world) deliver(rec *router.Record) (int64, error) {
	t := w.topic(rec.Topic)
	switch {
	case !w.kafkaUp:
		return 0, sarama.ErrOutOfBrokers
	case !t.exists:
		return 0, sarama.ErrUnknownTopicOrPartition
	case t.refuse != nil:
		return 0, t.refuse
	}
	w.records = append(w.records, published{topic: rec.Topic, key: string(rec.Key), msgID: header(rec, "msg_id")})
	w.sizes[rec.Topic]++
	return w.sizes[rec.Topic] - 1, nil
}

func header(rec *router.Record, key string) string {
	for _, h := range rec.Headers {
		if h.Key == key {
			return string(h.Value)
		}
	}
	return ""
}

// hands is what one relay process does to the world.
type hands struct {
	*world
	generation int
}

var errCrashed = fmt.Errorf("this process has crashed: %w", context.Canceled)

// enter locks the world; an error means that it is out of reach. The caller unlocks when there is none.
func (h *hands) enter(sql bool) error {
	h.mu.Lock()
	switch {
	case h.generation != h.world.generation:
		h.mu.Unlock()
		return errCrashed
	case sql && h.sqlDown:
		h.mu.Unlock()
		return store.ErrUnreachable
	}
	return nil
}

// The binlog.

type reader struct {
	*hands
	mu  sync.Mutex
	at  int
	pos position.End
}

func (r *reader) Resolve(ctx context.Context, saved position.Position, have bool, _ string) (canal.Start, error) {
	if have {
		return canal.Start{Position: saved, Recovery: canal.RecoveryResumed, Usable: true}, nil
	}
	end, err := r.End(ctx)
	return canal.Start{Position: end, Recovery: canal.RecoveryNone}, err
}

func (r *reader) Stream(_ context.Context, from position.Position) error {
	if err := r.enter(true); err != nil {
		return err
	}
	defer r.world.mu.Unlock()
	for r.at < len(r.log) && r.log[r.at].end.Pos <= from.Pos {
		r.at++
	}
	return nil
}

func (r *reader) Next(ctx context.Context) (*canal.Transaction, error) {
	for {
		if err := r.enter(false); err != nil {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		written := r.written
		if r.at < len(r.log) {
			entry := r.log[r.at]
			r.at++
			r.world.mu.Unlock()
			r.mu.Lock()
			r.pos = entry.end
			r.mu.Unlock()
			return canal.NewTransaction(entry.end, entry.at, entry.rows...), nil
		}
		r.world.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-written:
		}
	}
}

func (r *reader) End(context.Context) (position.Position, error) {
	if err := r.enter(true); err != nil {
		return position.Position{}, err
	}
	defer r.world.mu.Unlock()
	pos := position.Position{Flavor: position.MySQL, Server: "3e11fa47-71ca-11e1-9e33-c80aa9429562", File: binlogFile, Pos: 4}
	if n := len(r.log); n > 0 {
		pos.Pos = r.log[n-1].end.Pos
		pos.GTID = fmt.Sprintf("3e11fa47-71ca-11e1-9e33-c80aa9429562:1-%d", n)
	}
	return pos, nil
}

func (r *reader) State() canal.State {
	r.mu.Lock()
	defer r.mu.Unlock()
	return canal.State{Connected: true, LastEvent: time.Now(), Read: r.pos}
}

func (*reader) Close() error { return nil }

// The table.

func (h *hands) update(refs []outbox.Ref, change func(*tableRow)) error {
	if err := h.enter(true); err != nil {
		return err
	}
	defer h.mu.Unlock()
	for _, ref := range refs {
		if r := h.table[ref.ID]; r != nil && (r.status == outbox.Pending || r.status == outbox.Failed) {
			change(r)
		}
	}
	return nil
}

func (h *hands) MarkSent(_ context.Context, refs []outbox.Ref) (int64, error) {
	return int64(len(refs)), h.update(refs, func(r *tableRow) { r.status, r.next = outbox.Sent, time.Time{} })
}

func (h *hands) MarkFailed(_ context.Context, failures []store.Failure) ([]outbox.Ref, error) {
	var dead []outbox.Ref
	for _, f := range failures {
		err := h.update([]outbox.Ref{f.Ref}, func(r *tableRow) {
			r.tries++
			r.status, r.next = outbox.Failed, time.Now().Add(f.Delay)
			if r.tries > f.MaxRetries {
				r.status = outbox.Dead
				dead = append(dead, f.Ref)
			}
		})
		if err != nil {
			return nil, err
		}
	}
	return dead, nil
}

func (h *hands) MarkDead(_ context.Context, failures []store.Failure) error {
	for _, f := range failures {
		if err := h.update([]outbox.Ref{f.Ref}, func(r *tableRow) { r.status = outbox.Dead }); err != nil {
			return err
		}
	}
	return nil
}

func (h *hands) Defer(_ context.Context, refs []outbox.Ref) error {
	return h.update(refs, func(r *tableRow) {
		if r.status == outbox.Pending {
			r.next = time.Now()
		}
	})
}

func (h *hands) Release(ctx context.Context, refs []outbox.Ref) error {
	return h.update(refs, func(r *tableRow) { r.next = time.Now() })
}

func (h *hands) Lookup(_ context.Context, refs []outbox.Ref) (map[outbox.Ref]store.Found, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	found := make(map[outbox.Ref]store.Found)
	for _, ref := range refs {
		if r := h.table[ref.ID]; r != nil {
			found[ref] = store.Found{Status: r.status, HasNextRetry: !r.next.IsZero()}
		}
	}
	return found, nil
}

func (h *hands) ClosedTopics(_ context.Context, lease time.Duration, everything bool) ([]string, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	names := map[string]bool{}
	for _, r := range h.table {
		recorded := !r.next.IsZero() && (!r.next.After(time.Now()) || r.next.Equal(r.lease))
		pending := r.status == outbox.Pending && (everything || recorded)
		if r.status == outbox.Failed || pending {
			names[r.row.Topic] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

func (h *hands) ClaimedTopics(_ context.Context, lease time.Duration) ([]string, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	names := map[string]bool{}
	for _, r := range h.table {
		if r.status == outbox.Pending && r.next.After(time.Now()) && r.next.Equal(r.lease) {
			names[r.row.Topic] = true
		}
	}
	return slices.Sorted(maps.Keys(names)), nil
}

func (h *hands) Offset(context.Context) (time.Duration, error) { return 0, nil }

func (h *hands) LastIDs(context.Context) (map[outbox.Table]uint64, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	return map[outbox.Table]uint64{messages: h.nextID - 1}, nil
}

func (h *hands) Unrecorded(_ context.Context, last map[outbox.Table]uint64, limit int) ([]outbox.Ref, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	var refs []outbox.Ref
	for id := uint64(1); id <= last[messages] && len(refs) < limit; id++ {
		if r := h.table[id]; r.status == outbox.Pending && r.next.IsZero() {
			refs = append(refs, r.row.Ref())
		}
	}
	return refs, nil
}

func (h *hands) Count(context.Context) (map[outbox.Status]int64, time.Duration, error) {
	return nil, 0, nil
}

func (h *hands) Refresh(context.Context) error { return nil }

func (h *hands) NextDue(context.Context) (time.Time, bool, error) {
	if err := h.enter(true); err != nil {
		return time.Time{}, false, err
	}
	defer h.mu.Unlock()
	var nearest time.Time
	for _, r := range h.table {
		open := r.status == outbox.Pending || r.status == outbox.Failed
		if open && r.next.After(time.Now()) && (nearest.IsZero() || r.next.Before(nearest)) {
			nearest = r.next
		}
	}
	return nearest, !nearest.IsZero(), nil
}

// due is the store's idea of which rows a query returns.
func (r *tableRow) due(q store.Query) bool {
	switch {
	case q.Only != "" && r.row.Topic != q.Only, slices.Contains(q.Except, r.row.Topic):
		return false
	case r.status == outbox.Failed:
		return q.Early || !r.next.After(time.Now())
	case r.status != outbox.Pending:
		return false
	case r.next.IsZero():
		return !q.Deferred
	case q.DueFrom != "" && r.next.Format(time.RFC3339Nano) < q.DueFrom:
		return false
	}
	return !r.next.After(time.Now())
}

func (h *hands) Now(context.Context) (string, error) { return time.Now().Format(time.RFC3339Nano), nil }

func (h *hands) Candidates(_ context.Context, q store.Query) ([]outbox.Row, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	var rows []outbox.Row
	if q.OldestOnly {
		early := q
		early.Early = true
		all := h.pick(early)
		if len(all) == 0 || !h.table[all[0].ID].due(q) {
			return nil, nil
		}
		return all[:1], nil
	}
	rows = h.pick(q)
	return rows[:min(len(rows), q.Limit)], nil
}

func (h *hands) pick(q store.Query) []outbox.Row {
	var rows []outbox.Row
	for _, r := range h.table {
		if r.due(q) {
			row := r.row
			row.RetryCount = r.tries
			rows = append(rows, row)
		}
	}
	slices.SortFunc(rows, func(a, b outbox.Row) int { return cmp.Compare(a.ID, b.ID) })
	return rows
}

func (h *hands) Backlog(_ context.Context, q store.Query) ([]outbox.Ref, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	var refs []outbox.Ref
	for _, row := range h.pick(q) {
		refs = append(refs, row.Ref())
	}
	return refs[:min(len(refs), q.Limit)], nil
}

func (h *hands) Claim(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error) {
	return h.claim(refs, lease, false)
}

func (h *hands) ClaimEarly(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error) {
	return h.claim(refs, lease, true)
}

func (h *hands) claim(refs []outbox.Ref, lease time.Duration, early bool) ([]outbox.Row, error) {
	if err := h.enter(true); err != nil {
		return nil, err
	}
	defer h.mu.Unlock()
	var rows []outbox.Row
	for _, ref := range refs {
		if r := h.table[ref.ID]; r != nil && r.due(store.Query{Early: early}) {
			row := r.row
			row.RetryCount = r.tries
			rows = append(rows, row)
			r.next = time.Now().Add(lease)
			r.lease = r.next
		}
	}
	return rows, nil
}

// Kafka.

type broker struct{ *hands }

func (b broker) Reachable(context.Context) error {
	if err := b.enter(false); err != nil {
		return err
	}
	defer b.mu.Unlock()
	if !b.kafkaUp {
		return sarama.ErrOutOfBrokers
	}
	return nil
}

func (b broker) Topic(_ context.Context, name string) (kafka.Topic, error) {
	if err := b.enter(false); err != nil {
		return kafka.Topic{}, err
	}
	defer b.mu.Unlock()
	if !b.kafkaUp {
		return kafka.Topic{}, sarama.ErrOutOfBrokers
	}
	return kafka.Topic{Name: name, Exists: b.topic(name).exists}, nil
}

func (b broker) CreateTopic(context.Context, string) error { return nil }

func (b broker) Probe(ctx context.Context, rec *router.Record) (int32, int64, error) {
	pause(ctx, b.latency())
	if err := b.enter(false); err != nil {
		return 0, 0, err
	}
	defer b.mu.Unlock()
	offset, err := b.deliver(rec)
	return 0, offset, err
}

func (b broker) latency() time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return time.Duration(b.random.IntN(20)) * time.Millisecond
}

func (b broker) TailMsgIDs(_ context.Context, from map[string]map[int32]int64, _ time.Time, _ []string, _ int) (map[kafka.Published]struct{}, bool, error) {
	if err := b.enter(false); err != nil {
		return nil, false, err
	}
	defer b.mu.Unlock()
	ids := map[kafka.Published]struct{}{}
	seen := map[string]int64{}
	for _, rec := range b.records {
		if start, ok := from[rec.topic]; ok && seen[rec.topic] >= start[0] {
			ids[kafka.Published{Topic: rec.topic, MsgID: rec.msgID}] = struct{}{}
		}
		seen[rec.topic]++
	}
	return ids, true, nil
}

func (b broker) NewProducer(results func(kafka.Result)) (relay.Producer, error) {
	p := &producer{broker: b, results: results, queue: make(chan handed, 1000), done: make(chan struct{})}
	go p.run()
	return p, nil
}

type handed struct {
	rec   *router.Record
	token any
}

type producer struct {
	broker
	results func(kafka.Result)
	queue   chan handed
	done    chan struct{}
	closing sync.RWMutex
	closed  bool
}

func (p *producer) Send(ctx context.Context, rec *router.Record, token any) error {
	p.closing.RLock()
	defer p.closing.RUnlock()
	if p.closed {
		return kafka.ErrClosed
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case p.queue <- handed{rec, token}:
		return nil
	}
}

// run delivers in order, a few at a time. A Kafka that is away is waited for, as the real producer does.
func (p *producer) run() {
	defer close(p.done)
	for h := range p.queue {
		if p.random5() {
			pause(context.Background(), p.latency())
		}
		for p.enter(false) == nil {
			if !p.kafkaUp {
				p.mu.Unlock()
				pause(context.Background(), 50*time.Millisecond)
				continue
			}
			offset, err := p.deliver(h.rec)
			p.mu.Unlock()
			p.results(kafka.Result{Token: h.token, Offset: offset, Err: err})
			break
		}
	}
}

func (p *producer) random5() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.random.IntN(5) == 0
}

func (p *producer) Close(context.Context) error {
	p.closing.Lock()
	p.closed = true
	close(p.queue)
	p.closing.Unlock()
	<-p.done
	return nil
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}

// Redis.

func (h *hands) NextEpoch(context.Context, string) (int64, error) {
	if err := h.enter(false); err != nil {
		return 0, err
	}
	defer h.mu.Unlock()
	h.epoch++
	return h.epoch, nil
}

func (h *hands) Load(context.Context, string) (checkpoint.Record, error) {
	if err := h.enter(false); err != nil {
		return checkpoint.Record{}, err
	}
	defer h.mu.Unlock()
	if h.saved == nil {
		return checkpoint.Record{}, checkpoint.ErrNone
	}
	return *h.saved, nil
}

func (h *hands) Save(_ context.Context, _ string, rec checkpoint.Record) error {
	if err := h.enter(false); err != nil {
		return err
	}
	defer h.mu.Unlock()
	if rec.Epoch < h.epoch {
		return checkpoint.ErrFenced
	}
	h.saved = &rec
	return nil
}

// The lock: there is one process at a time.

type lock struct{}

func (lock) Acquire(context.Context) (relay.Held, error) { return held{}, nil }

type held struct{}

func (held) Lost() <-chan struct{}         { return nil }
func (held) Valid() bool                   { return true }
func (held) Release(context.Context) error { return nil }
