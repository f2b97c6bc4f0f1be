package oracle

import (
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/outbox"
)

// statuses checks the table's rows against the ledger.
func (j *judge) statuses() {
	for _, row := range j.ev.Rows {
		if row.Status == outbox.Dead {
			j.verdict.Dead++
		}
		if e, known := j.entries[row.MsgID]; !known || e.outcome != Committed {
			j.fault(Stranger, "%s (%s id %d)", row.MsgID, row.Table, row.ID)
		}
	}
	for _, e := range j.sorted() {
		if e.outcome == Committed {
			j.status(e)
		}
	}
}

func (j *judge) status(e *entry) {
	row, there := j.rows[e.MsgID]
	switch {
	case !there:
		j.fault(Missing, "%s (%s)", e.MsgID, e.Table)
		return
	case row.Table != e.Table:
		j.fault(Stranger, "%s (%s id %d) belongs in %s", row.MsgID, row.Table, row.ID, e.Table)
		return
	}
	settled := row.Status == outbox.Sent || row.Status == outbox.Consumed
	switch {
	case e.Fate == Die && settled:
		j.fault(Undying, "%s", j.describe(e))
	case e.Fate == Die && row.Status != outbox.Dead, e.Fate == Deliver && !settled:
		j.fault(Unsettled, "%s", j.describe(e))
	case e.Fate == Deliver && row.RetryCount > 0 && !j.opts.Retries:
		j.fault(Spent, "%s (%d)", e.MsgID, row.RetryCount)
	}
}

// checkpoints checks the samples, one after the other.
func (j *judge) checkpoints() {
	var last *Sample
	for i := range j.ev.Samples {
		s := &j.ev.Samples[i]
		if s.Position.IsZero() {
			continue
		}
		if s.Inside != "" {
			j.fault(CheckpointTorn, "%s: %s", s.Position, s.Inside)
		}
		if last != nil && !s.Reset {
			j.forward(last, s)
		}
		j.covered(s)
		last = s
	}
}

// forward checks that a sample is not behind the one before. Positions of two servers have no order.
func (j *judge) forward(before, now *Sample) {
	if now.Epoch < before.Epoch {
		j.fault(CheckpointBack, "epoch %d after %d", now.Epoch, before.Epoch)
	}
	a, b := before.Position, now.Position
	if a.Server != b.Server || a.File == "" || b.File == "" {
		return
	}
	order, err := position.Compare(a.File, a.Pos, b.File, b.Pos)
	if err == nil && order > 0 {
		j.fault(CheckpointBack, "%s after %s", b, a)
	}
}

// covered checks that none of the sample's unsettled messages lies before its position: the last fence at or before
// the position tells which messages surely do.
func (j *judge) covered(s *Sample) {
	if len(s.Unsettled) == 0 {
		return
	}
	var seq uint64
	for _, f := range j.ev.Fences {
		if f.Server != "" && f.Server != s.Position.Server {
			continue
		}
		order, err := position.Compare(f.File, f.Pos, s.Position.File, s.Position.Pos)
		if err == nil && order <= 0 {
			seq = max(seq, f.Seq)
		}
	}
	for _, id := range s.Unsettled {
		e, known := j.entries[id]
		if known && e.outcome == Committed && !e.Unlogged && !e.learned && e.seq <= seq {
			j.fault(CheckpointAhead, "%s is pending at %s", id, s.Position)
		}
	}
}
