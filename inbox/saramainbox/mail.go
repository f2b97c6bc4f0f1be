package saramainbox

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"example.com/outbox-relay/inbox/internal/loop"
)

// How long a dead letter may take, so that a loop that is told to stop is not held up by brokers that are away.
const (
	mailDial    = 5 * time.Second
	mailAck     = 8 * time.Second
	mailRead    = 12 * time.Second
	mailRetries = 3
)

// mailConfig makes the producer's configuration of the consumer's: the same way to the brokers, and every in-sync replica's ack.
func mailConfig(base *sarama.Config) *sarama.Config {
	sc := *base
	sc.Net.DialTimeout, sc.Net.ReadTimeout, sc.Net.WriteTimeout = mailDial, mailRead, mailRead
	sc.Net.MaxOpenRequests = 1
	sc.Metadata.Retry.Max = mailRetries
	sc.Producer.RequiredAcks = sarama.WaitForAll
	sc.Producer.Idempotent = true
	sc.Producer.Timeout = mailAck
	sc.Producer.Retry.Max = mailRetries
	sc.Producer.Return.Successes, sc.Producer.Return.Errors = true, true
	sc.Producer.Partitioner = sarama.NewMurmur2Partitioner
	// The message was small enough once and has grown by its headers; what is too large is the broker's to say.
	sc.Producer.MaxMessageBytes = int(sarama.MaxRequestSize) / 2
	return &sc
}

// mailer writes dead letters. It connects for the first one, and anew after a failure: sarama's idempotent producer does not
// recover from every one.
type mailer struct {
	brokers []string
	config  *sarama.Config

	mu       sync.Mutex
	producer sarama.SyncProducer
}

var _ loop.Mailer = (*mailer)(nil)

// Send implements loop.Mailer. It does not end with its context, but within its own time-outs.
func (m *mailer) Send(_ context.Context, letter loop.Letter) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.producer == nil {
		producer, err := sarama.NewSyncProducer(m.brokers, m.config)
		if err != nil {
			return fmt.Errorf("connect: %w", err)
		}
		m.producer = producer
	}
	msg := &sarama.ProducerMessage{Topic: letter.Topic, Value: sarama.ByteEncoder(letter.Value)}
	if letter.Key != nil {
		msg.Key = sarama.ByteEncoder(letter.Key)
	}
	for _, h := range letter.Headers {
		msg.Headers = append(msg.Headers, sarama.RecordHeader{Key: []byte(h.Key), Value: h.Value})
	}
	_, _, err := m.producer.SendMessage(msg)
	if err != nil {
		_ = m.producer.Close() // what it had in hand has failed
		m.producer = nil
	}
	return err
}

func (m *mailer) close() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.producer == nil {
		return nil
	}
	return m.producer.Close()
}
