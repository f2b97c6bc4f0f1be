package loop_test

import (
	"bytes"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/inbox/internal/loop"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/test/bubble"
)

// table is an inbox without a database: it runs the handler, or fails as it is told to before that.
type table struct {
	before []error // what Do returns without the handler, one for each call
	done   map[string]bool
}

func (*table) Group() string { return "points" }

func (b *table) Do(ctx context.Context, d inbox.Delivery, handler func(context.Context, *sql.Tx) error) (inbox.Result, error) {
	if len(b.before) > 0 {
		err := b.before[0]
		b.before = b.before[1:]
		if err != nil {
			return inbox.None, err
		}
	}
	if b.done[d.ID] {
		return inbox.Duplicate, nil
	}
	if err := handler(ctx, nil); err != nil {
		return inbox.None, fmt.Errorf("handle message %s: %w", d.ID, err)
	}
	if err := ctx.Err(); err != nil {
		return inbox.None, err
	}
	b.done[d.ID] = true
	return inbox.Handled, nil
}

// box keeps letters; it fails as it is told to first.
type box struct {
	letters []loop.Letter
	fail    []error
}

func (m *box) Send(_ context.Context, letter loop.Letter) error {
	if len(m.fail) > 0 {
		err := m.fail[0]
		m.fail = m.fail[1:]
		return err
	}
	m.letters = append(m.letters, letter)
	return nil
}

// bench is an engine on such a table, with what it told.
type bench struct {
	*loop.Engine
	table  *table
	mail   *box
	events []inbox.Event
	log    bytes.Buffer
}

func newBench(t *testing.T, policy inbox.Policy, handler func(ctx context.Context, d *inbox.Delivery) error) *bench {
	t.Helper()
	b := &bench{table: &table{done: map[string]bool{}}, mail: &box{}}
	if policy.DeadLetterTopic == "" {
		policy.DeadLetterTopic = "dead"
	}
	if policy.Retry.Backoff == nil {
		policy.Retry = retry.Policy{Backoff: []time.Duration{time.Second, 10 * time.Second}, MaxRetries: 2}
	}
	policy.Observe = func(e inbox.Event) { b.events = append(b.events, e) }
	policy, err := policy.Complete()
	require.NoError(t, err)
	b.Engine = loop.New(b.table, func(ctx context.Context, _ *sql.Tx, d *inbox.Delivery) error { return handler(ctx, d) }, policy, b.mail, zerolog.New(&b.log))
	return b
}

// handle handles one delivery with a context that does not end.
func (b *bench) handle(t *testing.T, d *inbox.Delivery) error {
	t.Helper()
	work, release := b.Work(t.Context())
	defer release()
	return b.Handle(t.Context(), work, d)
}

func (b *bench) outcomes() (all []string) {
	for _, e := range b.events {
		all = append(all, e.Outcome.String())
	}
	return all
}

const secret = "card 4111 1111"

var errBad = errors.New(secret)

func delivery() *inbox.Delivery {
	return &inbox.Delivery{
		Topic: "orders", Partition: 2, Offset: 41, Key: []byte("7"), Value: []byte(secret),
		Headers: []inbox.Header{{Key: "msg_id", Value: []byte("m-1")}, {Key: "inbox_reason", Value: []byte("an earlier one")}, {Key: "x", Value: []byte("y")}},
	}
}

func header(l loop.Letter, name string) (values []string) {
	for _, h := range l.Headers {
		if h.Key == name {
			values = append(values, string(h.Value))
		}
	}
	return values
}

func TestHandledThenDuplicate(t *testing.T) {
	t.Parallel()
	calls := 0
	b := newBench(t, inbox.Policy{}, func(_ context.Context, d *inbox.Delivery) error {
		calls++
		assert.Equal(t, "m-1", d.ID)
		assert.Equal(t, 1, d.Attempt)
		return nil
	})
	require.NoError(t, b.handle(t, delivery()))
	require.NoError(t, b.handle(t, delivery()))
	assert.Equal(t, 1, calls)
	assert.Equal(t, []string{"handled", "duplicate"}, b.outcomes())
}

func TestRetriesInPlaceThenDeadLetter(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		var at []time.Duration
		start := time.Now()
		b := newBench(t, inbox.Policy{}, func(_ context.Context, d *inbox.Delivery) error {
			at = append(at, time.Since(start))
			assert.Equal(t, len(at), d.Attempt)
			return errBad
		})
		require.NoError(t, b.handle(t, delivery()))
		assert.Equal(t, []time.Duration{0, time.Second, 11 * time.Second}, at)
		assert.Equal(t, []string{"failed", "failed", "dead"}, b.outcomes())
		require.Len(t, b.mail.letters, 1)
		letter := b.mail.letters[0]
		assert.Equal(t, "dead", letter.Topic)
		assert.Equal(t, "7", string(letter.Key))
		assert.Equal(t, secret, string(letter.Value), "the body goes with it, untouched")
		for name, want := range map[string]string{
			"msg_id": "m-1", "x": "y", inbox.HeaderDeadTopic: "orders", inbox.HeaderDeadPartition: "2", inbox.HeaderDeadOffset: "41",
			inbox.HeaderDeadGroup: "points", inbox.HeaderDeadReason: inbox.ReasonSpent, inbox.HeaderDeadError: "*errors.errorString",
			inbox.HeaderDeadAttempts: "3", inbox.HeaderDeadTime: time.Now().UTC().Format(time.RFC3339),
		} {
			assert.Equal(t, []string{want}, header(letter, name), name)
		}
		assert.NotContains(t, b.log.String(), secret)
		assert.False(t, b.table.done["m-1"], "a dead letter was not handled")
	})
}

func TestPermanentIsADeadLetterAtOnce(t *testing.T) {
	t.Parallel()
	b := newBench(t, inbox.Policy{Describe: inbox.ErrorText}, func(context.Context, *inbox.Delivery) error {
		return fmt.Errorf("read: %w", inbox.Permanent(errors.New("no JSON")))
	})
	require.NoError(t, b.handle(t, delivery()))
	assert.Equal(t, []string{"dead"}, b.outcomes())
	assert.Equal(t, []string{inbox.ReasonPermanent}, header(b.mail.letters[0], inbox.HeaderDeadReason))
	assert.Equal(t, []string{"handle message m-1: read: no JSON"}, header(b.mail.letters[0], inbox.HeaderDeadError))
	assert.Equal(t, []string{"1"}, header(b.mail.letters[0], inbox.HeaderDeadAttempts))
}

func TestRetryAfterIsHonoured(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		start := time.Now()
		b := newBench(t, inbox.Policy{}, func(_ context.Context, d *inbox.Delivery) error {
			if d.Attempt < 3 {
				return inbox.RetryAfter(time.Minute, errBad)
			}
			return nil
		})
		require.NoError(t, b.handle(t, delivery()))
		assert.Equal(t, 2*time.Minute, time.Since(start))
		assert.Equal(t, []string{"failed", "failed", "handled"}, b.outcomes())
	})
}

func TestStopPolicyEndsBeforeTheMessage(t *testing.T) {
	t.Parallel()
	b := newBench(t, inbox.Policy{Poison: inbox.Stop}, func(context.Context, *inbox.Delivery) error { return inbox.Permanent(errBad) })
	err := b.handle(t, delivery())
	var stopped *inbox.Stopped
	require.ErrorAs(t, err, &stopped)
	require.ErrorIs(t, err, errBad)
	assert.NotContains(t, err.Error(), secret)
	assert.Equal(t, []any{"orders", int32(2), int64(41), "m-1", inbox.ReasonPermanent, 1},
		[]any{stopped.Topic, stopped.Partition, stopped.Offset, stopped.ID, stopped.Reason, stopped.Attempts})
	assert.Empty(t, b.mail.letters)
	assert.Equal(t, []string{"stopped"}, b.outcomes())
}

func TestRecordsWithoutAnID(t *testing.T) {
	t.Parallel()
	never := func(context.Context, *inbox.Delivery) error { return errors.New("the handler ran") }
	bare := &inbox.Delivery{Topic: "orders", Partition: 2, Offset: 41}
	b := newBench(t, inbox.Policy{}, never)
	require.NoError(t, b.handle(t, bare))
	assert.Equal(t, []string{inbox.ReasonNoID}, header(b.mail.letters[0], inbox.HeaderDeadReason))
	b = newBench(t, inbox.Policy{NoID: inbox.Stop}, never)
	require.ErrorIs(t, b.handle(t, bare), inbox.ErrID)
	b = newBench(t, inbox.Policy{ID: inbox.PositionID}, func(context.Context, *inbox.Delivery) error { return nil })
	require.NoError(t, b.handle(t, bare))
	assert.True(t, b.table.done["orders/2/41"])
}

// A database that is away for hours makes no dead letter, and an unknown commit is asked about at the next attempt.
func TestTheDatabasesFaultsAreNotCounted(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		start := time.Now()
		calls := 0
		b := newBench(t, inbox.Policy{}, func(context.Context, *inbox.Delivery) error { calls++; return nil })
		for range 200 {
			b.table.before = append(b.table.before, fmt.Errorf("begin: %w", inbox.ErrUnavailable))
		}
		b.table.before = append(b.table.before, fmt.Errorf("commit: %w", inbox.ErrUnknown))
		require.NoError(t, b.handle(t, delivery()))
		assert.Equal(t, 1, calls)
		assert.Greater(t, time.Since(start), 10*time.Minute)
		assert.Less(t, bytes.Count(b.log.Bytes(), []byte("is held")), 60, "an outage is logged once a minute")
		assert.Equal(t, "handled", b.outcomes()[201])
	})
}

func TestPanicsAreFailures(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t, inbox.Policy{}, func(_ context.Context, d *inbox.Delivery) error {
			if d.Attempt == 3 {
				return errors.New([]string{}[len(d.Headers)])
			}
			panic(secret)
		})
		require.NoError(t, b.handle(t, delivery()))
		letter := b.mail.letters[0]
		assert.Equal(t, []string{inbox.ReasonPanic}, header(letter, inbox.HeaderDeadReason))
		assert.Equal(t, []string{"handler panicked: runtime error: index out of range [3] with length 0"}, header(letter, inbox.HeaderDeadError))
		assert.NotContains(t, b.log.String(), secret)
		assert.Contains(t, b.log.String(), "engine_test.go", "the stack tells where")
	})
}

// Without its letter a message would be lost: it is held until the dead letter topic takes it, or the loop ends.
func TestADeadLetterThatCannotBeWrittenHoldsTheMessage(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		b := newBench(t, inbox.Policy{}, func(context.Context, *inbox.Delivery) error { return inbox.Permanent(errBad) })
		b.mail.fail = []error{errors.New("unknown topic"), errors.New("unknown topic")}
		require.NoError(t, b.handle(t, delivery()))
		assert.Equal(t, []string{"held", "held", "dead"}, b.outcomes())
		assert.Contains(t, b.log.String(), "write to the dead letter topic dead: unknown topic")

		for range 1000 {
			b.mail.fail = append(b.mail.fail, errors.New("unknown topic"))
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		work, release := b.Work(ctx)
		defer release()
		require.ErrorIs(t, b.Handle(ctx, work, delivery()), context.DeadlineExceeded)
		assert.Len(t, b.mail.letters, 1)
	})
}

func TestRunningHandlerMayFinishAfterTheEnd(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		b := newBench(t, inbox.Policy{Grace: 20 * time.Second}, func(ctx context.Context, _ *inbox.Delivery) error {
			cancel()
			return retry.Wait(ctx, 19*time.Second)
		})
		work, release := b.Work(ctx)
		defer release()
		require.NoError(t, b.Handle(ctx, work, delivery()), "it finished within the grace, so its offset may be committed")
		require.ErrorIs(t, b.Handle(ctx, work, delivery()), context.Canceled, "nothing new is begun")
		assert.Equal(t, []string{"handled"}, b.outcomes())
	})
}

func TestHandlerBeyondTheGraceIsGivenUp(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start := time.Now()
		b := newBench(t, inbox.Policy{Grace: 20 * time.Second}, func(ctx context.Context, _ *inbox.Delivery) error {
			cancel()
			return retry.Wait(ctx, time.Hour)
		})
		work, release := b.Work(ctx)
		defer release()
		require.Error(t, b.Handle(ctx, work, delivery()))
		assert.Equal(t, 20*time.Second, time.Since(start))
		assert.False(t, b.table.done["m-1"])
		assert.Empty(t, b.mail.letters, "being told to stop is no failure of the message")
		assert.Empty(t, b.events)
	})
}

func TestHandlerThatIgnoresItsContextIsLeftBehind(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		start, leave := time.Now(), make(chan struct{})
		b := newBench(t, inbox.Policy{Grace: 20 * time.Second}, func(context.Context, *inbox.Delivery) error {
			cancel()
			<-leave
			return nil
		})
		work, release := b.Work(ctx)
		defer release()
		require.ErrorIs(t, b.Handle(ctx, work, delivery()), loop.ErrDetached)
		assert.Equal(t, 25*time.Second, time.Since(start))
		close(leave)
		synctest.Wait()
		assert.False(t, b.table.done["m-1"], "it can't commit any more")
	})
}

func TestPauseEndsWithItsContext(t *testing.T) {
	t.Parallel()
	bubble.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		start := time.Now()
		b := newBench(t, inbox.Policy{}, func(context.Context, *inbox.Delivery) error { return errBad })
		work, release := b.Work(ctx)
		defer release()
		require.ErrorIs(t, b.Handle(ctx, work, delivery()), context.DeadlineExceeded)
		assert.Equal(t, 500*time.Millisecond, time.Since(start))
	})
}
