package inbox

import (
	"context"
	"database/sql"
	"encoding/hex"
	"strconv"
	"strings"
)

// Execer is a transaction: *sql.Tx, or what sqlx, gorm or ent make of one. A *sql.Conn on which BEGIN was executed
// serves as well; a *sql.DB does not (ErrNoTx).
type Execer interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// First records the message in the caller's own transaction and reports whether it is the first time that this group
// meets it. When it is not, the caller leaves the message alone. It is for those who can't let Do hold the
// transaction; like Do's, it should be the transaction's first statement.
//
// It waits for another transaction that is handling the same message. A deadlock or a lock wait (ErrBusy) ends the caller's
// transaction, which is to be begun anew. The record counts once the caller has committed; whoever rolls back has not
// handled it.
func (in *Inbox) First(ctx context.Context, tx Execer, id string) (bool, error) {
	if err := checkID(id); err != nil {
		return false, err
	}
	if _, pool := tx.(*sql.DB); pool {
		return false, &Error{Op: "record message " + id + " in a *sql.DB: begin a transaction", kinds: []error{ErrNoTx}, cause: ErrNoTx}
	}
	return in.record(ctx, tx, &Delivery{ID: id})
}

// record inserts the record, with a plain INSERT whose duplicate key says that the message was handled before. INSERT
// IGNORE would also swallow everything else that is wrong with the row, and what ON DUPLICATE KEY UPDATE reports
// depends on the driver's clientFoundRows.
//
// On a key that another transaction has inserted and not yet committed the server waits: after that one's commit it
// answers with the duplicate, after its rollback the insert goes on.
func (in *Inbox) record(ctx context.Context, tx Execer, d *Delivery) (first bool, err error) {
	_, err = tx.ExecContext(ctx, in.insert(d))
	if err == nil {
		return true, nil
	}
	if in.number(err) == numDuplicate {
		return false, nil
	}
	return false, in.failed(ctx, "record message "+d.ID+" of group "+in.group+" in "+in.table, err)
}

// insert returns the statement with its values in it: one round trip with every driver and DSN, where arguments would
// cost two (prepare and execute) unless the DSN says interpolateParams.
func (in *Inbox) insert(d *Delivery) string {
	topic, partition, offset := "NULL", "NULL", "NULL"
	if d.Topic != "" {
		topic, partition, offset = literal(d.Topic), strconv.FormatInt(int64(d.Partition), 10), strconv.FormatInt(d.Offset, 10)
	}
	return in.insertHead + literal(d.ID) + ", " + topic + ", " + partition + ", " + offset + ", UTC_TIMESTAMP(3))"
}

// literal returns an SQL string of s that no character set, escape rule or SQL mode reads differently.
func literal(s string) string {
	if isPlain(s) {
		return "'" + s + "'"
	}
	return "_utf8mb4 x'" + hex.EncodeToString([]byte(s)) + "'"
}

func isPlain(s string) bool {
	for i := range len(s) {
		c := s[i]
		letter := c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9'
		if !letter && !strings.ContainsRune("-_.:/@+=#", rune(c)) {
			return false
		}
	}
	return true
}
