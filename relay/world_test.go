package relay_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// world is a database, a Kafka and a Redis in memory, small and honest: what the relay's parts are tried against
// under a fake clock. A relay is attached by a generation; after a crash the old generation's hands can't do anything
// any more.
type world struct {
	mu         sync.Mutex
	random     *rand.Rand
	generation int

	table   map[uint64]*tableRow
	open    []*tableRow // by id, some of them settled
	letters []*tableRow // those that were dead letters at least once
	log     []logged    // the binlog
	nextID  uint64
	written chan struct{}

	topics  map[string]*topicState
	records []published
	sizes   map[string]int64

	readFails bool  // the next read of the binlog
	held      *held // the last that was got
	epoch     int64
	saved     *checkpoint.Record
	blind     int // starts at which Kafka could not tell what was published

	staging bool // some rows have their bodies staged
	bodies  []kafka.Body

	sqlDown bool
	kafkaUp bool

	// passed are records that came to Kafka while an earlier message of their key was a dead letter.
	passed []string
	// cannotPark is set before a relay is started.
	cannotPark error

	trouble trouble
}

type tableRow struct {
	row    outbox.Row
	status outbox.Status
	next   time.Time // zero: NULL
	lease  time.Time // a claim's end: then next is the same
	tries  int
	parked store.Slot // 0: not parked
	died   bool       // was a dead letter at least once
}

type logged struct {
	end  position.End
	at   time.Time
	rows []outbox.Row
	left int // rows that the stream can't read
}

// topicState is what a topic answers: nil is an ack.
type topicState struct {
	exists bool
	refuse error
}

type published struct {
	topic, key, msgID string
	at                time.Time
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
		rows = append(rows, w.insert(topic, key, time.Time{}))
	}
	if logs {
		w.logRows(rows)
	}
}

// commitUnreadable writes rows of keys of their own whose columns the stream can't tell any more.
func (w *world) commitUnreadable(topic string, rows int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for range rows {
		w.insert(topic, fmt.Sprintf("unreadable-%d", w.nextID), time.Time{})
	}
	w.logRows(nil)
	w.log[len(w.log)-1].left = rows
}

// breakReader lets the stream's next read fail.
func (w *world) breakReader() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.readFails = true
}

// commitOne is commit for one row, of which it returns the msg_id.
func (w *world) commitOne(topic, key string) string { return w.commitDelayed(topic, key, time.Time{}) }

// commitDelayed is commitOne for a row that is written with a next_retry_time of its own, in whole seconds.
func (w *world) commitDelayed(topic, key string, next time.Time) string {
	w.mu.Lock()
	defer w.mu.Unlock()
	row := w.insert(topic, key, next.Truncate(time.Second))
	w.logRows([]outbox.Row{row})
	return row.MsgID
}

// insert puts a row into the table. The caller holds mu.
func (w *world) insert(topic, key string, next time.Time) outbox.Row {
	row := outbox.Row{
		Table: messages, ID: w.nextID, MsgID: fmt.Sprintf("m%06d", w.nextID),
		Topic: topic, Content: []byte(`{}`), Key: []byte(key),
	}
	if w.staging {
		w.stage(&row)
	}
	if !next.IsZero() {
		row.NextRetry = next.UTC().Format(time.DateTime)
	}
	w.nextID++
	r := &tableRow{row: row, next: next}
	w.table[row.ID] = r
	w.open = append(w.open, r)
	return row
}

// logRows puts a transaction into the binlog. The caller holds mu.
func (w *world) logRows(rows []outbox.Row) {
	n := len(w.log) + 1
	w.log = append(w.log, logged{
		end: position.End{File: binlogFile, Pos: uint64(4 + 100*n), GTID: fmt.Sprintf("3e11fa47-71ca-11e1-9e33-c80aa9429562:%d", n)},
		at:  time.Now(), rows: rows,
	})
	close(w.written)
	w.written = make(chan struct{})
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
	w.notePassed(rec)
	w.records = append(w.records, published{topic: rec.Topic, key: string(rec.Key), msgID: header(rec, "msg_id"), at: time.Now()})
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

var errRead = errors.New("the binlog can't be read")

type reader struct {
	*hands
	mu  sync.Mutex
	at  int
	pos position.End
}

func (r *reader) Resolve(ctx context.Context, saved position.Position, have bool, _ string) (canal.Start, error) {
	if have {
		return canal.Start{Position: saved, Recovery: words.RecoveryResumed, Usable: true}, nil
	}
	end, err := r.End(ctx)
	return canal.Start{Position: end, Recovery: words.RecoveryNone}, err
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

func (r *reader) Next(ctx context.Context) (*assemble.Transaction, error) {
	for {
		if err := r.enter(false); err != nil {
			<-ctx.Done()
			return nil, ctx.Err()
		}
		if r.readFails {
			r.readFails = false
			r.world.mu.Unlock()
			return nil, errRead
		}
		written := r.written
		if r.at < len(r.log) {
			entry := r.log[r.at]
			r.at++
			r.world.mu.Unlock()
			r.mu.Lock()
			r.pos = entry.end
			r.mu.Unlock()
			txn := assemble.NewTransaction(entry.end, entry.at, entry.rows...)
			if entry.left > 0 {
				txn.Kick, txn.Missed = true, map[string]int{words.MissedColumns: entry.left}
			}
			return txn, nil
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

// The lock: there is one process at a time, which may lose it.

type lock struct{ *world }

func (l lock) Acquire(context.Context) (relay.Held, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.held = &held{lost: make(chan struct{})}
	return l.held, nil
}

type held struct {
	lost chan struct{}
	once sync.Once
}

func (h *held) Lost() <-chan struct{} { return h.lost }

func (h *held) Valid() bool {
	select {
	case <-h.lost:
		return false
	default:
		return true
	}
}

func (*held) Release(context.Context) error { return nil }

// loseLock takes the lock from the relay that holds it.
func (w *world) loseLock() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.held != nil {
		w.held.once.Do(func() { close(w.held.lost) })
	}
}

// fence lets somebody else take an epoch, after which the leader's saves are refused.
func (w *world) fence() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.epoch++
}
