package kafka

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/router"
	"example.com/outbox-relay/test/bubble"
)

// deaf is a sarama producer whose input is full.
type deaf struct {
	sarama.AsyncProducer
	input chan *sarama.ProducerMessage
}

func (d *deaf) Input() chan<- *sarama.ProducerMessage { return d.input }

// A Send in progress when Close begins gives its place back. Close has nothing to wait for any more.
func TestCloseEndsWithTheSendThatItInterrupts(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		c := &Client{topics: newTopicCache()}
		p, err := c.NewProducer(func(Result) {})
		require.NoError(t, err)
		full := &lane{dial: newDialer(time.Second), producer: &deaf{input: make(chan *sarama.ProducerMessage)}}
		p.queues["orders"] = &topicQueue{lane: full}
		sent := make(chan error, 1) // size 1: it is read after Close
		go func() { sent <- p.Send(t.Context(), &router.Record{Topic: "orders"}, 1) }()
		synctest.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		require.NoError(t, p.Close(ctx))
		require.ErrorIs(t, <-sent, ErrClosed)
		require.Less(t, time.Since(begun), time.Second)
	})
}

// An outcome becomes unknown while Close waits. What waits behind it is not sent any more, and not waited for.
func TestCloseDoesNotWaitForWhatIsGivenUpMeanwhile(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		c := &Client{topics: newTopicCache()}
		p, err := c.NewProducer(func(Result) {})
		require.NoError(t, err)
		queue := &topicQueue{lane: &lane{dial: newDialer(time.Second)}, inside: perTopic}
		waiting := seal(&router.Record{Topic: "orders"}, 1)
		waiting.queue = queue
		queue.waiting = []*envelope{waiting}
		p.backlog, p.pending = []*topicQueue{queue}, 1
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		begun := time.Now()
		closed := make(chan error, 1) // size 1: it is read after the producer has given up
		go func() { closed <- p.Close(ctx) }()
		synctest.Wait()
		p.giveUp(queue)
		require.ErrorIs(t, <-closed, ErrAbandoned)
		require.Less(t, time.Since(begun), time.Second)
	})
}
