package kafka

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
)

// ErrBodyGone means that a staged body can't be had any more: retention or compaction has removed it, or the topic was
// made anew. No retry brings it back.
var ErrBodyGone = errors.New(
	"the staged body is gone: stage it again and write a new message, or raise the staging topic's retention",
)

// errBodyNotYet means that the topic ends before a staged body: a broker that is behind, or a topic that was made
// anew.
var errBodyNotYet = errors.New("the topic ends before the staged body")

// Body is a staged record, or why it could not be read.
type Body struct {
	Value []byte
	MsgID string // its msg_id header
	Err   error
}

// bodiesLimit is how long Bodies may take. Meanwhile a broker may not show yet what another has acked.
const bodiesLimit = 5 * time.Second

// fetchBodies also brings what no transaction has committed: a row that is committed names it.
var fetchBodies = fetch{
	isolation: sarama.ReadUncommitted, bytes: 8 << 20, partitionBytes: 1 << 20, wait: 100 * time.Millisecond,
}

// Bodies reads the records that refs name, all at once, and returns one Body for each, in their order. All of them are
// in memory together: a caller bounds that by the number of refs.
//
// Err of a Body is ErrBodyGone, or a refusal of its topic, or says that the brokers did not answer; see Classify.
func (c *Client) Bodies(ctx context.Context, refs []outbox.BodyRef) []Body {
	ctx, cancel := context.WithTimeout(ctx, bodiesLimit)
	defer cancel()
	r := &bodyReader{leaders: newLeaders(c, c.ask), bodies: make([]Body, len(refs)), missing: wantedBodies(refs)}
	err := r.read(ctx)
	for at, m := range r.missing {
		why := cmp.Or(m.err, err, context.DeadlineExceeded)
		m.fail(r.bodies, fmt.Errorf("read a staged body from topic %s partition %d: %w", at.topic, at.id, explain(why)))
	}
	return r.bodies
}

// bodyReader is one reading of staged bodies.
type bodyReader struct {
	*leaders
	bodies  []Body
	missing map[partition]*missingBodies
}

// missingBodies are what is still missing of a partition: offsets in their order, each with the indices of its refs.
type missingBodies struct {
	offsets []int64
	indices map[int64][]int
	err     error // why the last try brought nothing
	outside int   // how often a leader has said that the first offset is outside of what it has
}

func wantedBodies(refs []outbox.BodyRef) map[partition]*missingBodies {
	missing := make(map[partition]*missingBodies)
	for i, ref := range refs {
		at := partition{ref.Topic, ref.Partition}
		m := missing[at]
		if m == nil {
			m = &missingBodies{indices: make(map[int64][]int)}
			missing[at] = m
		}
		if _, known := m.indices[ref.Offset]; !known {
			m.offsets = append(m.offsets, ref.Offset)
		}
		m.indices[ref.Offset] = append(m.indices[ref.Offset], i)
	}
	for _, m := range missing {
		slices.Sort(m.offsets)
	}
	return missing
}

// read asks until nothing is missing.
func (r *bodyReader) read(ctx context.Context) error {
	backoff := retry.Doubling(20*time.Millisecond, 500*time.Millisecond).Attempts()
	for len(r.missing) > 0 {
		first := make(map[partition]int64, len(r.missing))
		for at, m := range r.missing {
			first[at] = m.offsets[0]
		}
		moved := false
		for at, got := range askAll(ctx, r.leaders, first, fetchBodies.ask) {
			moved = r.take(ctx, at, got) || moved
		}
		if moved {
			backoff.Reset()
		} else if err := retry.Wait(ctx, backoff.Next()); err != nil {
			return err
		}
	}
	return nil
}

// take takes in what is known of one partition, and reports whether less is missing.
func (r *bodyReader) take(ctx context.Context, at partition, got result[fetched]) (moved bool) {
	m := r.missing[at]
	before := len(m.offsets)
	switch {
	case errors.Is(got.err, sarama.ErrOffsetOutOfRange):
		m.err = got.err
		if m.outside++; m.outside >= believed {
			r.giveUp(ctx, at, m)
		}
	case errors.Is(got.err, sarama.ErrTopicAuthorizationFailed): // no waiting mends it
		m.fail(r.bodies, fmt.Errorf("read a staged body from topic %s: %w: give the relay's user the right to Read it",
			at.topic, got.err))
	case got.err != nil:
		m.err = got.err
	default:
		r.collect(at, m, got.value)
	}
	if len(m.offsets) == 0 {
		delete(r.missing, at)
	}
	return len(m.offsets) < before
}

// believed is how often it must be said that an offset is outside: a leader that has just lost its office may not
// know.
const believed = 4

// giveUp gives up what leaders have said often enough not to have.
func (r *bodyReader) giveUp(ctx context.Context, at partition, m *missingBodies) {
	oldest, err := r.offsets(ctx, map[partition]int64{at: sarama.OffsetOldest})
	if err != nil {
		return // it is said again
	}
	m.outside = 0
	if m.offsets[0] < oldest[at] {
		r.gone(at, m, oldest[at])
		return
	}
	r.gone(at, m, math.MaxInt64) // behind the end are all later ones, too
}

// gone gives up what is missing before an offset.
func (r *bodyReader) gone(at partition, m *missingBodies, before int64) {
	for len(m.offsets) > 0 && m.offsets[0] < before {
		err := fmt.Errorf("topic %s partition %d offset %d: %w", at.topic, at.id, m.offsets[0], ErrBodyGone)
		m.found(r.bodies, Body{Err: err})
	}
}

// collect takes what is missing out of what was fetched. What the records pass over is gone.
func (r *bodyReader) collect(at partition, m *missingBodies, got fetched) {
	m.err = nil
	if got.next() == got.from {
		m.err = errBodyNotYet
	}
	for offset, record := range got.records() {
		r.gone(at, m, offset)
		if len(m.offsets) == 0 {
			return
		}
		if m.offsets[0] == offset {
			m.found(r.bodies, bodyOf(record))
		}
	}
	r.gone(at, m, got.next())
}

func bodyOf(record *sarama.Record) Body {
	body := Body{Value: bytes.Clone(record.Value)} // or it would keep all that was fetched with it in memory
	for _, header := range record.Headers {
		if string(header.Key) == words.HeaderMsgID {
			body.MsgID = string(header.Value)
		}
	}
	return body
}

// found settles the first offset.
func (m *missingBodies) found(bodies []Body, body Body) {
	for _, i := range m.indices[m.offsets[0]] {
		bodies[i] = body
	}
	m.offsets = m.offsets[1:]
}

// fail settles all offsets.
func (m *missingBodies) fail(bodies []Body, err error) {
	for len(m.offsets) > 0 {
		m.found(bodies, Body{Err: err})
	}
}
