package assemble

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/canal/lean"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// mapping says where the fields are in the row images of one definition of a table.
type mapping struct {
	plan  *lean.Plan
	index [numFields]int // column of each field in the image, -1 where the table has none
	// columns is what information_schema says, nil when the binlog had the names and nothing had to be queried.
	columns []mysql.Column
	// unproven are fields that share the look of another column: were the columns in another order when the rows were
	// written, nothing in the images would show it. Rows are compared with the table before such a mapping is trusted.
	unproven []field
	tries    int
}

// unmapped is why a table's rows can't be mapped with certainty: the sweeper gets them.
type unmapped struct {
	reason string // one of words.Missed*
	detail string
}

// Error returns the detail.
func (u *unmapped) Error() string { return u.detail }

// mapper makes mappings.
type mapper struct {
	server Server
	names  [numFields]string
}

// mapTable makes the mapping for a table map. An *unmapped error means that it can't be made, any other that the
// server could not be queried.
func (m *mapper) mapTable(ctx context.Context, t outbox.Table, tm *replication.TableMapEvent) (*mapping, error) {
	names, columns, err := m.columnNames(ctx, t, tm)
	if err != nil {
		return nil, err
	}
	mp := &mapping{columns: columns}
	if err := m.locate(mp, t, names); err != nil {
		return nil, err
	}
	wanted := make([]lean.Column, numFields)
	for f, i := range mp.index {
		wanted[f] = lean.Column{Index: i}
		if i >= 0 && columns != nil {
			c := &columns[i]
			wanted[f] = lean.Column{
				Index: i, Charset: c.Charset, DataType: c.Type, Unsigned: c.Unsigned(),
			}
		}
	}
	if mp.plan, err = lean.NewPlan(tm, wanted); err != nil {
		return nil, &unmapped{reason: words.MissedDecode, detail: fmt.Sprintf("columns of %s: %v", t, err)}
	}
	if mp.plan.Kinds()[fieldID] == lean.Bytes {
		return nil, &unmapped{
			reason: words.MissedColumns,
			detail: fmt.Sprintf("column %s of %s is not an integer", m.names[fieldID], t),
		}
	}
	if columns != nil {
		mp.unproven = unprovenFields(tm, mp.index)
	}
	return mp, nil
}

// columnNames returns the names of the columns in the image: as the binlog has them, else as the server knows them
// now, provided that number and types agree.
func (m *mapper) columnNames(ctx context.Context, t outbox.Table, tm *replication.TableMapEvent) ([]string, []mysql.Column, error) {
	if len(tm.ColumnName) > 0 && uint64(len(tm.ColumnName)) == tm.ColumnCount {
		names := make([]string, len(tm.ColumnName))
		for i := range names {
			names[i] = string(tm.ColumnName[i])
		}
		return names, nil, nil
	}
	columns, err := m.read(ctx, t)
	if err != nil {
		return nil, nil, err
	}
	if uint64(len(columns)) != tm.ColumnCount {
		return nil, nil, &unmapped{reason: words.MissedColumns, detail: fmt.Sprintf(
			"rows of %s have %d columns, the table has %d: set binlog_row_metadata=FULL, so that the binlog tells their names",
			t, tm.ColumnCount, len(columns))}
	}
	names := make([]string, len(columns))
	for i := range columns {
		names[i] = columns[i].Name
		if !fits(&columns[i], tm.ColumnType[i], tm.ColumnMeta[i]) {
			return nil, nil, &unmapped{reason: words.MissedColumns, detail: fmt.Sprintf(
				"column %s of %s has another type in the binlog: set binlog_row_metadata=FULL, so that the binlog tells the names",
				names[i], t)}
		}
	}
	return names, columns, nil
}

// read reads the columns of a table that must exist.
func (m *mapper) read(ctx context.Context, t outbox.Table) ([]mysql.Column, error) {
	columns, err := readColumns(ctx, m.server, t)
	if err != nil || len(columns) > 0 {
		return columns, err
	}
	if _, err := tableGone(ctx, m.server, t); err != nil {
		return nil, err
	}
	return nil, &unmapped{reason: words.MissedGone, detail: fmt.Sprintf("table %s does not exist", t)}
}

// locate finds the fields among the names.
func (m *mapper) locate(mp *mapping, t outbox.Table, names []string) error {
	var missing []string
	for f, name := range m.names {
		mp.index[f] = -1
		for i := range names {
			if name != "" && strings.EqualFold(names[i], name) {
				mp.index[f] = i
			}
		}
		if mp.index[f] < 0 && field(f) < fieldKey {
			missing = append(missing, name)
		}
	}
	if missing != nil {
		return &unmapped{
			reason: words.MissedGone,
			detail: fmt.Sprintf("table %s has no column %s", t, strings.Join(missing, ", ")),
		}
	}
	return nil
}

// asUnmapped returns the *unmapped in err.
func asUnmapped(err error) (*unmapped, bool) {
	var u *unmapped
	ok := errors.As(err, &u)
	return u, ok
}
