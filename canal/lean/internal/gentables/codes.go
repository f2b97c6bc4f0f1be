package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Codes that have no rune. Malformed: the server doesn't store it. Unmapped: the server stores it and gives a question
// mark, which needs no mark of its own.
const malformed = 0xd800

// shapes tells how the multi-byte charsets are built. A code is one byte; or two within the grid; or 0x8f and two within
// the grid; or, in gb18030, four.
var shapes = map[string]struct {
	grid        [4]int // the first and the last first byte, the first and the last second byte
	triple, big bool
}{
	"big5":     {grid: [4]int{0xa1, 0xf9, 0x40, 0xfe}},
	"gb2312":   {grid: [4]int{0xa1, 0xf7, 0xa1, 0xfe}},
	"gbk":      {grid: [4]int{0x81, 0xfe, 0x40, 0xfe}},
	"gb18030":  {grid: [4]int{0x81, 0xfe, 0x40, 0xfe}, big: true},
	"euckr":    {grid: [4]int{0x81, 0xfe, 0x41, 0xfe}},
	"sjis":     {grid: [4]int{0x81, 0xfc, 0x40, 0xfc}},
	"cp932":    {grid: [4]int{0x81, 0xfc, 0x40, 0xfc}},
	"ujis":     {grid: [4]int{0x8e, 0xfe, 0xa1, 0xfe}, triple: true},
	"eucjpms":  {grid: [4]int{0x8e, 0xfe, 0xa1, 0xfe}, triple: true},
	"utf8mb4":  {},
	"utf8mb3":  {},
	"utf8":     {},
	"binary":   {},
	"ucs2":     {},
	"utf16":    {},
	"utf16le":  {},
	"utf32":    {},
	"filename": {},
}

// repertoires maps a charset's name and a code, as the bytes of a string, to its rune.
type repertoires map[string]map[string]rune

func newRepertoires() repertoires { return repertoires{} }

// read adds what a server knows.
func (r repertoires) read(ctx context.Context, db *sql.DB) error {
	names, err := charsets(ctx, db)
	if err != nil {
		return err
	}
	if err := prepare(ctx, db); err != nil {
		return err
	}
	for _, name := range names {
		shape, multi := shapes[name]
		if multi && shape.grid[0] == 0 {
			continue // a Unicode encoding: needs no table
		}
		if err := r.readCharset(ctx, db, name); err != nil {
			return fmt.Errorf("charset %s: %w", name, err)
		}
	}
	return nil
}

func charsets(ctx context.Context, db *sql.DB) (names []string, err error) {
	rows, err := db.QueryContext(ctx, "SELECT character_set_name FROM information_schema.character_sets ORDER BY 1")
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// prepare makes a table of the numbers of two bytes, to build codes from.
func prepare(ctx context.Context, db *sql.DB) error {
	for _, query := range []string{
		"CREATE DATABASE IF NOT EXISTS gentables", "USE gentables",
		"SET SESSION sql_mode = '', NAMES utf8mb4",
		"CREATE TEMPORARY TABLE byte1 (n INT PRIMARY KEY) ENGINE=MyISAM",
		"CREATE TEMPORARY TABLE byte2 (n INT PRIMARY KEY) ENGINE=MyISAM",
		"INSERT INTO byte1 WITH RECURSIVE d AS (SELECT 0 v UNION ALL SELECT v + 1 FROM d WHERE v < 255) SELECT v FROM d",
		"INSERT INTO byte2 SELECT n FROM byte1",
		"CREATE TEMPORARY TABLE code (n INT PRIMARY KEY, b VARBINARY(4)) ENGINE=MyISAM",
		"INSERT INTO code SELECT a.n * 256 + b.n, UNHEX(LPAD(HEX(a.n * 256 + b.n), 4, '0')) FROM byte1 a, byte2 b",
		"CREATE TEMPORARY TABLE tail ENGINE=MyISAM SELECT b FROM code WHERE n BETWEEN 0x8130 AND 0xfe39 AND n & 0xff BETWEEN 0x30 AND 0x39",
	} {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
	}
	return nil
}

// readCharset stores every code in a column of the charset and reads back what became of it.
func (r repertoires) readCharset(ctx context.Context, db *sql.DB, name string) error {
	shape, multi := shapes[name]
	queries := []string{
		"DROP TEMPORARY TABLE IF EXISTS held",
		"CREATE TEMPORARY TABLE held (b VARBINARY(4), c VARCHAR(4) CHARACTER SET " + name + ") ENGINE=MyISAM",
		"INSERT IGNORE INTO held SELECT SUBSTR(b, 2), SUBSTR(b, 2) FROM code WHERE n < 256",
	}
	if multi {
		queries = append(queries, "INSERT IGNORE INTO held SELECT b, b FROM code WHERE n >= 32768")
	}
	if shape.triple {
		queries = append(queries,
			"INSERT IGNORE INTO held SELECT CONCAT(x'8f', b), CONCAT(x'8f', b) FROM code WHERE n >= 32768")
	}
	if shape.big { // the part for the basic plane: 0x81308130 to 0x8439FE39
		queries = append(queries, `INSERT IGNORE INTO held SELECT CONCAT(x.b, tail.b), CONCAT(x.b, tail.b)
			FROM code x, tail WHERE x.n BETWEEN 0x8130 AND 0x8439 AND x.n & 0xff BETWEEN 0x30 AND 0x39`)
	}
	for _, query := range queries {
		if _, err := db.ExecContext(ctx, query); err != nil {
			return fmt.Errorf("%s: %w", strings.Fields(query)[0], err)
		}
	}
	rows, err := db.QueryContext(ctx, "SELECT b, CONVERT(c USING utf8mb4) FROM held WHERE CAST(c AS BINARY) = b AND CHAR_LENGTH(c) = 1")
	if err != nil {
		return err
	}
	defer rows.Close() //nolint:errcheck // rows.Err tells
	for rows.Next() {
		var code, text []byte
		if err := rows.Scan(&code, &text); err != nil {
			return err
		}
		if err := r.add(name, string(code), string(text)); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (r repertoires) add(name, code, text string) error {
	c, size := utf8.DecodeRuneInString(text)
	if size != len(text) || c >= 0x10000 || c == malformed {
		return fmt.Errorf("code %x is %q: not one rune of the basic plane", code, text)
	}
	if r[name] == nil {
		r[name] = map[string]rune{}
	}
	if old, ok := r[name][code]; ok && old != c {
		return fmt.Errorf("code %x is %q on one server and %q on the other", code, old, c)
	}
	r[name][code] = c
	return nil
}

// names returns the charsets read, the single-byte ones or the others.
func (r repertoires) names(multi bool) (names []string) {
	for name := range r {
		if _, ok := shapes[name]; ok == multi {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

var errShape = errors.New("codes outside the expected shape")
