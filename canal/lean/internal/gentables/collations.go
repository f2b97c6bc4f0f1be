package main

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// collationNames maps a collation's id to the charset that it belongs to.
type collationNames map[uint64]string

// read adds a server's collations. MariaDB's uca1400 collations have their ids in COLLATION_CHARACTER_SET_APPLICABILITY
// only.
func (c collationNames) read(ctx context.Context, db *sql.DB) error {
	queries := []string{"SELECT id, character_set_name FROM information_schema.collations WHERE id IS NOT NULL"}
	var version string
	if err := db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&version); err != nil {
		return fmt.Errorf("read the version: %w", err)
	}
	if strings.Contains(version, "MariaDB") {
		queries = append(queries,
			"SELECT id, character_set_name FROM information_schema.collation_character_set_applicability WHERE id IS NOT NULL")
	}
	for _, query := range queries {
		if err := c.readQuery(ctx, db, query); err != nil {
			return fmt.Errorf("read collations: %w", err)
		}
	}
	return nil
}

func (c collationNames) readQuery(ctx context.Context, db *sql.DB, query string) error {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var id uint64
		var name string
		if err := rows.Scan(&id, &name); err != nil {
			return err
		}
		if name == "utf8" {
			name = "utf8mb3"
		}
		if old, ok := c[id]; ok && old != name {
			return fmt.Errorf("collation %d is of %s on one server and of %s on the other", id, old, name)
		}
		c[id] = name
	}
	return rows.Err()
}

// write puts ids of one charset that follow each other in one line.
func (c collationNames) write(out string) error {
	ids := make([]uint64, 0, len(c))
	for id := range c {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	var b strings.Builder
	b.WriteString(head + "// collations are the known ids in ascending order, ids of one charset in a row as one entry.\n" +
		"var collations = []collationRange{\n")
	for i := 0; i < len(ids); {
		j := i
		for j+1 < len(ids) && ids[j+1] == ids[j]+1 && c[ids[j+1]] == c[ids[i]] {
			j++
		}
		fmt.Fprintf(&b, "\t{%d, %d, %q},\n", ids[i], ids[j], c[ids[i]])
		i = j + 1
	}
	b.WriteString("}\n")
	return writeGo(filepath.Join(out, "collation_table.go"), b.String())
}
