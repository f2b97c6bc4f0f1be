package kafka

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// ReportReader reads the topic of reports for one consumer group of one member. It takes no part in the group protocol: who
// may read is decided by the leader's lock, so that a new leader reads on at once, without waiting for the old one's session
// to expire. One goroutine uses it.
//
// Fetch returns records once; Commit keeps for the group how far everything that was returned reaches. What was not
// committed is returned again to the next reader.
type ReportReader struct {
	client *Client
	ask    sarama.Client // of its own: a fetch that waits would hold up the questions of the other one
	topic  string
	group  string
	at     reading
}

// reading is how far the topic is read.
type reading struct {
	places  map[int32]place // by partition; nil when nothing is known
	learned time.Time
}

// place is how far a partition is read.
type place struct {
	next, committed int64
	end             int64
}

// What one fetch may bring and how long it waits for anything.
const (
	reportFetchBytes     = 4 << 20
	reportPartitionBytes = 512 << 10
	reportFetchWait      = 500 * time.Millisecond
	reportFetchLimit     = 10 * time.Second
	// relearnEvery is how often it looks for partitions that were added.
	relearnEvery = time.Minute
)

// NewReportReader returns a reader that has not connected yet.
func (c *Client) NewReportReader(topic, group string) (*ReportReader, error) {
	ask, err := sarama.NewClient(c.cfg.Brokers, c.cfg.impatient(c.dial))
	if err != nil {
		return nil, fmt.Errorf("open kafka client: %w", err)
	}
	return &ReportReader{client: c, ask: ask, topic: topic, group: group}, nil
}

// Close gives the connections back. What is committed stays.
func (r *ReportReader) Close() error {
	if err := r.ask.Close(); err != nil && !errors.Is(err, sarama.ErrClosedClient) {
		return fmt.Errorf("close the reader of reports: %w", err)
	}
	return nil
}

// Fetch waits, half a second at most, for records and returns their values, from all partitions; none is an answer. After
// an error the reader begins again at what is committed. behind tells how many records were not returned yet.
func (r *ReportReader) Fetch(ctx context.Context) (values [][]byte, behind int64, err error) {
	// The question goes on when ctx ends, so it works on a state of its own.
	f := &fetch{ReportReader: r, reading: reading{places: maps.Clone(r.at.places), learned: r.at.learned}}
	_, err = callFor(ctx, r.client, reportFetchLimit, func() (struct{}, error) { return struct{}{}, f.run() })
	if err != nil {
		r.at = reading{}
		return nil, 0, fmt.Errorf("read topic %s: %w", r.topic, explain(err))
	}
	r.at = f.reading
	for _, at := range r.at.places {
		behind += max(0, at.end-at.next)
	}
	return f.values, behind, nil
}

// fetch is one call of Fetch.
type fetch struct {
	*ReportReader
	reading
	values [][]byte
}

func (f *fetch) run() error {
	if f.places == nil || time.Since(f.learned) > relearnEvery {
		if err := f.learn(); err != nil {
			return err
		}
	}
	leaders := map[*sarama.Broker][]int32{}
	for partition := range f.places {
		leader, err := f.ask.Leader(f.topic, partition)
		if err != nil {
			return err
		}
		leaders[leader] = append(leaders[leader], partition)
	}
	// At the same time, or an idle broker would hold up the reports of a busy one.
	var all sync.WaitGroup
	answers := make(chan fetched, len(leaders)) // room for all: they are read when all have come
	for leader, partitions := range leaders {
		request := f.request(partitions)
		all.Go(func() {
			answer, err := leader.Fetch(request)
			if err != nil {
				f.client.drop(leader)
			}
			answers <- fetched{partitions, answer, err}
		})
	}
	all.Wait()
	close(answers)
	for a := range answers {
		if a.err != nil {
			return a.err
		}
		if err := f.take(a); err != nil {
			return err
		}
	}
	return nil
}

// fetched is a broker's answer.
type fetched struct {
	partitions []int32
	answer     *sarama.FetchResponse
	err        error
}

func (f *fetch) request(partitions []int32) *sarama.FetchRequest {
	request := &sarama.FetchRequest{
		Version: 10, MinBytes: 1, MaxBytes: reportFetchBytes, MaxWaitTime: int32(reportFetchWait / time.Millisecond),
		Isolation: sarama.ReadCommitted, SessionEpoch: -1, // no session
	}
	for _, partition := range partitions {
		request.AddBlock(f.topic, partition, f.places[partition].next, reportPartitionBytes, -1)
	}
	return request
}

func (f *fetch) take(a fetched) (err error) {
	for _, partition := range a.partitions {
		at := f.places[partition]
		block := a.answer.GetBlock(f.topic, partition)
		switch {
		case block == nil:
			return sarama.ErrIncompleteResponse
		case errors.Is(block.Err, sarama.ErrOffsetOutOfRange):
			if at.next, err = f.reset(partition, at.next); err != nil {
				return err
			}
		case !errors.Is(block.Err, sarama.ErrNoError):
			return fmt.Errorf("partition %d: %w", partition, block.Err)
		default:
			f.values = append(f.values, at.take(block)...)
		}
		f.places[partition] = at
	}
	return nil
}

// reset goes to the oldest record there is: what lay before was deleted by the topic's retention, or the topic was made anew.
func (f *fetch) reset(partition int32, from int64) (oldest int64, err error) {
	if oldest, err = f.ask.GetOffset(f.topic, partition, sarama.OffsetOldest); err != nil {
		return 0, err
	}
	f.client.log.Warn().Str("topic", f.topic).Int32("partition", partition).Int64("offset", from).Int64("oldest", oldest).
		Msg("reports were deleted before they were read: keep them longer (retention.ms); see outbox-relay messages list --unconsumed-for 1h")
	return oldest, nil
}

// take moves the place behind a fetched block and returns the values in it.
func (p *place) take(block *sarama.FetchResponseBlock) (values [][]byte) {
	p.end = block.HighWaterMarkOffset
	// Aborted transactions are left in by the broker and taken out here: by producer, where each of them begins.
	aborted := map[int64][]int64{}
	for _, txn := range block.AbortedTransactions {
		aborted[txn.ProducerID] = append(aborted[txn.ProducerID], txn.FirstOffset)
	}
	for _, begins := range aborted {
		slices.Sort(begins)
	}
	for _, records := range block.RecordsSet {
		batch := records.RecordBatch
		if batch == nil || batch.PartialTrailingRecord {
			continue
		}
		begins := aborted[batch.ProducerID]
		gone := len(begins) > 0 && batch.FirstOffset >= begins[0]
		if batch.Control && gone {
			aborted[batch.ProducerID] = begins[1:]
		}
		if !batch.Control && (!gone || !batch.IsTransactional) {
			for _, record := range from(batch, p.next) {
				values = append(values, record.Value)
			}
		}
		p.next = max(p.next, batch.LastOffset()+1)
	}
	return values
}

// learn finds the partitions and where the group has come to. A partition that it has never read is read from its start.
func (f *fetch) learn() error {
	if err := f.ask.RefreshMetadata(f.topic); err != nil {
		return err
	}
	partitions, err := f.ask.Partitions(f.topic)
	if err != nil {
		return err
	}
	committed, err := groupOffsets(f.ask, f.client.drop, f.group, f.topic, partitions)
	if err != nil {
		return err
	}
	places := make(map[int32]place, len(partitions))
	for _, partition := range partitions {
		if at, known := f.places[partition]; known {
			places[partition] = at
			continue
		}
		next := committed[partition]
		if next < 0 {
			if next, err = f.ask.GetOffset(f.topic, partition, sarama.OffsetOldest); err != nil {
				return err
			}
		}
		places[partition] = place{next: next, committed: committed[partition], end: next}
	}
	f.places, f.learned = places, time.Now()
	return nil
}

// Commit keeps how far the group has come.
func (r *ReportReader) Commit(ctx context.Context) error {
	request := sarama.NewOffsetCommitRequest(r.ask.Config(), r.group)
	moved := false
	for partition, at := range r.at.places {
		if at.next != at.committed {
			request.AddBlock(r.topic, partition, at.next, sarama.ReceiveTime, "")
			moved = true
		}
	}
	if !moved {
		return nil
	}
	_, err := callFor(ctx, r.client, reportFetchLimit, func() (struct{}, error) { return struct{}{}, r.commit(request) })
	if err != nil {
		return fmt.Errorf("commit the offsets of group %s: %w", r.group, explain(err))
	}
	for partition, at := range r.at.places {
		at.committed = at.next
		r.at.places[partition] = at
	}
	return nil
}

func (r *ReportReader) commit(request *sarama.OffsetCommitRequest) error {
	coordinator, err := r.ask.Coordinator(r.group)
	if err != nil {
		return err
	}
	answer, err := coordinator.CommitOffset(request)
	if err != nil {
		r.client.drop(coordinator)
		return errors.Join(err, r.ask.RefreshCoordinator(r.group))
	}
	for _, code := range answer.Errors[r.topic] {
		if errors.Is(code, sarama.ErrNotCoordinatorForConsumer) {
			return errors.Join(code, r.ask.RefreshCoordinator(r.group))
		}
		if !errors.Is(code, sarama.ErrNoError) {
			return code
		}
	}
	return nil
}
