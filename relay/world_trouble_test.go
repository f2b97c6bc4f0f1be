package relay_test

import (
	"context"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
)

// operation is one statement on the table.
type operation string

const (
	opSent         operation = "sent"
	opFailed       operation = "failed"
	opDead         operation = "dead"
	opDefer        operation = "defer"
	opRelease      operation = "release"
	opUnrecorded   operation = "unrecorded"
	opClosedTopics operation = "closed topics"
	opClaim        operation = "claim"
	opClaimEarly   operation = "claim early"
	opClaimParked  operation = "claim parked"
	opPark         operation = "park"
)

// trouble is what goes wrong with single operations. Its functions are called under its lock, so they need none for
// what they remember; a test reads that, and changes what goes wrong, in do.
type trouble struct {
	mu sync.Mutex
	// fail makes an operation fail before anything is done.
	fail func(op operation, refs []outbox.Ref) error
	// lose makes an operation's answer get lost after everything is done.
	lose func(op operation, refs []outbox.Ref) error
	// locked tells that somebody has locked a row, which a claim then leaves out.
	locked func(op operation, ref outbox.Ref) bool
	// takes is how long operations take.
	takes map[operation]time.Duration
	// refuse is what a record gets in place of an ack from the producer, when not nil.
	refuse func(rec *router.Record) error
	// stuck topics have a partition without a leader: nothing is known of what is sent there.
	stuck map[string]bool
	// sending is how long handing a record over takes.
	sending time.Duration
	// prompt makes acks come at once.
	prompt bool
	// unknown is how many of the next records have an unknown outcome.
	unknown int
}

// do changes what goes wrong, or looks at what the functions have noted.
func (t *trouble) do(change func(*trouble)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	change(t)
}

// stick makes a topic stuck or free.
func (t *trouble) stick(topic string, stuck bool) {
	t.do(func(t *trouble) { t.stuck = map[string]bool{topic: stuck} })
}

func (t *trouble) before(ctx context.Context, op operation, refs []outbox.Ref) error {
	pause(ctx, t.duration(op))
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.fail == nil {
		return nil
	}
	return t.fail(op, refs)
}

func (t *trouble) duration(op operation) time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.takes[op]
}

func (t *trouble) after(op operation, refs []outbox.Ref) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.lose == nil {
		return nil
	}
	return t.lose(op, refs)
}

// unlocked returns the rows that a claim gets.
func (t *trouble) unlocked(op operation, refs []outbox.Ref) []outbox.Ref {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.locked == nil {
		return refs
	}
	var free []outbox.Ref
	for _, ref := range refs {
		if !t.locked(op, ref) {
			free = append(free, ref)
		}
	}
	return free
}

func (t *trouble) refusal(rec *router.Record) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.unknown > 0 {
		t.unknown--
		return sarama.ErrOutOfOrderSequenceNumber
	}
	if t.refuse == nil {
		return nil
	}
	return t.refuse(rec)
}

// stuckNow returns the stuck topics of one moment.
func (t *trouble) stuckNow() map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.stuck // replaced, never changed
}

func (t *trouble) isPrompt() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.prompt
}

func (t *trouble) sendTakes() time.Duration {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.sending
}
