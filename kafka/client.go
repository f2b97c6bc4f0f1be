// Package kafka is the relay's side of Kafka: it publishes records with acks=all and an idempotent producer, asks
// about topics, reads the tail of partitions, and says what each failure means.
//
// Two sarama clients do the work. The Producer's never gives up by itself: brokers away, leaders unknown and replicas
// missing are waited for, so that an error for one record can't be followed by a success for a later one of its
// partition. The other is impatient: questions and probes are answered within seconds or fail. When to send what, and
// what to do about a failure, is left to the callers.
package kafka

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/rs/zerolog"
)

// ErrClosed is returned by everything that is used after Close.
var ErrClosed = errors.New("kafka: client is closed")

// askLimit bounds a question or a probe, whatever the caller's context allows.
const askLimit = 5 * time.Second

// Client is one cluster. It may be used from many goroutines.
type Client struct {
	cfg  Config
	log  zerolog.Logger
	dial *dialer

	// ask is the impatient client.
	ask    sarama.Client
	topics *topicCache

	mu     sync.Mutex
	closed bool
	calls  sync.WaitGroup
}

// Open checks the configuration. It needs no broker to be up and connects to none.
func Open(_ context.Context, cfg Config, log zerolog.Logger) (*Client, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	dial := newDialer(askDialTimeout)
	// With Metadata.Full off this only checks the configuration.
	ask, err := sarama.NewClient(cfg.Brokers, cfg.impatient(dial))
	if err != nil {
		return nil, fmt.Errorf("open kafka client: %w", err)
	}
	log = log.With().Str("component", "kafka").Logger()
	return &Client{cfg: cfg, log: log, dial: dial, ask: ask, topics: newTopicCache()}, nil
}

// anyTopic is a topic to ask for where only the answer counts, not what it says. Nearly every cluster has it.
const anyTopic = "__consumer_offsets"

// Reachable asks any broker for an answer. An answer that refuses the question counts, but not one that refuses us.
func (c *Client) Reachable(ctx context.Context) error {
	_, err := call(ctx, c, func() (struct{}, error) {
		err := c.ask.RefreshMetadata(anyTopic)
		if answered(err) {
			return struct{}{}, nil
		}
		return struct{}{}, err
	})
	if err != nil {
		return fmt.Errorf("reach a kafka broker: %w", err)
	}
	return nil
}

// answered reports whether a broker has answered a metadata request for one topic, whatever it thinks of the topic.
func answered(err error) bool {
	var code sarama.KError
	return err == nil || errors.As(err, &code) &&
		!errors.Is(err, sarama.ErrOutOfBrokers) && !errors.Is(err, sarama.ErrSASLAuthenticationFailed)
}

// Partition returns where a key of a topic goes: murmur2 of the key, as Kafka's Java client does.
func (c *Client) Partition(ctx context.Context, topic string, key []byte) (int32, error) {
	partition, err := call(ctx, c, func() (int32, error) {
		partitions, err := c.ask.Partitions(topic)
		if err != nil {
			return 0, err
		}
		return partitionOf(topic, key, partitions)
	})
	if err != nil {
		return 0, fmt.Errorf("partition of topic %s: %w", topic, err)
	}
	return partition, nil
}

// partitionOf is the choice that the main producer makes with the same partitioner.
func partitionOf(topic string, key []byte, partitions []int32) (int32, error) {
	if len(partitions) == 0 {
		return 0, sarama.ErrLeaderNotAvailable
	}
	msg := &sarama.ProducerMessage{Topic: topic, Key: sarama.ByteEncoder(key)}
	choice, err := sarama.NewMurmur2Partitioner(topic).Partition(msg, int32(len(partitions)))
	if err != nil {
		return 0, err
	}
	return partitions[choice], nil
}

// Close cuts what is going on and releases everything. Producers are closed before, by whoever made them.
func (c *Client) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.dial.Cut()
	c.calls.Wait()
	if err := c.ask.Close(); err != nil {
		return fmt.Errorf("close kafka client: %w", err)
	}
	return nil
}

func (c *Client) isClosed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.closed
}

// enter counts a call that Close waits for.
func (c *Client) enter() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return ErrClosed
	}
	c.calls.Add(1)
	return nil
}

// call runs a question that sarama can't be made to stop asking. When ctx ends first the answer is nobody's; the
// question itself ends soon after, by the impatient client's time-outs or by Close.
func call[T any](ctx context.Context, c *Client, question func() (T, error)) (T, error) {
	var none T
	ctx, cancel := context.WithTimeout(ctx, askLimit)
	defer cancel()
	if err := c.enter(); err != nil {
		return none, err
	}
	type answer struct {
		value T
		err   error
	}
	answers := make(chan answer, 1) // room for the answer that nobody waits for
	go func() {
		defer c.calls.Done()
		value, err := question()
		answers <- answer{value, err}
	}()
	select {
	case a := <-answers:
		return a.value, a.err
	case <-ctx.Done():
		return none, ctx.Err()
	}
}
