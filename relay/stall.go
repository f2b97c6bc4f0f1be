package relay

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
)

// errStalled ends a session because a record got no answer for long, although the brokers are there: its partition
// has no leader, or too few replicas. What the producer still holds of the topic stays unknown. The next session
// begins with the topic closed, so that its rows go to the table and everything else flows.
type errStalled struct{ topic string } // the Kafka topic

// Error implements error.
func (e *errStalled) Error() string {
	return fmt.Sprintf("topic %s: a record got no answer for long, see whether each partition has a leader and enough replicas", e.topic)
}

const (
	// stalledAfter is how long a record may be without an answer while the brokers answer.
	stalledAfter = 30 * time.Second
	// stalledSoon is the same while such records keep others from being sent.
	stalledSoon = 5 * time.Second
)

// waiting is a record that the producer was given.
type waiting struct {
	topic    string
	answered atomic.Bool
}

// unanswered are the records that the producer was given, in order, and some that were answered since.
type unanswered struct {
	mu    sync.Mutex
	list  []*waiting
	prune int // the length at which the answered ones are forgotten
}

// pruneFrom is the least length that is worth it.
const pruneFrom = 4096

func (u *unanswered) add(topic string) *waiting {
	w := &waiting{topic: topic}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.list = append(u.list, w)
	if len(u.list) >= max(u.prune, pruneFrom) {
		u.forget()
		u.prune = 2 * len(u.list)
	}
	return w
}

// oldest returns the oldest record that has no answer, nil when all have one.
func (u *unanswered) oldest() *waiting {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.forget()
	if len(u.list) == 0 {
		return nil
	}
	return u.list[0]
}

// forget drops what was answered. The caller holds mu.
func (u *unanswered) forget() {
	left := u.list[:0]
	for _, w := range u.list {
		if !w.answered.Load() {
			left = append(left, w)
		}
	}
	clear(u.list[len(left):])
	u.list = left
}

// watchStalls ends the session when a topic stalls. A second counts only while the brokers can be reached: after an
// outage records are old, and answered at once.
func (s *session) watchStalls(ctx context.Context) {
	var of *waiting
	stalled := time.Duration(0)
	for retry.Wait(ctx, time.Second) == nil {
		oldest := s.flow.unanswered.oldest()
		if oldest == nil || oldest != of {
			of, stalled = oldest, 0
			continue
		}
		if err := s.flow.prober.broker.Reachable(ctx); err != nil {
			stalled = 0
			s.flow.outage.Note(err)
			continue
		}
		s.flow.outage.Note(nil)
		stalled += time.Second
		rows, bytes := s.flow.inFlight.used()
		soon := rows > s.flow.inFlight.maxRows/2 || bytes > s.flow.inFlight.maxBytes/2
		if stalled >= stalledAfter || soon && stalled >= stalledSoon {
			s.fail(&errStalled{topic: oldest.topic})
			return
		}
	}
}

// newOutage follows that no broker answers although something waits to be acked. Elections and restarts take seconds, which
// are not logged.
func newOutage(log zerolog.Logger) *trouble.Log {
	return trouble.New(log, trouble.Texts{
		Fails: "kafka can't be reached, the stream waits and no retries are spent; outbox-relay doctor tells more",
		Works: "kafka answers again", Level: zerolog.WarnLevel, After: 5 * time.Second,
	})
}

// silent returns what is to be known of an outage, nil when there is none.
func (o *outlet) silent() error {
	if err := o.outage.Err(); err != nil {
		return fmt.Errorf("no broker has answered %w", err)
	}
	return nil
}
