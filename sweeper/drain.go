package sweeper

import (
	"context"

	"example.com/outbox-relay/order"
)

// queue is what the table has of one line and may be sent, in its order.
type queue interface {
	line() order.Name
	// rounds is how often a pass lists and sends before others have their turn.
	rounds() int
	// list reads what may go next, and returns once the stream has passed that. last says that the stream holds what is new: then
	// what it holds is not listed, and nothing is waited for.
	list(ctx context.Context, last bool) (listing, error)
	// send claims and sends what was listed. clean is false when one of the rows was not acked or could not be claimed:
	// those behind it have to wait.
	send(ctx context.Context) (total Result, clean bool, err error)
}

// listing is what a queue has found.
type listing struct {
	rows int  // that may go
	more bool // so many that the stream should not hold what is new yet
	// stands is why the rows that may not go don't.
	stands standing
}

// standing says why rows are left in a queue.
type standing uint8

const (
	nothingLeft  standing = iota
	behindLetter          // dead letters are before them
	topicClosed
)

// drain sends what waits of a line. Once little is left the line is handed back. blocked tells that what is left
// waits behind a dead letter.
func (s *Sweeper) drain(ctx context.Context, q queue) (total Result, blocked bool, err error) {
	for range q.rounds() {
		found, err := q.list(ctx, false)
		switch {
		case err != nil:
			return total, false, err
		case found.rows == 0 && found.stands != nothingLeft:
			return total, found.stands == behindLetter, nil
		case found.rows == 0:
			return s.handBack(ctx, q, total)
		}
		r, clean, err := q.send(ctx)
		total.add(r)
		switch {
		case err != nil || !clean:
			return total, false, err
		case !found.more && found.stands == nothingLeft:
			return s.handBack(ctx, q, total)
		}
	}
	total.More = true
	return total, false, nil
}

// handBackMost is how many rows the stream may hold messages for. A longer rest is drained first.
const handBackMost = 5000

// handBack sends what came to wait while the rest was being sent, with the stream holding what comes after it, and
// ends the line's waiting. Passed is not asked here, because it would wait for what is held. blocked tells that the
// stream can't hold, because of a dead letter or because it is too early.
func (s *Sweeper) handBack(ctx context.Context, q queue, total Result) (_ Result, blocked bool, err error) {
	if !s.lines.Hold(ctx, q.line()) {
		return total, true, nil
	}
	for sent := 0; sent <= handBackMost; {
		found, err := q.list(ctx, true)
		if err == nil && found.rows == 0 && found.stands == nothingLeft {
			ended, err := s.lines.Open(ctx, q.line())
			total.More = total.More || !ended
			return total, false, err
		}
		clean := false
		if err == nil && found.rows > 0 {
			var r Result
			r, clean, err = q.send(ctx)
			total.add(r)
			sent += r.Sent
		}
		if !clean || err != nil {
			s.lines.Report(q.line(), order.Outcome{Kind: order.GivesUp})
			return total, false, err
		}
	}
	s.lines.Report(q.line(), order.Outcome{Kind: order.GivesUp})
	total.More = true
	return total, false, nil
}
