package kafka

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/IBM/sarama"
)

// fetch is how records are asked for: which ones, and what one request may bring. The number of brokers times bytes
// bounds the memory that it takes.
type fetch struct {
	isolation      sarama.IsolationLevel
	bytes          int32         // of an answer
	partitionBytes int32         // of one partition in it; a batch larger than this comes whole all the same
	wait           time.Duration // how long a leader that has nothing waits for a record
}

// ask is a question: for records from the offsets on.
func (f fetch) ask(leader *sarama.Broker, from map[partition]int64) (answer[fetched], error) {
	request := &sarama.FetchRequest{
		Version:      10, // with zstd; every broker from 2.1 on speaks it
		MinBytes:     1,
		MaxBytes:     f.bytes,
		MaxWaitTime:  int32(f.wait / time.Millisecond),
		Isolation:    f.isolation,
		SessionEpoch: -1, // no session
	}
	for at, offset := range from {
		request.AddBlock(at.topic, at.id, offset, f.partitionBytes, -1)
	}
	response, err := leader.Fetch(request)
	if err != nil {
		return nil, err
	}
	return func(at partition) (fetched, error) {
		block := response.GetBlock(at.topic, at.id)
		if block == nil {
			return fetched{}, sarama.ErrIncompleteResponse
		}
		return fetched{block, from[at]}, errorOf(block.Err)
	}, nil
}

// fetched is what was fetched of one partition.
type fetched struct {
	block *sarama.FetchResponseBlock
	from  int64 // the offset that was asked for
}

// batches ranges over what has come. A batch comes whole, also what lies before the offset that was asked for.
func (f fetched) batches(yield func(*sarama.RecordBatch) bool) {
	for _, set := range f.block.RecordsSet {
		batch := set.RecordBatch
		if batch != nil && !batch.PartialTrailingRecord && !yield(batch) {
			return
		}
	}
}

// next returns the offset behind all that has come. It is where the next fetch begins.
func (f fetched) next() int64 {
	next := f.from
	for batch := range f.batches {
		next = max(next, batch.LastOffset()+1)
	}
	return next
}

// end returns the offset behind the partition's last record, as the leader has it.
func (f fetched) end() int64 { return f.block.HighWaterMarkOffset }

// records ranges over the records with their offsets. Where only committed ones are asked for, a broker leaves aborted
// transactions in and says where each of them begins; they are left out here.
func (f fetched) records() iter.Seq2[int64, *sarama.Record] {
	return func(yield func(int64, *sarama.Record) bool) {
		aborted := f.aborted()
		for batch := range f.batches {
			begins := aborted[batch.ProducerID]
			gone := len(begins) > 0 && batch.FirstOffset >= begins[0]
			if batch.Control && gone { // the end of that transaction
				aborted[batch.ProducerID] = begins[1:]
			}
			if batch.Control || gone && batch.IsTransactional {
				continue
			}
			for _, record := range batch.Records {
				offset := batch.FirstOffset + record.OffsetDelta
				if offset >= f.from && !yield(offset, record) {
					return
				}
			}
		}
	}
}

// aborted returns where the aborted transactions begin, by producer.
func (f fetched) aborted() map[int64][]int64 {
	begins := make(map[int64][]int64, len(f.block.AbortedTransactions))
	for _, txn := range f.block.AbortedTransactions {
		begins[txn.ProducerID] = append(begins[txn.ProducerID], txn.FirstOffset)
	}
	for _, of := range begins {
		slices.Sort(of)
	}
	return begins
}

// offsets returns an offset of each partition: of its first record from a time on (in milliseconds since 1970; -1 when
// there is none), or sarama.OffsetOldest or OffsetNewest.
func (l *leaders) offsets(ctx context.Context, times map[partition]int64) (map[partition]int64, error) {
	found, err := l.offsetsOnce(ctx, times)
	if err != nil { // a leader may have moved, or have closed an idle connection
		return l.offsetsOnce(ctx, times)
	}
	return found, nil
}

func (l *leaders) offsetsOnce(ctx context.Context, times map[partition]int64) (map[partition]int64, error) {
	found := make(map[partition]int64, len(times))
	for at, offset := range askAll(ctx, l, times, askOffsets) {
		if offset.err != nil {
			return nil, fmt.Errorf("topic %s partition %d: %w", at.topic, at.id, offset.err)
		}
		found[at] = offset.value
	}
	return found, ctx.Err()
}

// askOffsets is a question.
func askOffsets(leader *sarama.Broker, times map[partition]int64) (answer[int64], error) {
	request := &sarama.OffsetRequest{Version: 4} // every broker from 2.1 on speaks it
	for at, time := range times {
		request.AddBlock(at.topic, at.id, time, 1)
	}
	response, err := leader.GetAvailableOffsets(request)
	if err != nil {
		return nil, err
	}
	return func(at partition) (int64, error) {
		block := response.GetBlock(at.topic, at.id)
		if block == nil {
			return 0, sarama.ErrIncompleteResponse
		}
		return block.Offset, errorOf(block.Err)
	}, nil
}

// errorOf returns the error that a code stands for, nil for none.
func errorOf(code sarama.KError) error {
	if errors.Is(code, sarama.ErrNoError) {
		return nil
	}
	return code
}
