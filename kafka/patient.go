package kafka

import (
	"errors"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// goneAfter is how long a topic that was there may be unknown to the brokers before its records come back as errors: a
// broker that has just started may know it only after a moment.
const goneAfter = 10 * time.Second

// patientClient makes sarama's producer wait for leaders instead of giving up on records, and stop waiting when the
// dialer is cut.
//
// sarama's own way is Metadata.Retry.Max. It sleeps without looking at anything, a refresh that is retried for one
// topic keeps every other topic from being refreshed, and a success for one topic ends the retries of another with an
// error. Each of these hands out errors, or keeps other topics from flowing. So the retries are off, and this does the
// waiting, for each topic by itself. Leader and Partitions are called from goroutines of a partition or a topic, which
// may wait; RefreshMetadata is also called from the goroutine of a whole broker, which may not.
type patientClient struct {
	sarama.Client
	dial *dialer

	mu    sync.Mutex
	stale map[string]bool      // topics whose leaders were asked for in vain: what is cached is what has just failed
	gone  map[string]time.Time // since when a topic has been unknown
}

func newPatientClient(client sarama.Client, dial *dialer) *patientClient {
	return &patientClient{Client: client, dial: dial, stale: map[string]bool{}, gone: map[string]time.Time{}}
}

// RefreshMetadata tries once. A failure is remembered, and made up for by whoever needs a leader of these topics.
func (c *patientClient) RefreshMetadata(topics ...string) error {
	if c.dial.isCut() {
		return errCut
	}
	if len(topics) == 1 {
		_ = c.refresh(topics[0]) // it has taken note of the outcome
		return nil
	}
	if err := c.Client.RefreshMetadata(topics...); err != nil {
		for _, topic := range topics {
			c.markStale(topic)
		}
	}
	return nil
}

// refresh asks about one topic and takes note of the outcome.
func (c *patientClient) refresh(topic string) error {
	err := c.Client.RefreshMetadata(topic)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		if c.gone[topic].IsZero() {
			c.gone[topic] = time.Now()
		}
		delete(c.stale, topic)
	case answered(err):
		delete(c.gone, topic)
		delete(c.stale, topic)
	default:
		c.stale[topic] = true
	}
	return err
}

func (c *patientClient) isStale(topic string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stale[topic]
}

// worthWaiting separates the failures that end by themselves from those that somebody has to end.
func (c *patientClient) worthWaiting(topic string, err error) bool {
	switch {
	case errors.Is(err, sarama.ErrTopicAuthorizationFailed), errors.Is(err, sarama.ErrInvalidTopic),
		errors.Is(err, sarama.ErrClosedClient):
		return false
	case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		c.mu.Lock()
		defer c.mu.Unlock()
		since, known := c.gone[topic]
		return !known || time.Since(since) < goneAfter
	}
	return true
}

// Leader returns the partition's leader, as soon as there is one.
func (c *patientClient) Leader(topic string, partition int32) (leader *sarama.Broker, err error) {
	err = c.wait(topic, func() (err error) {
		leader, err = c.Client.Leader(topic, partition)
		return err
	})
	return leader, err
}

// Partitions returns the topic's partitions, as soon as they are known.
func (c *patientClient) Partitions(topic string) (partitions []int32, err error) {
	err = c.wait(topic, func() (err error) {
		partitions, err = c.Client.Partitions(topic)
		return err
	})
	return partitions, err
}

// WritablePartitions is for records without a key, which we never send.
func (c *patientClient) WritablePartitions(topic string) ([]int32, error) { return c.Partitions(topic) }

// Close does nothing: the lane closes the client, once the producer has ended.
func (c *patientClient) Close() error { return nil }

// wait looks for what is wanted in fresh metadata until it is there, or can't be.
func (c *patientClient) wait(topic string, find func() error) error {
	for attempt := 1; ; attempt++ {
		if c.dial.isCut() {
			return errCut
		}
		var err error
		if c.isStale(topic) {
			err = c.refresh(topic)
		}
		// A topic may have leaders for some of its partitions only.
		if err == nil || errors.Is(err, sarama.ErrLeaderNotAvailable) {
			err = find()
		}
		if err == nil || !c.worthWaiting(topic, err) {
			return err
		}
		if !c.dial.pause(backoffFor(attempt)) {
			return errCut
		}
		c.markStale(topic)
	}
}

func (c *patientClient) markStale(topic string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stale[topic] = true
}
