package assemble

import (
	"context"
	"errors"
	"strconv"

	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/statement"
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
	stmt := statement.Parse(q.Query)
	switch stmt.Kind {
	case statement.Begin:
		if a.txn == nil {
			a.begin(gtid.ID{})
			d.stamp(ev)
		}
		a.txn.began = true
		return nil, nil
	case statement.Commit:
		return d.commit(ctx)
	case statement.Rollback:
		a.rollback()
		return nil, nil
	case statement.Savepoint, statement.RollbackTo, statement.Release:
		d.savepoint(stmt)
		return nil, nil
	case statement.XAStart, statement.XAEnd, statement.XAPrepare, statement.XACommit, statement.XARollback:
		return d.xa(stmt), nil
	case statement.Write, statement.Other:
	}
	return d.statement(stmt, q.Schema, q.Query), nil
}

// statement handles DDL and writes logged as statements.
func (d *Dispatcher) statement(stmt statement.Statement, database, query []byte) *Transaction {
	found := statement.Mentions(d.dec.patterns, query, string(database))
	if found.Name {
		d.dec.forget()
	}
	txn := d.asm.txn
	if txn == nil {
		txn = d.asm.begin(gtid.ID{})
	}
	switch {
	case found.Table && stmt.Kind == statement.Write:
		txn.miss(words.MissedStatement, 1)
		d.log.Warn().Str("position", d.position()).
			Msg("a statement changed a local message table without row events, the sweeper looks for its rows: set binlog_format=ROW in that session")
	case found.Table:
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
	if d.asm.txn == nil || !statement.Mentions(d.dec.patterns, query, string(database)).Table {
		return nil
	}
	d.asm.txn.miss(words.MissedStatement, 1)
	d.log.Warn().Str("position", d.position()).
		Msg("LOAD DATA filled a local message table without row events, the sweeper looks for its rows: set binlog_format=ROW in that session")
	return nil
}

// savepoint handles SAVEPOINT, ROLLBACK TO and RELEASE.
func (d *Dispatcher) savepoint(stmt statement.Statement) {
	txn := d.asm.txn
	if txn == nil {
		return
	}
	switch stmt.Kind {
	case statement.Savepoint:
		txn.save(stmt.Name)
	case statement.Release:
		txn.release(stmt.Name)
	default:
		if !txn.rollbackTo(stmt.Name) {
			// Which rows are gone is not known, so none is sent: the sweeper sees those that stayed.
			d.log.Warn().Str("position", d.position()).Msg("rollback to a savepoint that was not logged: the transaction's rows are left to the sweeper")
			txn.rows.giveUp(words.MissedStatement, nil)
		}
	}
}

func (d *Dispatcher) position() string { return d.asm.file + ":" + formatPos(d.asm.pos) }

// closeBoth closes a transaction that can't be handed out.
func closeBoth(err error, t *Transaction) error { return errors.Join(err, t.Close()) }

func formatPos(pos uint64) string { return strconv.FormatUint(pos, 10) }
