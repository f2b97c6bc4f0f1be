package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"golang.org/x/sync/errgroup"

	"example.com/outbox-relay/internal/words"
)

// tailLimit is how long TailMsgIDs may take.
const tailLimit = 10 * time.Second

// What one fetch may bring: it bounds the memory, together with the number of brokers.
const (
	tailFetchBytes     = 8 << 20
	tailPartitionBytes = 1 << 20
	tailFetchWait      = 100 * time.Millisecond
)

// TailMsgIDs collects the msg_id headers of the records at the end of partitions, committed or not: from the offsets
// given, or where a partition has none from the time since, up to the ends as they are now. Topics that do not exist
// have none.
//
// complete is false when anything kept it from seeing all of it: no right to read, more than limit records, 10 seconds,
// offsets that are gone. What it returns is in Kafka even then, and err says why.
func (c *Client) TailMsgIDs(ctx context.Context, from map[string]map[int32]int64, since time.Time, topics []string, limit int) (ids *Published, complete bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, tailLimit)
	defer cancel()
	t := &tail{client: c.ask, drop: c.drop, from: from, since: since, source: c.cfg.Source, left: limit, ids: NewPublished()}
	_, err = callFor(ctx, c, tailLimit, func() (struct{}, error) { return struct{}{}, t.read(ctx, merge(topics, from)) })
	t.mu.Lock()
	defer t.mu.Unlock()
	// A reader that is still busy must not write to what is handed out.
	ids, t.ids = t.ids, nil
	if err == nil {
		err = t.oddity
	}
	if err != nil {
		return ids, false, fmt.Errorf("read the tail of the topics: %w", explain(err))
	}
	return ids, true, nil
}

func merge(topics []string, from map[string]map[int32]int64) []string {
	all := make(map[string]struct{}, len(topics)+len(from))
	for _, topic := range topics {
		all[topic] = struct{}{}
	}
	for topic := range from {
		all[topic] = struct{}{}
	}
	merged := make([]string, 0, len(all))
	for topic := range all {
		merged = append(merged, topic)
	}
	return merged
}

// tail is one reading of the ends of partitions.
type tail struct {
	client sarama.Client
	drop   func(*sarama.Broker)
	from   map[string]map[int32]int64
	since  time.Time
	source string

	mu     sync.Mutex
	ids    *Published // nil once it was handed out
	left   int        // records that may still be read
	oddity error      // why the reading is incomplete, although it goes on
}

// stretch is what is to be read of a partition: from next up to end.
type stretch struct {
	topic     string
	partition int32
	next, end int64
}

var (
	errTailTooLong = errors.New("there are more records than may be read")
	errTailGone    = errors.New("the first offsets are no longer there")
	errTailStuck   = errors.New("a broker returns nothing of what it says it has")
)

func (t *tail) read(ctx context.Context, topics []string) error {
	leaders := map[*sarama.Broker][]stretch{}
	for _, topic := range topics {
		err := t.client.RefreshMetadata(topic)
		if errors.Is(err, sarama.ErrUnknownTopicOrPartition) {
			continue
		}
		if err != nil {
			return err
		}
		partitions, err := t.client.Partitions(topic)
		if err != nil {
			return err
		}
		for _, partition := range partitions {
			leader, err := t.client.Leader(topic, partition)
			if err != nil {
				return err
			}
			leaders[leader] = append(leaders[leader], stretch{topic: topic, partition: partition})
		}
	}
	group, ctx := errgroup.WithContext(ctx)
	for leader, stretches := range leaders {
		group.Go(func() error { return t.readLeader(ctx, leader, stretches) })
	}
	return group.Wait()
}

// readLeader reads what one broker leads.
func (t *tail) readLeader(ctx context.Context, leader *sarama.Broker, all []stretch) error {
	var open []stretch
	for _, s := range all {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := t.bounds(&s); err != nil {
			return fmt.Errorf("topic %s partition %d: %w", s.topic, s.partition, err)
		}
		if s.next < s.end {
			open = append(open, s)
		}
	}
	for len(open) > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		answer, err := leader.Fetch(fetchRequest(open))
		if err != nil {
			t.drop(leader)
			return err
		}
		if open, err = t.takeAll(answer, open); err != nil {
			return err
		}
	}
	return nil
}

// bounds finds where a partition is to be read.
func (t *tail) bounds(s *stretch) (err error) {
	if s.end, err = t.client.GetOffset(s.topic, s.partition, sarama.OffsetNewest); err != nil {
		return err
	}
	next, known := t.from[s.topic][s.partition]
	// An offset beyond the end is of a topic that was deleted and made anew.
	if !known || next > s.end {
		s.next, err = t.client.GetOffset(s.topic, s.partition, t.since.UnixMilli())
		if s.next < 0 {
			s.next = s.end // nothing is as young as that
		}
		return err
	}
	if next == s.end {
		s.next = next
		return nil
	}
	oldest, err := t.client.GetOffset(s.topic, s.partition, sarama.OffsetOldest)
	if next < oldest {
		next = oldest
		t.odd(errTailGone)
	}
	s.next = next
	return err
}

func (t *tail) odd(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.oddity = err
}

func fetchRequest(open []stretch) *sarama.FetchRequest {
	request := &sarama.FetchRequest{
		Version:      10,
		MinBytes:     1,
		MaxBytes:     tailFetchBytes,
		MaxWaitTime:  int32(tailFetchWait / time.Millisecond),
		Isolation:    sarama.ReadUncommitted,
		SessionEpoch: -1, // no session
	}
	for _, s := range open {
		// A batch larger than this comes whole all the same.
		request.AddBlock(s.topic, s.partition, s.next, tailPartitionBytes, -1)
	}
	return request
}

// takeAll takes an answer in and returns what is left to be read.
func (t *tail) takeAll(answer *sarama.FetchResponse, open []stretch) ([]stretch, error) {
	var left []stretch
	moved := false
	for _, s := range open {
		block := answer.GetBlock(s.topic, s.partition)
		if block == nil {
			return nil, sarama.ErrIncompleteResponse
		}
		if !errors.Is(block.Err, sarama.ErrNoError) {
			return nil, fmt.Errorf("topic %s partition %d: %w", s.topic, s.partition, block.Err)
		}
		before := s.next
		if err := t.take(&s, block); err != nil {
			return nil, err
		}
		moved = moved || s.next > before
		if s.next < s.end {
			left = append(left, s)
		}
	}
	if !moved {
		return nil, errTailStuck
	}
	return left, nil
}

// take takes in what was fetched of one partition.
func (t *tail) take(s *stretch, block *sarama.FetchResponseBlock) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, records := range block.RecordsSet {
		batch := records.RecordBatch
		if batch == nil || batch.PartialTrailingRecord {
			continue
		}
		// A batch comes whole, also what lies before the offset that was asked for.
		if records := from(batch, s.next); !batch.Control {
			if t.left -= len(records); t.left < 0 {
				return errTailTooLong
			}
			t.collect(s.topic, records)
		}
		s.next = max(s.next, batch.LastOffset()+1)
	}
	return nil
}

// from returns the records of a batch that lie at or beyond an offset.
func from(batch *sarama.RecordBatch, offset int64) []*sarama.Record {
	for i, record := range batch.Records {
		if batch.FirstOffset+record.OffsetDelta >= offset {
			return batch.Records[i:]
		}
	}
	return nil
}

func (t *tail) collect(topic string, records []*sarama.Record) {
	if t.ids == nil {
		return
	}
	for _, record := range records {
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
}
