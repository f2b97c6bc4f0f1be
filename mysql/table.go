package mysql

import (
	"context"
	"slices"
	"strings"

	"example.com/outbox-relay/internal/nearest"
	"example.com/outbox-relay/outbox"
)

// Tables are the tables of each database that some pattern may name, as far as the user may see them.
type Tables struct {
	// Databases are all that the user sees, in order.
	Databases []string
	// Names are the tables by their database.
	Names map[string][]string
}

// ListTables reads which tables there are. Views and temporary tables are none.
func ListTables(ctx context.Context, q Querier, patterns Patterns) (Tables, error) {
	databases, err := Ask(ctx, q, "SELECT SCHEMA_NAME FROM information_schema.SCHEMATA ORDER BY 1")
	if err != nil {
		return Tables{}, err
	}
	t := Tables{Names: map[string][]string{}}
	for i := range databases.Len() {
		database := databases.Text(i, 0)
		t.Databases = append(t.Databases, database)
		if !patterns.MatchDatabase(database) {
			continue
		}
		names, err := Ask(ctx, q, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = "+Literal(database)+
			" AND TABLE_TYPE IN ('BASE TABLE','SYSTEM VERSIONED') ORDER BY 1")
		if err != nil {
			return Tables{}, err
		}
		t.Names[database] = make([]string, names.Len())
		for j := range names.Len() {
			t.Names[database][j] = names.Text(j, 0)
		}
	}
	return t, nil
}

// Where returns the tables for which want is true, in the order of databases and names.
func (t Tables) Where(want func(outbox.Table) bool) []outbox.Table {
	var found []outbox.Table
	for _, database := range t.Databases {
		for _, name := range t.Names[database] {
			if table := (outbox.Table{Database: database, Name: name}); want(table) {
				found = append(found, table)
			}
		}
	}
	return found
}

// Near returns what a pattern that matches nothing may have meant: tables of its databases, else databases.
func (t Tables) Near(p Pattern, fold bool) []string {
	var near []string
	for database, names := range t.Names {
		if p.database.match(database, fold) {
			for _, name := range nearest.Names(p.table.name, names) {
				near = append(near, database+"."+name)
			}
		}
	}
	if len(near) == 0 {
		near = nearest.Names(p.database.name, t.Databases)
	}
	slices.Sort(near)
	return slices.Compact(near)
}

// Index is an index as information_schema describes it.
type Index struct {
	Name   string
	Unique bool
	// Usable: it is a tree, and may be named in a hint.
	Usable  bool
	Columns []string
}

// Begins reports whether the index begins with these columns.
func (i Index) Begins(columns ...string) bool {
	return len(i.Columns) >= len(columns) && slices.EqualFunc(i.Columns[:len(columns)], columns, strings.EqualFold)
}

// Is reports whether the index is on these columns and no others.
func (i Index) Is(columns ...string) bool {
	return len(i.Columns) == len(columns) && i.Begins(columns...)
}

// Shape is what information_schema says of one table.
type Shape struct {
	Engine  string
	Columns []Column
	Indexes []Index
}

// ReadShapes returns the shapes of some tables of one database, by their names. server is what ReadServer returned.
func ReadShapes(ctx context.Context, q Querier, server Server, database string, tables []string) (map[string]Shape, error) {
	columns, err := ReadColumns(ctx, q, database, tables...)
	if err != nil {
		return nil, err
	}
	indexes, err := readIndexes(ctx, q, server, database, tables)
	if err != nil {
		return nil, err
	}
	engines, err := ReadEngines(ctx, q, database, tables...)
	if err != nil {
		return nil, err
	}
	shapes := make(map[string]Shape, len(tables))
	for name, engine := range engines {
		shapes[name] = Shape{Engine: engine, Columns: columns[name], Indexes: indexes[name]}
	}
	return shapes, nil
}

// ReadEngines returns the storage engines of those tables of a database that exist, by their names; "" for a view.
func ReadEngines(ctx context.Context, q Querier, database string, tables ...string) (map[string]string, error) {
	found, err := Ask(ctx, q, "SELECT TABLE_NAME, COALESCE(ENGINE,'') FROM information_schema.TABLES"+ofTables(database, tables))
	if err != nil {
		return nil, err
	}
	engines := make(map[string]string, found.Len())
	for i := range found.Len() {
		engines[found.Text(i, 0)] = found.Text(i, 1)
	}
	return engines, nil
}

func readIndexes(ctx context.Context, q Querier, server Server, database string, tables []string) (map[string][]Index, error) {
	rows, err := q.QueryContext(ctx, "SELECT TABLE_NAME, INDEX_NAME, NON_UNIQUE, COALESCE(COLUMN_NAME,''), INDEX_TYPE, "+server.indexVisible()+
		" FROM information_schema.STATISTICS"+ofTables(database, tables)+" ORDER BY TABLE_NAME, INDEX_NAME, SEQ_IN_INDEX")
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	found := map[string][]Index{}
	for rows.Next() {
		var table, name, column, kind, visible string
		var nonUnique bool
		if err := rows.Scan(&table, &name, &nonUnique, &column, &kind, &visible); err != nil {
			return nil, err
		}
		indexes := found[table]
		if len(indexes) == 0 || indexes[len(indexes)-1].Name != name {
			indexes = append(indexes, Index{Name: name, Unique: !nonUnique, Usable: kind == "BTREE" && visible == "YES"})
		}
		last := &indexes[len(indexes)-1]
		last.Columns = append(last.Columns, column)
		found[table] = indexes
	}
	return found, rows.Err()
}
