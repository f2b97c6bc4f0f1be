//go:build !unit

package lean_test

import (
	"bytes"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/lean"
	"example.com/outbox-relay/test/rig"
)

// TestRowsAreWhatTheServerSelects makes tables of every type in random order, changes random rows under each row image
// and each kind of metadata, and compares what lean reads from the binlog with what SELECT says, and with the stock
// decoder.
func TestRowsAreWhatTheServerSelects(t *testing.T) {
	flavors(t, func(t *testing.T, s *rig.Server) {
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rnd := rand.New(rand.NewPCG(seed, 0))
		database := s.Database(t)
		conn := session(t, s, "USE "+database)
		settings := []string{"NO_LOG", "MINIMAL", "FULL"}
		if s.Flavor == rig.FlavorMySQL {
			settings = settings[1:]
		}
		for _, metadata := range settings {
			run(t, conn, "SET GLOBAL binlog_row_metadata = "+metadata)
			for _, rowImage := range []string{"FULL", "MINIMAL", "NOBLOB"} {
				run(t, conn, "SET SESSION binlog_row_image = "+rowImage)
				c := tableCheck{t: t, s: s, conn: conn, database: database, rnd: rnd}
				for n, types := range deal(rnd, catalog(s.Flavor, rnd), 14) {
					name := strings.ToLower(fmt.Sprintf("t_%s_%s_%d", metadata, rowImage, n))
					c.check(name, types)
					// Every type once with what both servers tell, and a few of the rest.
					if *record && (metadata == "MINIMAL" && rowImage == "FULL" || n < 2 && metadata != "MINIMAL") {
						c.save(name)
					}
				}
			}
		}
	}, rig.Own())
}

// TestCompressedRows reads MariaDB's compressed rows events and MySQL's compressed transactions.
func TestCompressedRows(t *testing.T) {
	flavors(t, func(t *testing.T, s *rig.Server) {
		rnd := rand.New(rand.NewPCG(1, 2))
		database := s.Database(t)
		conn := session(t, s, "USE "+database)
		if s.Flavor == rig.FlavorMariaDB {
			run(t, conn, "SET GLOBAL log_bin_compress = ON, GLOBAL log_bin_compress_min_len = 10")
		} else {
			run(t, conn, "SET SESSION binlog_transaction_compression = ON")
		}
		c := tableCheck{t: t, s: s, conn: conn, database: database, rnd: rnd}
		for n, types := range deal(rnd, catalog(s.Flavor, rnd), 10) {
			c.check(fmt.Sprintf("c_%d", n), types)
		}
	}, rig.Own())
}

// TestRefusedColumns: what can't be read with certainty is refused when it is wanted, and no trouble when it is not.
func TestRefusedColumns(t *testing.T) {
	flavors(t, func(t *testing.T, s *rig.Server) {
		database := s.Database(t)
		conn := session(t, s, "USE "+database)
		refused := map[string]string{"FLOAT": "1", "DOUBLE": "1", "BIT(3)": "1", "ENUM('a')": "'a'", "SET('a')": "'a'", "POINT": "POINT(1, 1)"}
		if s.Flavor == rig.FlavorMariaDB {
			refused["UUID"], refused["INET6"], refused["INET4"] = "UUID()", "'::1'", "'127.0.0.1'"
			refused["TEXT COMPRESSED"], refused["VARCHAR(10) COMPRESSED"] = "'a'", "'a'"
		}
		for tp, value := range refused {
			run(t, conn, "DROP TABLE IF EXISTS r", "CREATE TABLE r (id INT, c "+tp+")")
			list := capture(t, s, conn, func() { run(t, conn, "INSERT INTO r VALUES (7, "+value+")") })
			_, columns := columnsOf(t, conn, database, "r")
			require.NoError(t, replay(s.Flavor, list, columns, func(d decoded) error {
				require.ErrorIs(t, d.leanErr, lean.ErrUnsupported, tp)
				return nil
			}))
			if strings.Contains(tp, "COMPRESSED") {
				continue // the table can't be walked
			}
			seen := 0
			require.NoError(t, replay(s.Flavor, list, columns[:1], func(d decoded) error {
				seen++
				require.NoError(t, d.leanErr, tp)
				require.EqualValues(t, 7, d.rows[0].after.lean[0].Int, tp)
				return nil
			}))
			require.Equal(t, 1, seen)
		}
	})
}

// TestOldMariaDBTimesAreRefused: MariaDB's own format of fractions can't be told from the one without.
func TestOldMariaDBTimesAreRefused(t *testing.T) {
	s := rig.MariaDB(t, rig.Own())
	database := s.Database(t)
	conn := session(t, s, "USE "+database, "SET GLOBAL mysql56_temporal_format = OFF")
	for _, tp := range []string{"TIME(3)", "DATETIME(3)", "TIMESTAMP(3)"} {
		run(t, conn, "CREATE OR REPLACE TABLE o (id INT, c "+tp+" NULL)")
		list := capture(t, s, conn, func() { run(t, conn, "INSERT INTO o VALUES (1, NULL)") })
		require.NoError(t, replay(s.Flavor, list, []lean.Column{{Index: 0}}, func(d decoded) error {
			require.ErrorIs(t, d.leanErr, lean.ErrUnsupported, tp)
			return nil
		}))
	}
}

// tableCheck makes one table, changes its rows and compares.
type tableCheck struct {
	t        *testing.T
	s        *rig.Server
	conn     *sql.Conn
	database string
	rnd      *rand.Rand
	table    string
	names    []string
	columns  []lean.Column // the wanted ones; the first is the id
	recorded recording
}

// maxRecording bounds the files in testdata.
const maxRecording = 14000

// save writes what was captured and compared to testdata, if it is short.
func (c *tableCheck) save(name string) {
	c.recorded.Flavor, c.recorded.Columns = c.s.Flavor, c.columns
	data, err := json.MarshalIndent(c.recorded, "", " ")
	require.NoError(c.t, err)
	if len(data) <= maxRecording {
		require.NoError(c.t, os.WriteFile(filepath.Join("testdata", c.s.Flavor+"_"+name+".json"), data, 0o644))
	}
}

func (c *tableCheck) check(table string, types []columnType) {
	c.t.Helper()
	c.table = table
	ddl := "CREATE TABLE " + table + " (id BIGINT PRIMARY KEY"
	wanted := map[string]bool{"id": true}
	for i, tp := range types {
		name := fmt.Sprintf("c%d", i)
		ddl += ", " + name + " " + tp.ddl
		wanted[name] = !tp.refused
	}
	run(c.t, c.conn, ddl+")")
	names, columns := columnsOf(c.t, c.conn, c.database, table)
	c.names, c.columns = nil, nil
	for i, name := range names {
		if wanted[name] {
			c.names, c.columns = append(c.names, name), append(c.columns, columns[i])
		}
	}
	rows := 6
	if *record {
		rows = 2
	}
	c.recorded = recording{}
	c.change(rows, func() {
		for id := 1; id <= rows; id++ {
			into, values := []string{"id"}, []string{fmt.Sprint(id)}
			for i, tp := range types {
				if id <= 2 || c.rnd.IntN(5) > 0 { // some are left to their default
					into, values = append(into, fmt.Sprintf("c%d", i)), append(values, tp.value(c.rnd, id))
				}
			}
			run(c.t, c.conn, "INSERT INTO "+table+" ("+strings.Join(into, ", ")+") VALUES ("+strings.Join(values, ", ")+")")
		}
	})
	c.change(rows, func() {
		for id := 1; id <= rows; id++ {
			sets := []string{"id = id + 100"}
			for i, tp := range types {
				if c.rnd.IntN(2) == 0 {
					sets = append(sets, fmt.Sprintf("c%d = %s", i, tp.value(c.rnd, id+1)))
				}
			}
			run(c.t, c.conn, fmt.Sprintf("UPDATE %s SET %s WHERE id = %d", table, strings.Join(sets, ", "), id))
		}
	})
	c.change(rows, func() { run(c.t, c.conn, "DELETE FROM "+table) })
}

// snapshot selects the wanted columns, by id.
func (c *tableCheck) snapshot() map[string][][]byte {
	rows := map[string][][]byte{}
	for _, row := range query(c.t, c.conn, "SELECT "+strings.Join(c.names, ", ")+" FROM "+c.table) {
		rows[string(row[0])] = row
	}
	return rows
}

// change compares the images of a change with the rows before and after it.
func (c *tableCheck) change(rows int, change func()) {
	c.t.Helper()
	before := c.snapshot()
	events := capture(c.t, c.s, c.conn, change)
	c.recorded.Events = append(c.recorded.Events, events...)
	after := c.snapshot()
	seen := 0
	err := replay(c.s.Flavor, events, c.columns, func(d decoded) error {
		seen += len(d.rows)
		errs := []error{d.leanErr, d.stockErr, d.agree(c.columns)}
		for _, r := range d.rows {
			errs = append(errs, c.compare(r.before, before), c.compare(r.after, after))
			c.recorded.Rows = append(c.recorded.Rows, r.String())
		}
		return errors.Join(errs...)
	})
	ddl := query(c.t, c.conn, "SHOW CREATE TABLE "+c.table)[0][1]
	require.NoError(c.t, err, "%s", ddl)
	require.Equal(c.t, rows, seen, "%s", ddl)
}

// compare checks the columns that an image has. The image after an update of a table under MINIMAL has no id: it can't be
// told which row it is, but all of them set the id.
func (c *tableCheck) compare(i *image, rows map[string][][]byte) error {
	if i == nil {
		return nil
	}
	id := i.lean[0]
	want, ok := rows[string(text(id))]
	if !ok {
		return fmt.Errorf("an image of row %d, which is not there", id.Int)
	}
	for n, v := range i.lean {
		got := text(v)
		if c.columns[n].DataType == "year" && string(want[n]) == "0000" {
			want[n] = []byte("0")
		}
		if v.State != lean.Absent && (!bytes.Equal(got, want[n]) || (got == nil) != (want[n] == nil)) {
			return fmt.Errorf("row %d, %s: lean has %q, the server %q", id.Int, c.names[n], got, want[n])
		}
	}
	return nil
}
