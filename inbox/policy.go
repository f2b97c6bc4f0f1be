package inbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strconv"
	"time"

	"example.com/outbox-relay/retry"
)

// Handler does the work of one message in the loops (saramainbox, kgoinbox). What is said of Do's handler holds for it.
type Handler func(ctx context.Context, tx *sql.Tx, d *Delivery) error

// Action is what a loop does with a message that it can't get handled.
type Action uint8

const (
	// DeadLetter writes the message to Policy.DeadLetterTopic, with the reason in headers, and goes on with the next one.
	DeadLetter Action = iota
	// Stop ends the loop before the message, with a *Stopped. It comes first again at the next start. It is for streams in
	// which nothing may be passed over.
	Stop
)

// String returns the action's name.
func (a Action) String() string {
	switch a {
	case DeadLetter:
		return "dead-letter"
	case Stop:
		return "stop"
	}
	return "action(" + strconv.Itoa(int(a)) + ")"
}

// Policy says what the loops do with messages that fail. The zero value needs a DeadLetterTopic.
//
// A handler's error counts as a failure of the message: it is tried again after a pause, in place, so that the messages behind
// it in its partition wait and the order stays. A database that can't serve is no failure of the message: it is held,
// however long that takes, and nothing is counted. Failures are counted in the process: a restart or a rebalance begins anew.
type Policy struct {
	// Retry gives the pauses between attempts, and how many failures a message may have. Zero means DefaultRetry.
	Retry retry.Policy
	// Poison is for messages whose retries are spent, or whose handler said Permanent. Default: DeadLetter.
	Poison Action
	// NoID is for records without a usable ID, which can't be handled once. Default: DeadLetter. Where a producer writes no
	// msg_id, set ID instead.
	NoID Action
	// DeadLetterTopic must exist, with partitions as its readers like: the key is kept, the partition is not.
	DeadLetterTopic string
	// ID finds a record's ID. Default HeaderID. It must give the same ID at each delivery: PositionID does.
	ID func(*Delivery) string
	// Describe makes the text about an error that goes to the log and into the dead letter's headers. By default that is its
	// kind alone, because a handler's error may quote the payload. Where yours do not, set ErrorText.
	Describe func(error) string
	// Grace is how long a running handler may go on after its partition was revoked or the loop was told to stop; then its
	// context ends and it is rolled back. Default 25 s. It must be shorter than the group's rebalance timeout.
	Grace time.Duration
	// Observe, if set, is called for each outcome, one partition's in order, several partitions' at once. It must not block.
	Observe func(Event)
}

// DefaultRetry is 1 s, 5 s, 30 s, 1 min and then 5 min, spread by a fifth; after 8 failures retries are spent, some 17 minutes
// after the first.
func DefaultRetry() retry.Policy {
	return retry.Policy{
		Backoff:    []time.Duration{time.Second, 5 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute},
		Jitter:     0.2,
		MaxRetries: 7,
	}
}

const defaultGrace = 25 * time.Second

// Complete returns the policy with its defaults filled in, or everything that is wrong with it.
func (p Policy) Complete() (Policy, error) {
	var errs []error
	if p.Retry.MaxRetries == 0 && p.Retry.Backoff == nil && p.Retry.Jitter == 0 {
		p.Retry = DefaultRetry()
	} else if err := p.Retry.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("retry: %w", err))
	}
	for _, action := range []Action{p.Poison, p.NoID} {
		if action > Stop {
			errs = append(errs, fmt.Errorf("%s is no action: take DeadLetter or Stop", action))
		}
	}
	if p.DeadLetterTopic == "" && (p.Poison == DeadLetter || p.NoID == DeadLetter) {
		errs = append(errs, errors.New("dead letter topic is empty: name one, or choose Stop for Poison and NoID"))
	}
	if p.Grace < 0 {
		errs = append(errs, fmt.Errorf("grace is %s: it must be positive, or 0 for %s", p.Grace, defaultGrace))
	}
	if p.Grace == 0 {
		p.Grace = defaultGrace
	}
	if p.ID == nil {
		p.ID = HeaderID
	}
	if p.Describe == nil {
		p.Describe = ErrorKind
	}
	if p.Observe == nil {
		p.Observe = func(Event) {}
	}
	return p, errors.Join(errs...)
}

// Outcome is what an Event tells.
type Outcome uint8

const (
	// OutcomeHandled is a message whose handler's transaction is committed.
	OutcomeHandled Outcome = iota
	// OutcomeDuplicate is a message that had been handled before.
	OutcomeDuplicate
	// OutcomeFailed is a handler's error after which the message is tried again.
	OutcomeFailed
	// OutcomeHeld is a database that can't serve; the message is tried again and nothing is counted.
	OutcomeHeld
	// OutcomeDead is a message that was written to the dead letter topic.
	OutcomeDead
	// OutcomeStopped is a message before which the loop ends.
	OutcomeStopped
)

var outcomeNames = [...]string{"handled", "duplicate", "failed", "held", "dead", "stopped"}

// String returns the outcome's name, fit for a metric's label.
func (o Outcome) String() string {
	if int(o) < len(outcomeNames) {
		return outcomeNames[o]
	}
	return "outcome(" + strconv.Itoa(int(o)) + ")"
}

// Event tells Policy.Observe what became of a delivery, or of an attempt at it.
type Event struct {
	Outcome  Outcome
	Delivery *Delivery
	// Err is the attempt's error, nil for OutcomeHandled and OutcomeDuplicate.
	Err error
	// Wait is the pause before the next attempt.
	Wait time.Duration
}

// The reasons that a dead letter and a *Stopped give.
const (
	ReasonPermanent = "permanent"     // the handler said Permanent
	ReasonSpent     = "retries_spent" // Policy.Retry allows no more
	ReasonNoID      = "no_msg_id"     // no usable ID
	ReasonPanic     = "panic"         // retries are spent, and the last failure was a panic
)

// Stopped is why a loop ended by its policy: the message before which it stands.
type Stopped struct {
	Topic     string
	Partition int32
	Offset    int64
	ID        string
	Reason    string
	Attempts  int
	cause     error
}

// NewStopped is for those who write a loop of their own.
func NewStopped(d *Delivery, reason string, attempts int, cause error) *Stopped {
	return &Stopped{
		Topic: d.Topic, Partition: d.Partition, Offset: d.Offset, ID: d.ID, Reason: reason, Attempts: attempts, cause: cause,
	}
}

// Error says where the loop stands and what to do; the cause's own text, which may quote the payload, is not in it.
func (s *Stopped) Error() string {
	return fmt.Sprintf("stopped before message %q at %s[%d] offset %d after %d attempts: %s; mend the handler or the message, or move the "+
		"group's offset past it, and start again", s.ID, s.Topic, s.Partition, s.Offset, s.Attempts, s.Reason)
}

// Unwrap returns the handler's error.
func (s *Stopped) Unwrap() error { return s.cause }

// Panic is a handler's panic, which the loops take as its error. The value is kept out of the text unless it is the
// runtime's own, because it may quote the payload.
type Panic struct {
	Value any
	Stack []byte
}

// Error says that the handler panicked.
func (p *Panic) Error() string {
	if err, ok := p.Value.(interface {
		error
		RuntimeError()
	}); ok {
		return "handler panicked: " + err.Error()
	}
	return fmt.Sprintf("handler panicked with a %T", p.Value)
}

// ErrorText is a Policy.Describe for handlers whose errors never quote a payload or a secret: the error's own text.
func ErrorText(err error) string { return err.Error() }

// ErrorKind is the default Policy.Describe: what kind of error it is, without its text.
func ErrorKind(err error) string {
	if own, ok := errors.AsType[*Error](err); ok {
		return own.Error()
	}
	if panicked, ok := errors.AsType[*Panic](err); ok {
		return panicked.Error()
	}
	for _, known := range []error{ErrID, context.DeadlineExceeded, context.Canceled, sql.ErrNoRows, sql.ErrTxDone, sql.ErrConnDone} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	if number := NumberOf(err); number != 0 {
		return fmt.Sprintf("database error %d", number)
	}
	return fmt.Sprintf("%T", innermost(err))
}

func innermost(err error) error {
	for {
		next := errors.Unwrap(err)
		if next == nil {
			return err
		}
		err = next
	}
}

// CheckID reports, as an ErrID, why an ID can't be used: it is empty, no UTF-8, longer than MaxID characters, or ends with
// a space.
func CheckID(id string) error { return checkID(id) }
