package assemble

import (
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// assembler gathers what belongs to one transaction until its commit event, and keeps the place in the binlog.
//
// A transaction begins with its GTID event (MySQL has one also for transactions without a GTID) and is open until its
// commit; nothing of it is seen before. Between two transactions the place is a boundary, where the stream may be
// resumed.
type assembler struct {
	flavor string
	limit  int
	dir    string
	log    zerolog.Logger

	file string
	pos  uint64
	// end is the last boundary that was handed out, or where the stream started.
	end position.End
	// learn: the complete set of GTIDs is not known, so the one at the head of a file is passed on.
	learn bool
	// expect is how many rows the last transaction of ours had: the next one is likely to be like it.
	expect   int
	executed string
	delta    gtid.Set // transactions since end

	txn  *openTransaction
	next gtid.ID // of the open transaction
	last time.Time
	// moved: there is a boundary beyond end.
	moved bool
	// prepared are the XA transactions seen prepared.
	prepared map[string]preparedXA
}

// openTransaction is a transaction whose commit has not been seen.
type openTransaction struct {
	rows       *rowBuffer
	missed     map[string]int
	kick       bool
	began      bool // its BEGIN was seen, or there will be none
	standalone bool // a MariaDB transaction of a single statement, without commit event
	xa         bool
	touched    bool // one of our tables is in it
	xid        string
	xaRows     int // rows inserted or updated in our tables, of an XA transaction
	revived    revived
	altered    bool // a statement names one of our tables
	committed  time.Time
	exact      bool // committed is the time of the commit, to the microsecond
	saves      []savepoint
	unproven   []*tableState // tables with rows in it whose columns are not certain yet
}

// savepoint is a place in an open transaction to which it may be rolled back.
type savepoint struct {
	name   string
	rows   bufferMark
	missed map[string]int
	kick   bool
	// revived is short of those that came later: it is only appended to.
	revived revived
}

// revived are the rows that updates made due.
type revived struct {
	refs []outbox.Ref
	more int
}

// maxRevived bounds the rows named.
const maxRevived = 1000

func (r *revived) add(ref outbox.Ref) {
	if len(r.refs) < maxRevived {
		r.refs = append(r.refs, ref)
	} else {
		r.more++
	}
}

// preparedXA is what is known of an XA transaction that was prepared.
type preparedXA struct {
	touched bool // it wrote into our tables
	rows    int  // how many rows, at most
}

// maxExpect bounds the room made for a transaction's rows before they come.
const maxExpect = 1000

// maxPrepared bounds the XA transactions remembered.
const maxPrepared = 10_000

func (t *openTransaction) miss(reason string, n int) {
	if n == 0 {
		return
	}
	if t.missed == nil {
		t.missed = make(map[string]int)
	}
	t.missed[reason] += n
	t.kick = true
}

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

// save notes a savepoint. A second one of a name replaces the first.
func (t *openTransaction) save(name string) {
	t.release(name)
	t.saves = append(t.saves, savepoint{name: name, rows: t.rows.mark(), missed: maps.Clone(t.missed), kick: t.kick, revived: t.revived})
}

// rollbackTo returns to a savepoint, which stays; those after it are gone. It reports whether there is such a savepoint.
func (t *openTransaction) rollbackTo(name string) bool {
	i := t.find(name)
	if i < 0 {
		return false
	}
	t.rows.rollback(t.saves[i].rows)
	t.missed, t.kick, t.revived = maps.Clone(t.saves[i].missed), t.saves[i].kick, t.saves[i].revived
	t.saves = t.saves[:i+1]
	return true
}

// release forgets a savepoint; what came after it stays in the transaction.
func (t *openTransaction) release(name string) {
	if i := t.find(name); i >= 0 {
		t.saves = slices.Delete(t.saves, i, i+1)
	}
}

func (t *openTransaction) find(name string) int {
	for i, s := range slices.Backward(t.saves) {
		if s.name == name {
			return i
		}
	}
	return -1
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
	t.End = a.take()
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

// boundary notes that the present place is between two transactions.
func (a *assembler) boundary() { a.moved = true }

// take returns the present boundary as the end of what was read so far.
func (a *assembler) take() position.End {
	end := position.End{File: a.file, Pos: a.pos, Executed: a.executed}
	if before, err := position.Compare(end.File, end.Pos, a.end.File, a.end.Pos); err == nil && before < 0 {
		// A stream that was started by GTID begins to read before the place where the last one ended.
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

// untold reports whether progress would return something: the present place is a boundary that nobody was told of.
func (a *assembler) untold() bool { return a.moved && a.txn == nil }

// progress returns an empty transaction when the boundary has moved, nil when it has not.
func (a *assembler) progress() *Transaction {
	if !a.untold() {
		return nil
	}
	if a.delta.Empty() && a.executed == "" {
		if c, err := position.Compare(a.file, a.pos, a.end.File, a.end.Pos); err == nil && c <= 0 {
			a.moved = false
			return nil
		}
	}
	return &Transaction{End: a.take(), CommittedAt: a.last}
}

// remember notes what a prepared XA transaction wrote into our tables.
func (a *assembler) remember(txn *openTransaction) {
	if a.prepared == nil || len(a.prepared) >= maxPrepared {
		a.prepared = make(map[string]preparedXA)
	}
	a.prepared[txn.xid] = preparedXA{touched: txn.touched, rows: txn.xaRows}
}

// concerns reports whether a prepared XA transaction may have written into our tables, and how many rows, and forgets it.
func (a *assembler) concerns(xid string) (touched bool, rows int) {
	p, known := a.prepared[xid]
	delete(a.prepared, xid)
	if !known {
		return true, XARowsUnknown
	}
	return p.touched, p.rows
}

// ErrNoTransaction is a rows event outside of any transaction: the stream was started at a place that is no boundary.
var ErrNoTransaction = errors.New("rows outside of a transaction: the position is not between two transactions")

// joined returns a set and what came after it. Both are the server's own and so well-formed; if not, the set is not told.
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
