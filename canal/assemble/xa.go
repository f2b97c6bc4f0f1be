package assemble

import (
	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/statement"
	"example.com/outbox-relay/internal/words"
)

// XA transactions are in the binlog when they are prepared, and may still be rolled back afterwards. Their rows are
// never published from the stream. The commit makes the sweeper look at once, which sees the rows that are really
// there.
//
// MySQL writes GTID, XA START, rows, XA END, XA_PREPARE event; MariaDB the same without XA START, which its GTID
// event stands for. Commit and rollback follow as transactions of one statement. XA COMMIT ONE PHASE is an XA_PREPARE
// event with a flag on MySQL, an ordinary transaction on MariaDB.

// xa handles the statements.
func (d *Dispatcher) xa(stmt statement.Statement) *Transaction {
	a := d.asm
	if a.txn == nil {
		a.begin(gtid.ID{})
	}
	switch stmt.Kind {
	case statement.XAStart:
		a.txn.began, a.txn.xa, a.txn.xid = true, true, stmt.Name
		return nil
	case statement.XAEnd:
		a.txn.xa, a.txn.xid = true, stmt.Name
		return nil
	case statement.XACommit:
		if touched, rows := a.concerns(stmt.Name); touched {
			a.txn.miss(words.MissedXA, 1)
			a.txn.xaRows = rows
		}
		return a.commit()
	case statement.XARollback:
		a.concerns(stmt.Name)
		a.rollback()
		return nil
	default: // XA PREPARE as a statement, which old servers wrote
		return d.prepared(false)
	}
}

// xaPrepare handles the XA_PREPARE event, which ends a prepared transaction. Its first byte says whether it is
// committed with it.
func (d *Dispatcher) xaPrepare(ev *replication.BinlogEvent, inside bool) *Transaction {
	d.stamp(ev)
	body := d.parser.body(ev, inside)
	return d.prepared(len(body) > 0 && body[0] != 0)
}

func (d *Dispatcher) prepared(onePhase bool) *Transaction {
	a := d.asm
	txn := a.txn
	if txn == nil {
		return nil
	}
	if !onePhase {
		a.remember(txn)
		a.rollback()
		return nil
	}
	txn.rows.rollback(bufferMark{})
	txn.missed, txn.kick = nil, false
	if txn.touched {
		txn.miss(words.MissedXA, 1)
	}
	return a.commit()
}

// preparedXA is what is known of an XA transaction that was prepared.
type preparedXA struct {
	touched bool // it wrote into our tables
	rows    int  // how many rows, at most
}

// maxPrepared bounds the XA transactions remembered.
const maxPrepared = 10_000

// remember notes what a prepared XA transaction wrote into our tables.
func (a *assembler) remember(txn *openTransaction) {
	if a.prepared == nil || len(a.prepared) >= maxPrepared {
		a.prepared = make(map[string]preparedXA)
	}
	a.prepared[txn.xid] = preparedXA{touched: txn.touched, rows: txn.xaRows}
}

// concerns reports whether a prepared XA transaction may have written into our tables, and how many rows, and forgets
// it.
func (a *assembler) concerns(xid string) (touched bool, rows int) {
	p, known := a.prepared[xid]
	delete(a.prepared, xid)
	if !known {
		return true, XARowsUnknown
	}
	return p.touched, p.rows
}
