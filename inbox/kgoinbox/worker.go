package kgoinbox

import (
	"context"
	"errors"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/inbox/internal/loop"
)

// The bounds of a partition's queue. Above one of them its fetching is paused, and a fetch that was on its way may
// still be added; below half of both it goes on.
const (
	maxRecords = 1000
	maxBytes   = 1 << 20
)

// worker handles one partition in order.
type worker struct {
	client *kgo.Client
	place  place
	cancel context.CancelFunc
	ended  chan struct{} // closed when the worker has returned
	wake   chan struct{} // size 1: that there is something new is enough to know

	mu     sync.Mutex
	queue  []*kgo.Record
	bytes  int
	paused bool
}

// start runs a worker. It ends when it is cancelled or the policy stops the loop.
func (m *member) start(ctx context.Context, client *kgo.Client, p place) *worker {
	ctx, cancel := context.WithCancel(ctx)
	w := &worker{client: client, place: p, cancel: cancel, ended: make(chan struct{}), wake: make(chan struct{}, 1)}
	// Left from an earlier assignment, perhaps.
	client.ResumeFetchPartitions(w.partitions())
	go func() {
		defer close(w.ended)
		defer cancel()
		work, release := m.engine.Work(ctx)
		defer release()
		if stopped, ok := errors.AsType[*inbox.Stopped](w.run(ctx, work, m.engine)); ok {
			m.cancel(stopped) // ends the polling, which ends everything else
		}
	}()
	return w
}

// run works until ctx ends or the loop is to stop, and returns why. It marks each record once it needs nothing more; the client commits what is marked.
func (w *worker) run(ctx, work context.Context, engine *loop.Engine) error {
	for {
		record, err := w.next(ctx)
		if err != nil {
			return err
		}
		if err := engine.Handle(ctx, work, delivery(record)); err != nil {
			return err
		}
		w.client.MarkCommitRecords(record)
	}
}

// add queues what was polled. It does not wait.
func (w *worker) add(records []*kgo.Record) {
	w.mu.Lock()
	w.queue = append(w.queue, records...)
	for _, r := range records {
		w.bytes += len(r.Value)
	}
	if !w.paused && (len(w.queue) > maxRecords || w.bytes > maxBytes) {
		// Under the lock, as the resuming is (the client only notes it): a worker that empties the queue in between would
		// resume first, and the pause after it would last for ever.
		w.paused = true
		w.client.PauseFetchPartitions(w.partitions())
	}
	w.mu.Unlock()
	select {
	case w.wake <- struct{}{}:
	default:
	}
}

// next returns the oldest queued record, or waits for one.
func (w *worker) next(ctx context.Context) (*kgo.Record, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if record := w.pop(); record != nil {
			return record, nil
		}
		select {
		case <-w.wake:
		case <-ctx.Done():
		}
	}
}

func (w *worker) pop() *kgo.Record {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.queue) == 0 {
		return nil
	}
	record := w.queue[0]
	w.queue[0] = nil
	w.queue = w.queue[1:]
	w.bytes -= len(record.Value)
	if w.paused && len(w.queue) <= maxRecords/2 && w.bytes <= maxBytes/2 {
		w.paused = false
		w.client.ResumeFetchPartitions(w.partitions())
	}
	return record
}

func (w *worker) partitions() map[string][]int32 {
	return map[string][]int32{w.place.topic: {w.place.partition}}
}

func delivery(r *kgo.Record) *inbox.Delivery {
	d := &inbox.Delivery{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp,
		Headers: make([]inbox.Header, 0, len(r.Headers)),
	}
	for _, h := range r.Headers {
		d.Headers = append(d.Headers, inbox.Header{Key: h.Key, Value: h.Value})
	}
	return d
}

// mailer writes dead letters through the consumer's own client.
type mailer struct{ client *kgo.Client }

var _ loop.Mailer = (*mailer)(nil)

// Send implements loop.Mailer.
func (m *mailer) Send(ctx context.Context, letter loop.Letter) error {
	record := &kgo.Record{Topic: letter.Topic, Key: letter.Key, Value: letter.Value}
	for _, h := range letter.Headers {
		record.Headers = append(record.Headers, kgo.RecordHeader{Key: h.Key, Value: h.Value})
	}
	return m.client.ProduceSync(ctx, record).FirstErr()
}
