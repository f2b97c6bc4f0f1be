package canal

import (
	"strconv"

	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/internal/words"
)

// XA transactions are in the binlog when they are prepared, and may still be rolled back afterwards. Their rows are never
// published from the stream. The commit makes the sweeper look at once, which sees the rows that are really there.
//
// MySQL writes GTID, XA START, rows, XA END, XA_PREPARE event; MariaDB the same without XA START, which its GTID event
// stands for. Commit and rollback follow as transactions of one statement. XA COMMIT ONE PHASE is an XA_PREPARE event with
// a flag on MySQL, an ordinary transaction on MariaDB.

// xa handles the statements.
func (d *dispatcher) xa(stmt statement) *Transaction {
	a := d.asm
	if a.txn == nil {
		a.begin(gtid{})
	}
	switch stmt.kind {
	case stmtXAStart:
		a.txn.began, a.txn.xa, a.txn.xid = true, true, stmt.name
		return nil
	case stmtXAEnd:
		a.txn.xa, a.txn.xid = true, stmt.name
		return nil
	case stmtXACommit:
		if touched, rows := a.concerns(stmt.name); touched {
			a.txn.miss(words.MissedXA, 1)
			a.txn.xaRows = rows
		}
		return a.commit()
	case stmtXARollback:
		a.concerns(stmt.name)
		a.rollback()
		return nil
	default: // XA PREPARE as a statement, which old servers wrote
		return d.prepared(false)
	}
}

// xaPrepare handles the XA_PREPARE event, which ends a prepared transaction. Its first byte tells whether it is
// committed with it.
func (d *dispatcher) xaPrepare(ev *replication.BinlogEvent, inside bool) *Transaction {
	d.stamp(ev)
	body := d.parser.body(ev, inside)
	return d.prepared(len(body) > 0 && body[0] != 0)
}

func (d *dispatcher) prepared(onePhase bool) *Transaction {
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

func formatPos(pos uint64) string { return strconv.FormatUint(pos, 10) }
