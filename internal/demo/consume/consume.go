// Package consume is the service behind Kafka: it reads topics from their start into an oracle's log, every record,
// duplicates too, and takes the time as soon as the client has one.
//
// It speaks through franz-go, another client than the relay's, so that a mistake of one is not hidden by the other.
// Topics may be created later. Tests and the demo command share it.
package consume

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/outbox-relay/internal/oracle"
)

// Config says what to read.
type Config struct {
	Brokers []string
	// Topics are read from their start, also those that do not exist yet.
	Topics []string
	// Prefix keeps only the records whose msg_id begins with it: a topic may hold those of earlier runs. "" keeps all.
	Prefix string
	// TLS is nil for none.
	TLS   *tls.Config
	Login Login
}

// Consumer reads topics into a log.
type Consumer struct {
	client *kgo.Client
	prefix string
	log    *oracle.Log
}

// The waits are short: the broker answers as soon as there is one byte, and a topic's creation is noticed at once.
const (
	fetchWait   = 250 * time.Millisecond
	metadataMin = 250 * time.Millisecond
	metadataMax = time.Second
	retryPause  = 100 * time.Millisecond
)

// Open returns a consumer that adds to the log. It does not need the brokers to be up.
func Open(cfg Config, log *oracle.Log) (*Consumer, error) {
	opts := []kgo.Opt{
		kgo.SeedBrokers(cfg.Brokers...), kgo.ClientID("outbox-relay-test-consumer"),
		kgo.ConsumeTopics(cfg.Topics...), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchMinBytes(1), kgo.FetchMaxWait(fetchWait),
		kgo.MetadataMinAge(metadataMin), kgo.MetadataMaxAge(metadataMax),
		kgo.RetryTimeout(time.Second), kgo.RetryBackoffFn(func(int) time.Duration { return retryPause }),
	}
	if cfg.TLS != nil {
		opts = append(opts, kgo.DialTLSConfig(cfg.TLS))
	}
	mechanism, err := cfg.Login.mechanism()
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	if mechanism != nil {
		opts = append(opts, kgo.SASL(mechanism))
	}
	client, err := kgo.NewClient(opts...)
	if err != nil {
		return nil, fmt.Errorf("consumer: %w", err)
	}
	return &Consumer{client: client, prefix: cfg.Prefix, log: log}, nil
}

// Run reads until the context ends, which is no error, and closes the consumer. Brokers that are away are waited for;
// what the client can't mend (data lost on the broker) is an error.
func (c *Consumer) Run(ctx context.Context) error {
	defer c.client.Close()
	var batch []oracle.Record
	for {
		fetches := c.client.PollFetches(ctx)
		seen := time.Now()
		if ctx.Err() != nil || fetches.IsClientClosed() {
			return nil
		}
		if err := broken(fetches); err != nil {
			return err
		}
		batch = batch[:0]
		fetches.EachRecord(func(r *kgo.Record) {
			if record := convert(r, seen); strings.HasPrefix(record.MsgID, c.prefix) {
				batch = append(batch, record)
			}
		})
		c.log.Add(batch...)
	}
}

// broken returns the errors that are not just a broker or a topic being away.
func broken(fetches kgo.Fetches) error {
	for _, failed := range fetches.Errors() {
		if _, lost := errors.AsType[*kgo.ErrDataLoss](failed.Err); lost {
			return fmt.Errorf("consume %s[%d]: %w", failed.Topic, failed.Partition, failed.Err)
		}
	}
	return nil
}

func convert(r *kgo.Record, seen time.Time) oracle.Record {
	record := oracle.Record{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: string(r.Key), Value: oracle.HashOf(r.Value), Size: len(r.Value),
		Headers: make(map[string]string, len(r.Headers)), Timestamp: r.Timestamp, Seen: seen,
	}
	for _, h := range r.Headers {
		record.Headers[h.Key] = string(h.Value)
	}
	record.MsgID = record.Headers["msg_id"]
	return record
}
