package loop

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/retry"
)

// Letter is a record for the dead letter topic.
type Letter struct {
	Topic   string
	Key     []byte
	Value   []byte
	Headers []inbox.Header
}

// Mailer writes to Kafka. Send returns once all in-sync replicas have the letter; after an error it may be there or not. One call
// at a time for each partition.
type Mailer interface {
	Send(ctx context.Context, letter Letter) error
}

// bury makes a dead letter of a message, or says to stop before it.
func (e *Engine) bury(ctx, work context.Context, a *attempt, reason string, cause error) error {
	action := e.policy.Poison
	if reason == inbox.ReasonNoID {
		action = e.policy.NoID
	}
	line := a.log.Error().Str(KeyReason, reason).Int(KeyAttempt, a.failures).Str(KeyError, e.policy.Describe(cause))
	if action == inbox.Stop {
		line.Msg("stopping before a message that can't be handled; mend it or the handler, or move the group's offset past it")
		e.policy.Observe(inbox.Event{Outcome: inbox.OutcomeStopped, Delivery: a.delivery, Err: cause})
		return inbox.NewStopped(a.delivery, reason, a.failures, cause)
	}
	letter := e.letter(a, reason, cause)
	for {
		err := e.mail.Send(work, letter)
		if err == nil {
			a.released()
			line.Str("dead_letter_topic", letter.Topic).Msg("message is a dead letter; look at it there, and write it to its topic again once it can be handled")
			e.policy.Observe(inbox.Event{Outcome: inbox.OutcomeDead, Delivery: a.delivery, Err: cause})
			return nil
		}
		if ended := work.Err(); ended != nil {
			return ended
		}
		// Without its letter the message would be lost, so it stays until there is one.
		wait := a.hold.Next()
		a.held(fmt.Sprintf("write to the dead letter topic %s: %v", letter.Topic, err))
		e.policy.Observe(inbox.Event{Outcome: inbox.OutcomeHeld, Delivery: a.delivery, Err: err, Wait: wait})
		if err := retry.Wait(ctx, wait); err != nil {
			return err
		}
	}
}

// maxError bounds the error's text in a header.
const maxError = 1024

// letter keeps key, value and headers as they are. Headers of an earlier burial are replaced.
func (e *Engine) letter(a *attempt, reason string, cause error) Letter {
	d := a.delivery
	letter := Letter{Topic: e.policy.DeadLetterTopic, Key: d.Key, Value: d.Value}
	for _, h := range d.Headers {
		if !strings.HasPrefix(h.Key, inbox.DeadPrefix) {
			letter.Headers = append(letter.Headers, h)
		}
	}
	text := e.policy.Describe(cause)
	if len(text) > maxError {
		text = strings.ToValidUTF8(text[:maxError], "")
	}
	for _, h := range [][2]string{
		{inbox.HeaderDeadTopic, d.Topic},
		{inbox.HeaderDeadPartition, strconv.FormatInt(int64(d.Partition), 10)},
		{inbox.HeaderDeadOffset, strconv.FormatInt(d.Offset, 10)},
		{inbox.HeaderDeadGroup, e.inbox.Group()},
		{inbox.HeaderDeadReason, reason},
		{inbox.HeaderDeadError, text},
		{inbox.HeaderDeadAttempts, strconv.Itoa(a.failures)},
		{inbox.HeaderDeadTime, time.Now().UTC().Format(time.RFC3339)},
	} {
		letter.Headers = append(letter.Headers, inbox.Header{Key: h[0], Value: []byte(h[1])})
	}
	return letter
}
