package kafka

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	"github.com/IBM/sarama"

	"example.com/outbox-relay/router"
)

// probePatience is how long a probe lets pass what passes by itself: a topic that was just made, a leader that moves,
// a connection that the broker had closed as idle.
const probePatience = 2 * time.Second

// Probe sends one record by itself, is over within seconds, and returns where it went. It goes to the partition that
// the Producer would choose, but is not ordered with what a Producer still holds. After a failure that is classed
// Unreachable the record may be in Kafka all the same.
func (c *Client) Probe(ctx context.Context, rec *router.Record) (partition int32, offset int64, err error) {
	type written struct {
		partition int32
		offset    int64
	}
	until := time.Now().Add(probePatience)
	at, err := call(ctx, c, func() (at written, err error) {
		for attempt := 1; ; attempt++ {
			at.partition, at.offset, err = c.produceOne(rec)
			if err == nil || !passes(err) || time.Now().After(until) || !c.dial.pause(backoffFor(attempt)) {
				return at, err
			}
		}
	})
	if err != nil {
		c.topics.forget(rec.Topic)
		return 0, OffsetUnknown, fmt.Errorf("send one record to topic %s: %w", rec.Topic, explain(err))
	}
	return at.partition, at.offset, nil
}

// produceOne speaks to the leader itself: sarama's SyncProducer has goroutines and retries that a lone record does not
// need, and refuses for ten seconds what has failed three times.
func (c *Client) produceOne(rec *router.Record) (int32, int64, error) {
	// Fresh metadata, or the only attempt may go to a leader that is one no longer.
	if err := c.ask.RefreshMetadata(rec.Topic); err != nil && !errors.Is(err, sarama.ErrLeaderNotAvailable) {
		return 0, 0, err
	}
	partitions, err := c.ask.Partitions(rec.Topic)
	if err != nil {
		return 0, 0, err
	}
	partition, err := partitionOf(rec.Topic, rec.Key, partitions)
	if err != nil {
		return 0, 0, err
	}
	leader, err := c.ask.Leader(rec.Topic, partition)
	if err != nil {
		return 0, 0, err
	}
	answer, err := leader.Produce(c.produceRequest(rec, partition))
	if err != nil {
		c.drop(leader)
		return 0, 0, err
	}
	block := answer.GetBlock(rec.Topic, partition)
	switch {
	case block == nil:
		return 0, 0, sarama.ErrIncompleteResponse
	case !errors.Is(block.Err, sarama.ErrNoError):
		return 0, 0, block.Err
	}
	return partition, block.Offset, nil
}

// passes reports failures of a moment, after which the record is not in Kafka, or hardly ever: a broken connection may
// have carried it.
func passes(err error) bool {
	var timeout net.Error
	if errors.Is(err, sarama.ErrOutOfBrokers) {
		return false // every broker was tried
	}
	return errors.Is(err, sarama.ErrNotLeaderForPartition) || errors.Is(err, sarama.ErrLeaderNotAvailable) ||
		errors.Is(err, sarama.ErrFencedLeaderEpoch) || errors.Is(err, sarama.ErrUnknownLeaderEpoch) ||
		errors.Is(err, io.EOF) || errors.Is(err, sarama.ErrNotConnected) ||
		errors.As(err, &timeout) && !timeout.Timeout()
}

func (c *Client) produceRequest(rec *router.Record, partition int32) *sarama.ProduceRequest {
	headers := saramaHeaders(nil, rec.Headers)
	record := &sarama.Record{Key: rec.Key, Value: rec.Value, Headers: make([]*sarama.RecordHeader, len(headers))}
	for i := range headers {
		record.Headers[i] = &headers[i]
	}
	now := time.Now().Truncate(time.Millisecond)
	request := &sarama.ProduceRequest{
		Version:      7, // with zstd; every broker from 2.1 on speaks it
		RequiredAcks: sarama.WaitForAll,
		Timeout:      int32(probeAck / time.Millisecond),
	}
	request.AddBatch(rec.Topic, partition, &sarama.RecordBatch{
		Version:          2,
		Codec:            codecs[c.cfg.Compression],
		CompressionLevel: sarama.CompressionLevelDefault,
		FirstTimestamp:   now,
		MaxTimestamp:     now,
		ProducerID:       -1,
		ProducerEpoch:    -1,
		FirstSequence:    -1,
		Records:          []*sarama.Record{record},
	})
	return request
}
