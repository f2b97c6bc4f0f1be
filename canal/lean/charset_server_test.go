//go:build !unit

package lean_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/lean"
	"example.com/outbox-relay/test/rig"
)

// TestCharsetsAreTheServers stores every code of every charset in a column, and compares what lean makes of the bytes
// with what a client that reads in utf8mb4 gets. Of the supplementary planes it takes one character in 127.
func TestCharsetsAreTheServers(t *testing.T) {
	flavors(t, func(t *testing.T, s *rig.Server) {
		database := s.Database(t)
		conn := session(t, s, "USE "+database, "SET sql_log_bin = 0",
			"CREATE TABLE byte1 (n INT PRIMARY KEY) ENGINE=MyISAM",
			"INSERT INTO byte1 WITH RECURSIVE d AS (SELECT 0 v UNION ALL SELECT v + 1 FROM d WHERE v < 255) SELECT v FROM d",
			"CREATE TABLE code (n INT PRIMARY KEY, b VARBINARY(4)) ENGINE=MyISAM",
			"INSERT INTO code SELECT a.n * 256 + b.n, UNHEX(LPAD(HEX(a.n * 256 + b.n), 4, '0')) FROM byte1 a, byte1 b")
		for _, row := range query(t, conn, "SELECT character_set_name, maxlen FROM information_schema.character_sets") {
			name, longest := string(row[0]), int(row[1][0]-'0')
			if strings.HasPrefix(name, "utf8") || name == "binary" {
				continue // needs no conversion, see TestRowsAreWhatTheServerSelects
			}
			require.True(t, lean.KnownCharset(name), name)
			run(t, conn, "DROP TABLE IF EXISTS held",
				"CREATE TABLE held (b VARBINARY(8), c VARCHAR(8) CHARACTER SET "+name+") ENGINE=MyISAM")
			for _, codes := range codesOf(name, longest) {
				run(t, conn, "INSERT IGNORE INTO held SELECT x, x FROM ("+codes+") codes")
			}
			compareCharset(t, query(t, conn, "SELECT CAST(c AS BINARY), c FROM held"), name)
		}
	})
}

// codesOf lists queries for the codes of a charset: more than it has, since the column holds only what it has.
func codesOf(name string, longest int) (queries []string) {
	// One character in 127 from the supplementary planes: s is its number.
	const sampled = "SELECT 65536 + 127 * n AS s FROM code WHERE n <= (0x10ffff - 65536) DIV 127"
	switch name {
	case "ucs2":
		return []string{"SELECT b AS x FROM code"}
	case "utf32":
		return []string{"SELECT CONCAT(x'0000', b) AS x FROM code", "SELECT UNHEX(LPAD(HEX(s), 8, '0')) AS x FROM (" + sampled + ") p"}
	case "utf16":
		return []string{"SELECT b AS x FROM code", "SELECT UNHEX(CONCAT(HEX(0xd800 + ((s - 65536) >> 10)), HEX(0xdc00 + (s & 1023)))) AS x FROM (" + sampled + ") p"}
	case "utf16le":
		return []string{"SELECT REVERSE(b) AS x FROM code", `SELECT CONCAT(REVERSE(UNHEX(HEX(0xd800 + ((s - 65536) >> 10)))), REVERSE(UNHEX(HEX(0xdc00 + (s & 1023))))) AS x FROM (` + sampled + `) p`}
	}
	queries = []string{"SELECT SUBSTR(b, 2) AS x FROM code WHERE n < 256"}
	if longest > 1 {
		queries = append(queries, "SELECT b AS x FROM code")
	}
	if longest == 3 {
		queries = append(queries, "SELECT CONCAT(x'8f', b) AS x FROM code WHERE n >= 32768")
	}
	if name == "gb18030" {
		const tails = "(SELECT b FROM code WHERE n BETWEEN 0x8130 AND 0xfe39 AND n & 0xff BETWEEN 0x30 AND 0x39) tail"
		queries = append(queries, `SELECT CONCAT(code.b, tail.b) AS x FROM code, `+tails+` WHERE n BETWEEN 0x8130 AND 0x8439 AND n & 0xff BETWEEN 0x30 AND 0x39`,
			`SELECT CONCAT(code.b, tail.b) AS x FROM code, `+tails+` WHERE n BETWEEN 0x8530 AND 0xff39 AND n & 0xff BETWEEN 0x30 AND 0x39 AND CRC32(CONCAT(code.b, tail.b)) MOD 127 = 0`)
	}
	return queries
}

func compareCharset(t *testing.T, rows [][][]byte, name string) {
	t.Helper()
	stored, refused, bad := 0, 0, []string{}
	for _, row := range rows {
		if len(row[0]) > 0 {
			stored++
		}
		got, err := lean.ToUTF8(name, row[0])
		if err != nil && (bytes.ContainsRune(row[1], '?') || !utf8.Valid(row[1])) {
			refused++ // the server stores a few codes that it can't read itself: 0x8ea0 in ujis, surrogates in ucs2
			continue
		}
		if (err != nil || string(got) != string(row[1])) && len(bad) < 20 {
			bad = append(bad, fmt.Sprintf("%x: %q %v, the server has %q", row[0], got, err, row[1]))
		}
	}
	require.Empty(t, bad, name)
	require.GreaterOrEqual(t, stored, 128, name)
	require.LessOrEqual(t, refused, 2048, name)
	t.Logf("%s: %d of %d codes, %d refused", name, stored, len(rows), refused)
}

// TestCollationsAreTheServers compares the charset of every collation id.
func TestCollationsAreTheServers(t *testing.T) {
	flavors(t, func(t *testing.T, s *rig.Server) {
		conn := session(t, s)
		statement := "SELECT id, character_set_name FROM information_schema.collations WHERE id IS NOT NULL"
		if s.Flavor == rig.FlavorMariaDB {
			statement += " UNION SELECT id, character_set_name FROM information_schema.collation_character_set_applicability WHERE id IS NOT NULL"
		}
		rows := query(t, conn, statement)
		require.Greater(t, len(rows), 200)
		for _, row := range rows {
			var id uint64
			_, err := fmt.Sscan(string(row[0]), &id)
			require.NoError(t, err)
			name, ok := lean.CollationCharset(id)
			require.True(t, ok, "%d", id)
			require.Equal(t, string(row[1]), name, "%d", id)
		}
	})
}
