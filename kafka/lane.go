package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
	"github.com/rs/zerolog"

	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
)

// lane is one sarama producer with its connections. sarama fills a batch up to one size for all topics, and a topic
// with a lower max.message.bytes refuses the whole batch, small records and all. So there is a lane for each limit;
// mostly there is one.
type lane struct {
	dial     *dialer
	client   sarama.Client
	producer sarama.AsyncProducer
	drained  chan struct{} // closed once sarama has ended and every result was delivered
}

// newLane connects, which takes until a broker hands out a producer id. It gives up when ctx ends.
func newLane(ctx context.Context, cfg *Config, maxBytes int, topic string, log zerolog.Logger) (*lane, error) {
	dial := newDialer(dialTimeout)
	client, err := sarama.NewClient(cfg.Brokers, cfg.patient(dial, maxBytes))
	if err != nil {
		return nil, fmt.Errorf("open producer: %w", err)
	}
	l := &lane{dial: dial, client: client, drained: make(chan struct{})}
	// The connecting below knows no context; cutting the connections ends it.
	stop := context.AfterFunc(ctx, dial.Cut)
	l.producer, err = connect(l, topic, log)
	if !stop() || err != nil {
		return nil, errors.Join(fmt.Errorf("open producer: %w", errors.Join(err, context.Cause(ctx))), l.discard())
	}
	return l, nil
}

// worthTelling is after how long without a broker somebody may want to know.
const worthTelling = time.Second

// connect repeats until there is a producer or the dialer is cut.
func connect(l *lane, topic string, log zerolog.Logger) (sarama.AsyncProducer, error) {
	patient := newPatientClient(l.client, l.dial)
	backoff := retry.Doubling(backoffMin, 2*time.Second).Attempts()
	state := trouble.New(log, trouble.Texts{
		Fails: "producer waits for a broker", Works: "producer has a broker", Level: zerolog.WarnLevel, After: worthTelling,
	})
	for {
		// sarama asks the first bootstrap broker for a producer id, dead or not; after a refresh it knows which live.
		err := patient.refresh(topic)
		if answered(err) {
			var producer sarama.AsyncProducer
			if producer, err = sarama.NewAsyncProducerFromClient(patient); err == nil {
				state.Note(nil)
				return producer, nil
			}
		}
		if !l.dial.isCut() {
			state.Note(err)
		}
		if !l.dial.pause(backoff.Next()) {
			return nil, err
		}
	}
}

// discard releases a lane whose producer never came to be.
func (l *lane) discard() error {
	l.dial.Cut()
	if l.producer != nil {
		l.producer.AsyncClose()
		go func() {
			for range l.producer.Successes() {
			}
		}()
		for range l.producer.Errors() {
		}
	}
	return l.client.Close()
}

// drain hands every result to done, until sarama has ended. sarama stops dead when one of its channels is not read, so
// both are, by one goroutine, to keep the order of each partition's acks.
func (l *lane) drain(done func(*sarama.ProducerMessage, error)) {
	defer close(l.drained)
	successes, failures := l.producer.Successes(), l.producer.Errors()
	for successes != nil || failures != nil {
		select {
		case msg, ok := <-successes:
			if !ok {
				successes = nil
				continue
			}
			done(msg, nil)
		case failure, ok := <-failures:
			if !ok {
				failures = nil
				continue
			}
			done(failure.Msg, failure.Err)
		}
	}
}

// close ends the lane, which has no record left. The wait is bounded, in case sarama does not end.
func (l *lane) close(limit time.Duration) error {
	l.producer.AsyncClose()
	timer := time.NewTimer(limit)
	defer timer.Stop()
	select {
	case <-l.drained:
	case <-timer.C:
		l.dial.Cut()
		return fmt.Errorf("close producer: sarama did not end within %s", limit)
	}
	err := l.client.Close()
	// Also what sarama closes in the background is closed now.
	l.dial.Cut()
	if err != nil {
		return fmt.Errorf("close producer: %w", err)
	}
	return nil
}
