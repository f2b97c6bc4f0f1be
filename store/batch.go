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

// BatchSize is how many rows one statement names: marking gains nothing beyond it, and locks stay short.
const BatchSize = 1000

// Group is the refs of one table.
type Group struct {
	Table outbox.Table
	Refs  []outbox.Ref
}

// ByTable groups refs by their table and cuts the groups into batches.
func ByTable(refs []outbox.Ref) []Group {
	index := map[outbox.Table]int{}
	var groups []Group
	for _, ref := range refs {
		i, ok := index[ref.Table]
		if !ok || len(groups[i].Refs) == BatchSize {
			i = len(groups)
			index[ref.Table] = i
			groups = append(groups, Group{Table: ref.Table})
		}
		groups[i].Refs = append(groups[i].Refs, ref)
	}
	return groups
}

// These renders the condition that picks exactly the rows of refs. The list of ids alone is what the optimizer turns into
// lookups by primary key; the pairs make it exact. Two separate lists would not be: after a REPLACE or a TRUNCATE a row
// can have the id of one ref and the msg_id of another, and would be taken for a third message that nobody has sent.
func (t *Table) These(refs []outbox.Ref) string {
	var b strings.Builder
	b.Grow(len(refs) * 72)
	id := t.Col(words.ColumnID)
	b.WriteString(id + " IN (")
	for i, ref := range refs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t.FormatID(ref.ID))
	}
	b.WriteString(") AND (" + id + "," + t.Col(words.ColumnMsgID) + ") IN (")
	for i, ref := range refs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("(" + t.FormatID(ref.ID) + "," + t.QuoteMsgID(ref.MsgID) + ")")
	}
	b.WriteByte(')')
	return b.String()
}

// IDs renders the list of the refs' ids.
func (t *Table) IDs(refs []outbox.Ref) string {
	var b strings.Builder
	for i, ref := range refs {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(t.FormatID(ref.ID))
	}
	return b.String()
}

// Update runs one guarded UPDATE of refs, batch by batch, and returns how many rows the server says it changed: a
// figure for metrics, never a reason to believe that a row is gone (the meaning depends on clientFoundRows, and a row that
// is marked twice in the same second does not change). from is the list of the statuses that a row may come from (Numbers), set
// renders the assignments.
func (s *Store) Update(ctx context.Context, p *mysql.Pool, op string, refs []outbox.Ref, from string, set func(*Table) string) (int64, error) {
	var changed int64
	for _, g := range ByTable(refs) {
		err := s.OnTable(ctx, p, op, g.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			result, err := conn.ExecContext(ctx, "UPDATE "+t.From()+t.ByID()+" SET "+set(t)+" WHERE "+t.These(g.Refs)+
				" AND "+t.Col(words.ColumnStatus)+" IN ("+from+")")
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

// Touched renders the assignment of update_time; not every table has it ON UPDATE.
func (t *Table) Touched() string { return t.Col(words.ColumnUpdateTime) + "=NOW()" }

// Number renders the stored number of a status.
func (s *Store) Number(status outbox.Status) string { return strconv.Itoa(s.number(status)) }

// Becomes renders the assignment of a status.
func (s *Store) Becomes(t *Table, status outbox.Status) string {
	return t.Col(words.ColumnStatus) + "=" + strconv.Itoa(s.number(status))
}
