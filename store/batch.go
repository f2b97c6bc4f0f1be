package store

import (
	"context"
	"database/sql"
	"strconv"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// batchSize is how many rows one statement names: marking gains nothing beyond it, and locks stay short.
const batchSize = 1000

// group is the refs of one table.
type group struct {
	table outbox.Table
	refs  []outbox.Ref
}

// byTable groups refs by their table and cuts the groups into batches.
func byTable(refs []outbox.Ref) []group {
	index := map[outbox.Table]int{}
	var groups []group
	for _, ref := range refs {
		i, ok := index[ref.Table]
		if !ok || len(groups[i].refs) == batchSize {
			i = len(groups)
			index[ref.Table] = i
			groups = append(groups, group{table: ref.Table})
		}
		groups[i].refs = append(groups[i].refs, ref)
	}
	return groups
}

// these renders the condition that picks exactly the rows of refs. The list of ids alone is what the optimizer turns into
// lookups by primary key; the pairs make it exact. Two separate lists would not be: after a REPLACE or a TRUNCATE a row
// can have the id of one ref and the msg_id of another, and would be taken for a third message that nobody has sent.
func (t *Table) these(refs []outbox.Ref) string {
	var b strings.Builder
	b.Grow(len(refs) * 72)
	id := t.col(words.ColumnID)
	b.WriteString(id + " IN (")
	for i, ref := range refs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t.formatID(ref.ID))
	}
	b.WriteString(") AND (" + id + "," + t.col(words.ColumnMsgID) + ") IN (")
	for i, ref := range refs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("(" + t.formatID(ref.ID) + "," + t.msgID(ref.MsgID) + ")")
	}
	b.WriteByte(')')
	return b.String()
}

// ids renders the list of the refs' ids.
func (t *Table) ids(refs []outbox.Ref) string {
	var b strings.Builder
	for i, ref := range refs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t.formatID(ref.ID))
	}
	return b.String()
}

// update runs one guarded UPDATE of refs, batch by batch, and returns how many rows the server says it changed: a
// figure for metrics, never a reason to believe that a row is gone (the meaning depends on clientFoundRows, and a row that
// is marked twice in the same second does not change).
func (s *Store) update(ctx context.Context, p *mysql.Pool, op string, refs []outbox.Ref, from string, set func(*Table) string) (int64, error) {
	var changed int64
	for _, g := range byTable(refs) {
		err := s.onTable(ctx, p, op, g.table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			result, err := conn.ExecContext(ctx, "UPDATE "+t.from()+t.byID()+" SET "+set(t)+" WHERE "+t.these(g.refs)+
				" AND "+t.col(words.ColumnStatus)+" IN ("+from+")")
			if err != nil {
				return err
			}
			n, err := result.RowsAffected()
			changed += n
			return err
		})
		if err != nil {
			return changed, err
		}
	}
	return changed, nil
}

// touched renders the assignment of update_time; not every table has it ON UPDATE.
func (t *Table) touched() string { return t.col(words.ColumnUpdateTime) + "=NOW()" }

func (s *Store) numberText(status outbox.Status) string { return strconv.Itoa(s.number(status)) }

func (s *Store) becomes(t *Table, status outbox.Status) string {
	return t.col(words.ColumnStatus) + "=" + strconv.Itoa(s.number(status))
}
