package assemble

import (
	"errors"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
)

// assembler gathers what belongs to one transaction until its commit event, and keeps the position in the binlog.
//
// A transaction begins with its GTID event (MySQL has one also for transactions without a GTID) and is open until its
// commit; nothing of it is seen before. Between two transactions the position is a boundary, where the stream may be
// resumed.
type assembler struct {
	reading
	limit int
	dir   string
	log   zerolog.Logger
	// expect is how many rows the last transaction of ours had: the next one is likely to be like it.
	expect int

	txn  *openTransaction
	next gtid.ID // of the open transaction
	// prepared are the XA transactions seen prepared.
	prepared map[string]preparedXA
}

// reading is up to where the binlog was read, and what of that was not handed out yet.
type reading struct {
	flavor string
	file   string
	pos    uint64
	// end is the last boundary that was handed out, or where the stream started.
	end position.End
	// learn: the complete set of GTIDs is not known, so the one at the head of a file is passed on.
	learn    bool
	executed string
	delta    gtid.Set  // transactions since end
	last     time.Time // when the last of them was committed
	// moved: there is a boundary beyond end.
	moved bool
}

// maxExpect bounds the room made for a transaction's rows before they come.
const maxExpect = 1000

// begin opens a transaction. What was open before was never committed: the server died while writing it.
func (a *assembler) begin(id gtid.ID) *openTransaction {
	a.discard()
	a.next = id
	a.txn = &openTransaction{rows: &rowBuffer{limit: a.limit, dir: a.dir, expect: a.expect}}
	return a.txn
}

// discard drops the open transaction.
func (a *assembler) discard() {
	if a.txn == nil {
		return
	}
	if err := a.txn.rows.close(); err != nil {
		a.log.Warn().Err(err).Msg("spill file of a dropped transaction")
	}
	a.txn, a.next = nil, gtid.ID{}
}

// commit ends the open transaction. It returns nil when there is nothing in it for us.
func (a *assembler) commit() *Transaction {
	txn := a.txn
	if txn == nil {
		a.boundary()
		return nil
	}
	a.txn = nil
	a.delta.AddOne(a.next)
	a.next = gtid.ID{}
	a.last = txn.committed
	a.boundary()
	if rows := len(txn.rows.rows); rows > 0 {
		a.expect = min(rows, maxExpect)
	}
	n, err := txn.rows.net()
	if err != nil {
		txn.rows.giveUp(words.MissedLarge, err)
		n = 0
	}
	if txn.rows.lost > 0 {
		txn.miss(txn.rows.reason, txn.rows.lost)
		a.log.Warn().Int("rows", txn.rows.lost).Str("reason", txn.rows.reason).AnErr("error", txn.rows.failed).
			Msg("a transaction's rows are left to the sweeper")
	}
	t := &Transaction{
		CommittedAt: txn.committed, Kick: txn.kick, Missed: txn.missed, rows: txn.rows, n: n,
		Revived: txn.revived.refs, RevivedMore: txn.revived.more, XARows: txn.xaRows, Altered: txn.altered,
	}
	if n == 0 {
		if err := t.Close(); err != nil {
			a.log.Warn().Err(err).Msg("spill file of an empty transaction")
		}
	}
	if t.empty() {
		return nil
	}
	t.End = a.handOut()
	return t
}

// rollback ends the open transaction without its rows. It still counts as dealt with.
func (a *assembler) rollback() {
	if a.txn == nil {
		return
	}
	id, at := a.next, a.txn.committed
	a.discard()
	a.delta.AddOne(id)
	a.last = at
	a.boundary()
}

// boundary notes that the present position is between two transactions.
func (a *assembler) boundary() { a.moved = true }

// handOut returns the present boundary as the end of what was read so far.
func (a *assembler) handOut() position.End {
	end := position.End{File: a.file, Pos: a.pos, Executed: a.executed}
	if before, err := position.Compare(end.File, end.Pos, a.end.File, a.end.Pos); err == nil && before < 0 {
		// A stream that was started by GTID begins to read before the position where the last one ended.
		end.File, end.Pos = a.end.File, a.end.Pos
	}
	if !a.delta.Empty() {
		if end.Executed != "" {
			end.Executed = joined(a.flavor, end.Executed, a.delta)
		} else {
			end.GTID = a.delta.String()
		}
		a.delta.Clear()
	}
	a.executed = ""
	a.end, a.moved = position.End{File: end.File, Pos: end.Pos}, false
	return end
}

// unreported reports whether progress would return something: the present position is a boundary that was not handed
// out.
func (a *assembler) unreported() bool { return a.moved && a.txn == nil }

// progress returns an empty transaction when the boundary has moved, nil when it has not.
func (a *assembler) progress() *Transaction {
	if !a.unreported() {
		return nil
	}
	if a.delta.Empty() && a.executed == "" {
		if c, err := position.Compare(a.file, a.pos, a.end.File, a.end.Pos); err == nil && c <= 0 {
			a.moved = false
			return nil
		}
	}
	return &Transaction{End: a.handOut(), CommittedAt: a.last}
}

// ErrNoTransaction is a rows event outside of any transaction: the stream was started at a position that is no
// boundary.
var ErrNoTransaction = errors.New("rows outside of a transaction: the position is not between two transactions")

// joined returns a set and what came after it. Both are the server's own and so well-formed; if not, it returns "".
func joined(flavor, text string, delta gtid.Set) string {
	set, err := gtid.Parse(flavor, text)
	if err != nil {
		return ""
	}
	if err := set.Add(delta.String()); err != nil {
		return ""
	}
	return set.String()
}
