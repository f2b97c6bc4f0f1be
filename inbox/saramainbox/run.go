package saramainbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/IBM/sarama"
	"github.com/rs/zerolog"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/inbox/internal/loop"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
)

// The pause before brokers that are away are asked again.
const (
	pauseLeast = 100 * time.Millisecond
	pauseMost  = 10 * time.Second
)

// Run consumes the topics as a member of the inbox's group, until ctx ends (nil), or the policy stops before a message
// (*inbox.Stopped). Brokers and databases that are away are waited for. What is wrong with the configuration is returned at once.
func Run(ctx context.Context, in *inbox.Inbox, handler inbox.Handler, cfg Config, log zerolog.Logger) error {
	cfg, sc, err := cfg.complete()
	if err != nil {
		return fmt.Errorf("consume by sarama: %w", err)
	}
	log = log.With().Str("component", "saramainbox").Logger()
	mail := &mailer{brokers: cfg.Brokers, config: mailConfig(sc)}
	m := &member{engine: loop.New(in, handler, cfg.Policy, mail, log), log: log}
	err = m.run(ctx, cfg, sc, in.Group())
	return errors.Join(err, mail.close())
}

// member is this process in the group. It is sarama's handler.
type member struct {
	engine *loop.Engine
	log    zerolog.Logger

	mu      sync.Mutex
	stopped error // the first claim's reason to stop
}

var _ sarama.ConsumerGroupHandler = (*member)(nil)

func (m *member) run(ctx context.Context, cfg Config, sc *sarama.Config, groupID string) error {
	group, err := m.join(ctx, cfg.Brokers, groupID, sc)
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return nil // told to stop while the brokers were away
	case err != nil:
		return err
	}
	var errs sync.WaitGroup
	errs.Go(func() {
		state := trouble.New(m.log, trouble.Texts{Fails: "trouble with the brokers", Level: zerolog.WarnLevel})
		for err := range group.Errors() {
			state.Note(err)
		}
	})
	pause := retry.Doubling(pauseLeast, pauseMost).Attempts()
	state := trouble.New(m.log, trouble.Texts{Fails: "the session ended, joining again", Works: "joined again", Level: zerolog.WarnLevel})
	for ctx.Err() == nil {
		err := group.Consume(ctx, cfg.Topics, m)
		if ctx.Err() == nil {
			state.Note(err)
		}
		if err == nil {
			pause.Reset()
		}
		if m.reason() != nil || retry.Wait(ctx, pause.Next()) != nil {
			break
		}
	}
	if err := group.Close(); err != nil {
		// The offsets were committed when the session ended; the brokers will notice by themselves that the member is gone.
		m.log.Warn().Err(err).Msg("leaving the group")
	}
	errs.Wait()
	return m.reason()
}

// join waits until the brokers can be reached, or ctx ends.
func (m *member) join(ctx context.Context, brokers []string, groupID string, sc *sarama.Config) (sarama.ConsumerGroup, error) {
	var group sarama.ConsumerGroup
	state := trouble.New(m.log, trouble.Texts{Fails: "brokers can't be reached, trying again", Works: "brokers can be reached", Level: zerolog.WarnLevel})
	err := state.Until(ctx, retry.Doubling(pauseLeast, pauseMost), func(context.Context) (err error) {
		group, err = sarama.NewConsumerGroup(brokers, groupID, sc)
		if _, wrong := errors.AsType[sarama.ConfigurationError](err); wrong {
			return retry.Final(fmt.Errorf("consume by sarama: %w", err))
		}
		return err
	})
	return group, err
}

// Setup tells what was assigned.
func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.log.Info().Interface("claims", session.Claims()).Msg("partitions assigned")
	return nil
}

// Cleanup has nothing to do: what is marked is committed right after it.
func (m *member) Cleanup(sarama.ConsumerGroupSession) error { return nil }

// ConsumeClaim handles one partition until it is revoked. sarama commits what is marked when all claims have returned.
func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	ctx := session.Context()
	work, release := m.engine.Work(ctx)
	defer release()
	for {
		select {
		case msg, open := <-claim.Messages():
			if !open || ctx.Err() != nil {
				return nil
			}
			if err := m.engine.Handle(ctx, work, delivery(msg)); err != nil {
				m.stop(err)
				return nil // given up: ctx has ended, or the loop stops
			}
			session.MarkMessage(msg, "")
		case <-ctx.Done():
			return nil
		}
	}
}

// stop keeps the policy's word to stop. The claim that returns ends the session, and with it the other claims.
func (m *member) stop(err error) {
	if _, ok := errors.AsType[*inbox.Stopped](err); !ok {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.stopped == nil {
		m.stopped = err
	}
}

func (m *member) reason() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.stopped
}

func delivery(msg *sarama.ConsumerMessage) *inbox.Delivery {
	d := &inbox.Delivery{
		Topic: msg.Topic, Partition: msg.Partition, Offset: msg.Offset, Key: msg.Key, Value: msg.Value, Timestamp: msg.Timestamp,
		Headers: make([]inbox.Header, 0, len(msg.Headers)),
	}
	for _, h := range msg.Headers {
		d.Headers = append(d.Headers, inbox.Header{Key: string(h.Key), Value: h.Value})
	}
	return d
}
