package assemble

import (
	"context"
	"errors"
	"strconv"

	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/internal/words"
)

// query handles a statement: the bounds of transactions, DDL, and rows changed by statements.
func (d *Dispatcher) query(ctx context.Context, ev *replication.BinlogEvent, inside bool) (*Transaction, error) {
	event, err := d.parser.parse(ev, inside)
	if err != nil {
		return nil, err
	}
	q, ok := event.(*replication.QueryEvent)
	if !ok {
		return nil, malformed(ev.Header, "not a query")
	}
	d.stamp(ev)
	a := d.asm
	stmt := parseStatement(q.Query)
	switch stmt.kind {
	case stmtBegin:
		if a.txn == nil {
			a.begin(gtid.ID{})
			d.stamp(ev)
		}
		a.txn.began = true
		return nil, nil
	case stmtCommit:
		return d.commit(ctx)
	case stmtRollback:
		a.rollback()
		return nil, nil
	case stmtSavepoint, stmtRollbackTo, stmtRelease:
		d.savepoint(stmt)
		return nil, nil
	case stmtXAStart, stmtXAEnd, stmtXAPrepare, stmtXACommit, stmtXARollback:
		return d.xa(stmt), nil
	case stmtWrite, stmtOther:
	}
	return d.statement(stmt, q.Schema, q.Query), nil
}

// statement handles DDL and writes logged as statements.
func (d *Dispatcher) statement(stmt statement, database, query []byte) *Transaction {
	found := mentions(d.dec.patterns, query, string(database))
	if found.name {
		d.dec.forget()
	}
	txn := d.asm.txn
	if txn == nil {
		txn = d.asm.begin(gtid.ID{})
	}
	switch {
	case found.table && stmt.kind == stmtWrite:
		txn.miss(words.MissedStatement, 1)
		d.log.Warn().Str("position", d.place()).
			Msg("a statement changed a local message table without row events, the sweeper looks for its rows: set binlog_format=ROW in that session")
	case found.table:
		txn.kick, txn.altered = true, true // rows may have come with a renamed table or an exchanged partition
	}
	if txn.began {
		return nil // its commit is still to come
	}
	return d.asm.commit()
}

// load handles LOAD DATA logged as a statement.
func (d *Dispatcher) load(ev *replication.BinlogEvent, inside bool) error {
	database, query, ok := loadStatement(d.parser.body(ev, inside))
	if !ok {
		return malformed(ev.Header, "it ends too early")
	}
	if d.asm.txn == nil || !mentions(d.dec.patterns, query, string(database)).table {
		return nil
	}
	d.asm.txn.miss(words.MissedStatement, 1)
	d.log.Warn().Str("position", d.place()).
		Msg("LOAD DATA filled a local message table without row events, the sweeper looks for its rows: set binlog_format=ROW in that session")
	return nil
}

// savepoint handles SAVEPOINT, ROLLBACK TO and RELEASE.
func (d *Dispatcher) savepoint(stmt statement) {
	txn := d.asm.txn
	if txn == nil {
		return
	}
	switch stmt.kind {
	case stmtSavepoint:
		txn.save(stmt.name)
	case stmtRelease:
		txn.release(stmt.name)
	default:
		if !txn.rollbackTo(stmt.name) {
			// Which rows are gone can't be told, so none is sent: the sweeper sees those that stayed.
			d.log.Warn().Str("position", d.place()).Msg("rollback to a savepoint that was not logged: the transaction's rows are left to the sweeper")
			txn.rows.giveUp(words.MissedStatement, nil)
		}
	}
}

func (d *Dispatcher) place() string { return d.asm.file + ":" + formatPos(d.asm.pos) }

// closeBoth closes a transaction that can't be handed out.
func closeBoth(err error, t *Transaction) error { return errors.Join(err, t.Close()) }

// XA transactions are in the binlog when they are prepared, and may still be rolled back afterwards. Their rows are never
// published from the stream. The commit makes the sweeper look at once, which sees the rows that are really there.
//
// MySQL writes GTID, XA START, rows, XA END, XA_PREPARE event; MariaDB the same without XA START, which its GTID event
// stands for. Commit and rollback follow as transactions of one statement. XA COMMIT ONE PHASE is an XA_PREPARE event with
// a flag on MySQL, an ordinary transaction on MariaDB.

// xa handles the statements.
func (d *Dispatcher) xa(stmt statement) *Transaction {
	a := d.asm
	if a.txn == nil {
		a.begin(gtid.ID{})
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

func formatPos(pos uint64) string { return strconv.FormatUint(pos, 10) }
