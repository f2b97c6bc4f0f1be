package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/sync/errgroup"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
)

// ErrBodyGone means that a staged body can't be had any more: retention or compaction has removed it, or the topic was made
// anew. No retry brings it back.
var ErrBodyGone = errors.New("the staged body is gone: stage it again and write a new message, or raise the staging topic's retention")

// errBodyNotYet means that the topic ends before a staged body: a broker that is behind, or a topic that was made anew.
var errBodyNotYet = errors.New("the topic ends before the staged body")

// Body is a staged record, or why it could not be read.
type Body struct {
	Value []byte
	MsgID string // its msg_id header
	Err   error
}

// bodiesLimit is how long Bodies may take. Meanwhile a broker may not show yet what another has acked.
const bodiesLimit = 5 * time.Second

// Bodies reads the records that refs name, all at once, and returns one Body for each, in their order. All of them are in
// memory together: a caller bounds that by the number of refs.
//
// Err of a Body is ErrBodyGone, or a refusal of its topic, or says that the brokers did not answer; see Classify.
func (c *Client) Bodies(ctx context.Context, refs []outbox.BodyRef) []Body {
	ctx, cancel := context.WithTimeout(ctx, bodiesLimit)
	defer cancel()
	r := newBodyReader(refs)
	_, err := callFor(ctx, c, bodiesLimit, func() (struct{}, error) { return struct{}{}, r.read(ctx, c) })
	return r.finish(err)
}

// bodyReader is one reading of staged bodies.
type bodyReader struct {
	mu     sync.Mutex
	bodies []Body // nil once they were handed out
	open   map[bodyPartition]*wantedBodies
}

type bodyPartition struct {
	topic     string
	partition int32
}

// wantedBodies are what is still missing of a partition: offsets in their order, each with the indices of its refs.
type wantedBodies struct {
	offsets []int64
	indices map[int64][]int
	err     error // why the last try brought nothing
	outside int   // how often a leader has said that the first offset is outside of what it has
}

func newBodyReader(refs []outbox.BodyRef) *bodyReader {
	r := &bodyReader{bodies: make([]Body, len(refs)), open: make(map[bodyPartition]*wantedBodies)}
	for i, ref := range refs {
		at := bodyPartition{ref.Topic, ref.Partition}
		w := r.open[at]
		if w == nil {
			w = &wantedBodies{indices: make(map[int64][]int)}
			r.open[at] = w
		}
		if _, known := w.indices[ref.Offset]; !known {
			w.offsets = append(w.offsets, ref.Offset)
		}
		w.indices[ref.Offset] = append(w.indices[ref.Offset], i)
	}
	for _, w := range r.open {
		slices.Sort(w.offsets)
	}
	return r
}

// finish hands out what was read. A reader that is still busy must not write to it.
func (r *bodyReader) finish(err error) []Body {
	r.mu.Lock()
	defer r.mu.Unlock()
	for at, w := range r.open {
		why := w.err
		if why == nil {
			why = err
		}
		if why == nil {
			why = context.DeadlineExceeded
		}
		r.fail(at, w, fmt.Errorf("read a staged body from topic %s partition %d: %w", at.topic, at.partition, explain(why)))
	}
	bodies := r.bodies
	r.bodies, r.open = nil, nil
	return bodies
}

// fail ends a partition: what is missing of it stays so.
func (r *bodyReader) fail(at bodyPartition, w *wantedBodies, err error) {
	for _, offset := range w.offsets {
		for _, i := range w.indices[offset] {
			r.bodies[i].Err = err
		}
	}
	delete(r.open, at)
}

// read asks until nothing is open.
func (r *bodyReader) read(ctx context.Context, c *Client) error {
	backoff := retry.Doubling(20*time.Millisecond, 500*time.Millisecond).Attempts()
	for {
		moved, left := r.round(ctx, c)
		if left == 0 {
			return nil
		}
		if moved {
			backoff = retry.Doubling(20*time.Millisecond, 500*time.Millisecond).Attempts()
			continue
		}
		if err := retry.Wait(ctx, backoff.Next()); err != nil {
			return err
		}
	}
}

// round asks each leader once, and tells whether anything came and how much is still missing.
func (r *bodyReader) round(ctx context.Context, c *Client) (moved bool, left int) {
	var group errgroup.Group
	before := r.missing()
	for leader, requests := range r.leaders(c) {
		group.Go(func() error {
			answer, err := leader.Fetch(requests.fetch())
			if err != nil {
				c.drop(leader)
			}
			if ctx.Err() == nil {
				r.take(requests, answer, err)
			}
			return nil
		})
	}
	_ = group.Wait() // nothing fails: see take
	left = r.missing()
	return left < before, left
}

// missing returns how many offsets are.
func (r *bodyReader) missing() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	n := 0
	for _, w := range r.open {
		n += len(w.offsets)
	}
	return n
}

// bodyRequests are the partitions that one leader is asked for, with the first offset that is missing of each.
type bodyRequests map[bodyPartition]int64

func (b bodyRequests) fetch() *sarama.FetchRequest {
	open := make([]stretch, 0, len(b))
	for at, offset := range b {
		open = append(open, stretch{topic: at.topic, partition: at.partition, next: offset})
	}
	return fetchRequest(open)
}

// leaders says whom to ask for what. A partition without a leader is asked for again in the next round.
func (r *bodyReader) leaders(c *Client) map[*sarama.Broker]bodyRequests {
	r.mu.Lock()
	next := make(bodyRequests, len(r.open))
	stale := make(map[string]bool)
	for at, w := range r.open {
		next[at] = w.offsets[0]
		if w.err != nil && !errors.Is(w.err, errBodyNotYet) {
			stale[at.topic] = true
		}
	}
	r.mu.Unlock()
	asked := make(map[*sarama.Broker]bodyRequests)
	for at, offset := range next {
		if r.gone(c, at) {
			continue
		}
		leader, err := leaderOf(c.ask, at, stale[at.topic])
		if err != nil {
			r.trouble(at, err)
			continue
		}
		if asked[leader] == nil {
			asked[leader] = make(bodyRequests)
		}
		asked[leader][at] = offset
	}
	return asked
}

// believed is how often it must be said that an offset is outside: a leader that has just lost its office may not know.
const believed = 4

// gone gives up what leaders have said often enough not to have, and reports whether there is nothing to ask for in this round.
func (r *bodyReader) gone(c *Client, at bodyPartition) bool {
	r.mu.Lock()
	w := r.open[at]
	certain := w != nil && w.outside >= believed
	r.mu.Unlock()
	if !certain {
		return w == nil
	}
	oldest, err := c.ask.GetOffset(at.topic, at.partition, sarama.OffsetOldest)
	if err != nil {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	w.outside = 0
	before := w.offsets[0] < oldest
	for r.open[at] != nil && (!before || w.offsets[0] < oldest) { // behind the end are all later ones, too
		r.oneGone(at, w)
	}
	return true
}

func leaderOf(client sarama.Client, at bodyPartition, stale bool) (*sarama.Broker, error) {
	if stale { // the leader may have moved
		if err := client.RefreshMetadata(at.topic); err != nil {
			return nil, err
		}
	}
	return client.Leader(at.topic, at.partition)
}

// take takes a leader's answer in.
func (r *bodyReader) take(asked bodyRequests, answer *sarama.FetchResponse, err error) {
	for at := range asked {
		if err != nil {
			r.trouble(at, err)
			continue
		}
		block := answer.GetBlock(at.topic, at.partition)
		switch {
		case block == nil:
			r.trouble(at, sarama.ErrIncompleteResponse)
		case !errors.Is(block.Err, sarama.ErrNoError):
			r.trouble(at, block.Err)
		default:
			r.collect(at, block)
		}
	}
}

// trouble notes why a partition brought nothing. What no waiting mends ends it.
func (r *bodyReader) trouble(at bodyPartition, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.open[at]
	switch {
	case w == nil:
	case errors.Is(err, sarama.ErrOffsetOutOfRange):
		w.outside++
		w.err = err
	case errors.Is(err, sarama.ErrTopicAuthorizationFailed):
		r.fail(at, w, fmt.Errorf("read a staged body from topic %s: %w: give the relay's user the right to Read it", at.topic, err))
	default:
		w.err = err
	}
}

// oneGone gives up the first offset that is missing; later ones may be there.
func (r *bodyReader) oneGone(at bodyPartition, w *wantedBodies) {
	offset := w.offsets[0]
	for _, i := range w.indices[offset] {
		r.bodies[i].Err = fmt.Errorf("topic %s partition %d offset %d: %w", at.topic, at.partition, offset, ErrBodyGone)
	}
	r.shift(at, w)
}

func (r *bodyReader) shift(at bodyPartition, w *wantedBodies) {
	if w.offsets = w.offsets[1:]; len(w.offsets) == 0 {
		delete(r.open, at)
	}
}

// collect takes what is wanted out of what was fetched. A wanted offset that the records pass over is gone.
func (r *bodyReader) collect(at bodyPartition, block *sarama.FetchResponseBlock) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := r.open[at]
	if w == nil {
		return
	}
	w.err = errBodyNotYet // unless something comes
	for _, set := range block.RecordsSet {
		batch := set.RecordBatch
		if batch == nil || batch.PartialTrailingRecord {
			continue
		}
		for _, record := range batch.Records {
			if r.open[at] == nil {
				return
			}
			r.wanted(at, w, batch.FirstOffset+record.OffsetDelta, record, batch.Control)
		}
		w.err = nil
		for r.open[at] != nil && w.offsets[0] <= batch.LastOffset() {
			r.oneGone(at, w)
		}
	}
}

// wanted takes one record.
func (r *bodyReader) wanted(at bodyPartition, w *wantedBodies, offset int64, record *sarama.Record, control bool) {
	for r.open[at] != nil && w.offsets[0] < offset {
		r.oneGone(at, w)
	}
	if r.open[at] == nil || w.offsets[0] != offset || control {
		return
	}
	body := Body{Value: bytes.Clone(record.Value)} // or it would keep all that was fetched with it in memory
	for _, header := range record.Headers {
		if string(header.Key) == words.HeaderMsgID {
			body.MsgID = string(header.Value)
		}
	}
	for _, i := range w.indices[offset] {
		r.bodies[i] = body
	}
	r.shift(at, w)
}
