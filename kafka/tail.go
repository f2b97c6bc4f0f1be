package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/router"
)

// tailLimit is how long TailMsgIDs may take.
const tailLimit = 10 * time.Second

// fetchTail also brings what no transaction has committed yet: it is in Kafka.
var fetchTail = fetch{
	isolation: sarama.ReadUncommitted, bytes: 8 << 20, partitionBytes: 1 << 20, wait: 100 * time.Millisecond,
}

var (
	errTailTooLong = errors.New("there are more records than may be read")
	errTailGone    = errors.New("the first offsets are no longer there")
	errTailStuck   = errors.New("a broker returns nothing of what it says it has")
)

// TailMsgIDs collects the msg_id headers of the records at the end of partitions, committed or not: from the offsets
// given, or where a partition has none from the time since, up to the ends as they are now. Topics that do not exist
// have none.
//
// complete is false when anything kept it from seeing all of it: no right to read, more than limit records, 10
// seconds, offsets that are gone. What it returns is in Kafka even then, and err says why.
func (c *Client) TailMsgIDs(
	ctx context.Context, from map[string]map[int32]int64, since time.Time, topics []string, limit int,
) (ids *Published, complete bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, tailLimit)
	defer cancel()
	t := &tail{leaders: newLeaders(c, c.ask), source: c.cfg.Source, left: limit, ids: NewPublished()}
	// Leaders that move and brokers that come back are waited for.
	var cause error
	err = retry.Doubling(20*time.Millisecond, 500*time.Millisecond).Until(ctx, func(err error) { cause = err },
		func(ctx context.Context) error {
			err := t.read(ctx, from, since, topics)
			if Classify(err) != retry.Unreachable || errors.Is(err, ErrClosed) {
				return retry.Final(err)
			}
			return err
		})
	if err == nil {
		return t.ids, true, nil
	}
	if cause != nil && ctx.Err() != nil {
		err = fmt.Errorf("%w: %w", err, cause)
	}
	return t.ids, false, fmt.Errorf("read the tail of the topics: %w", explain(err))
}

// tail is one reading of the ends of partitions.
type tail struct {
	*leaders
	source string
	found  bool                // whether starts and ends are known
	starts map[partition]int64 // where to go on, of the partitions that have more
	ends   map[partition]int64
	gone   bool // some known offsets are no longer there
	left   int  // records that may still be read
	ids    *Published
}

// read goes on where it was before an error.
func (t *tail) read(ctx context.Context, from map[string]map[int32]int64, since time.Time, topics []string) error {
	if !t.found {
		partitions, err := t.partitions(ctx, from, topics)
		if err != nil {
			return err
		}
		if err := t.bounds(ctx, partitions, from, since); err != nil {
			return err
		}
	}
	for len(t.starts) > 0 {
		moved, err := t.pass(ctx)
		if err != nil {
			return err
		}
		if !moved {
			return retry.Final(errTailStuck)
		}
	}
	if t.gone {
		return retry.Final(errTailGone)
	}
	return nil
}

// pass asks each leader once, and reports whether anything came.
func (t *tail) pass(ctx context.Context) (moved bool, failed error) {
	for at, got := range askAll(ctx, t.leaders, t.starts, fetchTail.ask) {
		if got.err != nil {
			failed = fmt.Errorf("topic %s partition %d: %w", at.topic, at.id, got.err)
			continue
		}
		if err := t.take(at.topic, got.value); err != nil {
			return false, err
		}
		next := got.value.next()
		moved = moved || next > t.starts[at]
		if t.starts[at] = next; next >= t.ends[at] {
			delete(t.starts, at)
		}
	}
	return moved, cmp.Or(ctx.Err(), failed)
}

// partitions returns the partitions of the topics, and of those that offsets are known of. A row may also name what
// can't be a topic.
func (t *tail) partitions(ctx context.Context, from map[string]map[int32]int64, topics []string) ([]partition, error) {
	names := slices.AppendSeq(slices.Clone(topics), maps.Keys(from))
	slices.Sort(names)
	names = slices.DeleteFunc(slices.Compact(names), func(name string) bool {
		return router.CheckTopicName(name) != nil
	})
	if len(names) == 0 {
		return nil, nil
	}
	return call(ctx, t.client, func() (partitions []partition, err error) {
		// In one request: one for each of thousands would take all the time. What it says of each topic is asked for
		// below.
		if err := t.ask.RefreshMetadata(names...); !answered(err) {
			return nil, err
		}
		for _, topic := range names {
			ids, err := t.ask.Partitions(topic)
			if err != nil && !errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
				return nil, err
			}
			for _, id := range ids {
				partitions = append(partitions, partition{topic, id})
			}
		}
		return partitions, nil
	})
}

// bounds finds where the partitions are to be read. Where known offsets are no longer there reading begins behind them.
func (t *tail) bounds(
	ctx context.Context, partitions []partition, from map[string]map[int32]int64, since time.Time,
) (err error) {
	times := make(map[partition]int64, len(partitions))
	for _, at := range partitions {
		times[at] = sarama.OffsetNewest
	}
	if t.ends, err = t.offsets(ctx, times); err != nil {
		return err
	}
	clear(times)
	for at, end := range t.ends {
		known, ok := from[at.topic][at.id]
		switch {
		case !ok || known > end: // beyond the end: the topic was deleted and made anew
			times[at] = since.UnixMilli()
		case known < end:
			times[at] = sarama.OffsetOldest
		}
	}
	if t.starts, err = t.offsets(ctx, times); err != nil {
		return err
	}
	for at, oldest := range t.starts {
		if times[at] == sarama.OffsetOldest {
			known := from[at.topic][at.id]
			t.gone = t.gone || known < oldest
			t.starts[at] = max(known, oldest)
		}
	}
	maps.DeleteFunc(t.starts, func(at partition, start int64) bool { return start < 0 || start >= t.ends[at] })
	t.found = true
	return nil
}

// take takes in what was fetched of one partition.
func (t *tail) take(topic string, got fetched) error {
	for _, record := range got.records() {
		if t.left--; t.left < 0 {
			return retry.Final(errTailTooLong)
		}
		t.add(topic, record)
	}
	return nil
}

// add adds a record of this source.
func (t *tail) add(topic string, record *sarama.Record) {
	var id, source string
	for _, header := range record.Headers {
		switch string(header.Key) {
		case words.HeaderMsgID:
			id = string(header.Value)
		case words.HeaderSource:
			source = string(header.Value)
		}
	}
	if id != "" && (t.source == "" || source == t.source) {
		t.ids.Add(topic, id)
	}
}
