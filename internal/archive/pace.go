package archive

import "time"

// The pace is what keeps archiving out of the services' way. A batch goes through the same commit queue, redo log and disk as
// their commits, so how long it takes tells how those fare: the slower the server, the smaller the batches and the longer the
// pauses. Nothing is asked of the server for it. There is no memory of better times on purpose: a small batch costs more a
// row than a large one, so that a busy hour would be taken for one that never ends.
const (
	// batchGoal is how long a batch should take from its first lock to its commit: no longer than what the services' slow commits
	// take anyway. After a longer one batches are smaller.
	batchGoal = 10 * time.Millisecond
	// slow is when a small batch tells of a busy server, long when even that is too much: its rows are large, or the server
	// hardly answers.
	slow, long = 50 * time.Millisecond, 200 * time.Millisecond
	// rest is how many times its own length archiving pauses after a batch: it takes a quarter of one session's time at most.
	rest = 3
	// firstBatch is the size where nothing is known yet. On a busy server batches do not get smaller than that: it answers each
	// of a batch's statements late, however few the rows, so that smaller ones would take as long and move less. Only after a
	// long one they do, down to leastBatch.
	firstBatch, leastBatch = 200, 10
	// leastPause and longestPause bound the pause after one batch. A server that is quick with batches is so with the services'
	// commits too, of which few may meet a batch: those that do are the slow ones.
	leastPause, longestPause = 100 * time.Millisecond, 5 * time.Second
)

// pace decides how many rows the next batch takes and how long to pause before it.
type pace struct {
	size, most int
	pause      time.Duration
	busy       bool // small batches take too long, too
}

func newPace(most int) *pace { return &pace{size: min(firstBatch, most), most: most} }

// took learns from a batch.
func (p *pace) took(rows int, d time.Duration) {
	least := min(firstBatch, p.most)
	if d > long {
		least = min(leastBatch, p.most)
	}
	p.busy = d > slow && p.size <= least
	switch fitting := int(float64(p.size) * batchGoal.Seconds() / max(d, time.Microsecond).Seconds()); {
	case fitting < p.size:
		p.size = max(fitting, p.size/2, min(p.size, least))
	case rows >= p.size:
		p.size = min(fitting, p.size+p.size/4+1, p.most)
	}
	p.pause = min(max(rest*d, leastPause), longestPause)
}
