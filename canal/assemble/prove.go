package assemble

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// prove compares rows of the transaction with the tables whose mapping is not trusted yet. A row just committed may
// not be visible, so it looks a few times. When it finds none, the transaction's rows are left to the sweeper.
func (d *decoder) prove(ctx context.Context, txn *openTransaction) error {
	for _, st := range txn.unproven {
		if st.mapping == nil || len(st.mapping.unproven) == 0 || txn.rows.lost > 0 {
			continue
		}
		rows, err := txn.rows.some(st.table)
		if err != nil || len(rows) == 0 {
			continue // counting them fails as well
		}
		found, err := d.proveTable(ctx, st, rows)
		if _, ok := asUnmapped(err); err != nil && !ok {
			return err
		}
		if !found {
			d.warn(st.table, len(rows), "no row is found in the table by which to tell its columns: set binlog_row_metadata=FULL")
			txn.rows.giveUp(words.MissedColumns, nil)
		}
	}
	return nil
}

func (d *decoder) proveTable(ctx context.Context, st *tableState, rows []outbox.Row) (bool, error) {
	mp := st.mapping
	for range visibleTries {
		found, err := waitFor(ctx, d, st, func() (bool, error) { return d.mapper.prove(ctx, mp, st.table, rows) })
		if err != nil {
			return false, err
		}
		if found {
			mp.unproven = nil
			return true, nil
		}
		if mp.tries++; mp.tries > visibleTries {
			break // rows that are gone, one transaction after the other: look once at each
		}
		if err := d.wait(ctx, visibleWait); err != nil {
			return false, err
		}
	}
	return false, nil
}

// unprovenFields returns the fields that look like another column of the table. Only what does not change after the
// insert is listed, since it is compared with the table later.
func unprovenFields(tm *replication.TableMapEvent, index [numFields]int) []field {
	var list []field
	for _, f := range []field{fieldID, fieldMsgID, fieldTopic, fieldContent, fieldCreated, fieldKey, fieldTrace, fieldBodyRef} {
		for i := range tm.ColumnType {
			if index[f] >= 0 && i != index[f] && sameShape(tm, i, index[f]) {
				list = append(list, f)
				break
			}
		}
	}
	return list
}

// prove compares rows, as they stood at their commit, with the table. It returns true once one of them stands there as
// the mapping reads it, and false when none does: they may be gone, or changed since.
func (m *mapper) prove(ctx context.Context, mp *mapping, t outbox.Table, rows []outbox.Row) (bool, error) {
	byID := make(map[string]*outbox.Row, len(rows))
	ids := make([]string, 0, len(rows))
	for i := range rows {
		// Whether the column is signed makes no difference when both are queried.
		for _, id := range []string{strconv.FormatUint(rows[i].ID, 10), strconv.FormatInt(int64(rows[i].ID), 10)} {
			if byID[id] == nil {
				byID[id] = &rows[i]
				ids = append(ids, id)
			}
		}
	}
	names := make([]string, 0, numFields)
	for f := range numFields {
		name := "NULL"
		if mp.index[f] >= 0 {
			name = mysql.Identifier(m.names[f])
		}
		names = append(names, name)
	}
	result, err := m.server.Query(ctx, "SELECT "+strings.Join(names, ", ")+" FROM "+mysql.Identifier(t.Database)+"."+mysql.Identifier(t.Name)+
		" WHERE "+mysql.Identifier(m.names[fieldID])+" IN ("+strings.Join(ids, ", ")+")")
	switch mysql.Code(err) {
	case mysql.CodeNoSuchTable, mysql.CodeUnknownColumn, mysql.CodeUnknownDatabase:
		return false, &unmapped{reason: words.MissedColumns, detail: fmt.Sprintf("table %s has changed", t)}
	}
	if err != nil {
		return false, fmt.Errorf("compare rows of %s: %w", t, err)
	}
	for i := range result.Len() {
		row := byID[result.Text(i, int(fieldID))]
		if row == nil {
			continue
		}
		same := true
		for _, f := range mp.unproven {
			same = same && (f == fieldID || result.Text(i, int(f)) == fieldText(row, f))
		}
		if same {
			return true, nil
		}
	}
	return false, nil
}

// fieldText returns what prove compares of a row.
func fieldText(row *outbox.Row, f field) string {
	switch f {
	case fieldMsgID:
		return row.MsgID
	case fieldTopic:
		return row.Topic
	case fieldContent:
		return string(row.Content)
	case fieldCreated:
		return row.Created
	case fieldKey:
		return string(row.Key)
	case fieldTrace:
		return row.TraceParent
	case fieldBodyRef:
		return row.BodyRef
	default:
		return ""
	}
}

// sameShape reports whether two columns of a table look alike in the binlog: an image whose columns were exchanged
// among such columns can't be distinguished from one whose columns did not.
func sameShape(tm *replication.TableMapEvent, a, b int) bool {
	if tm.ColumnType[a] != tm.ColumnType[b] || tm.ColumnMeta[a] != tm.ColumnMeta[b] {
		return false
	}
	null := func(i int) bool { return tm.NullBitmap[i>>3]&(1<<(i&7)) != 0 }
	return null(a) == null(b)
}
