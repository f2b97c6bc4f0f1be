//go:build !unit

package lean_test

import (
	"database/sql"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/lean"
	"example.com/outbox-relay/test/rig"
)

// TestJSONIsTheServers compares the text of JSON columns byte by byte with what MySQL prints. (MariaDB's JSON is a text
// column.)
func TestJSONIsTheServers(t *testing.T) {
	s := rig.MySQL(t)
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	conn := session(t, s, "USE "+s.Database(t), "CREATE TABLE j (id INT PRIMARY KEY AUTO_INCREMENT, doc JSON)")
	compareJSON(t, s, conn, 1, func() {
		for _, expression := range jsonExpressions(rnd) {
			run(t, conn, "INSERT INTO j (doc) VALUES ("+expression+")")
		}
	})
	// Changes in place leave holes in the binary form.
	compareJSON(t, s, conn, 1, func() {
		run(t, conn, "UPDATE j SET doc = JSON_SET(doc, '$.a', 'x', '$[0]', 1, '$.new', JSON_ARRAY(1, NULL))")
		run(t, conn, "UPDATE j SET doc = JSON_REMOVE(doc, '$.k', '$[1]')")
	})
	// A literal of no bytes: NULL forced into a NOT NULL column.
	run(t, conn, "DROP TABLE j", "CREATE TABLE j (id INT PRIMARY KEY AUTO_INCREMENT, doc JSON NOT NULL)")
	compareJSON(t, s, conn, 1, func() { run(t, conn, "INSERT IGNORE INTO j (doc) SELECT NULL UNION ALL SELECT NULL") })
}

// TestPartialJSONIsRefused: an update written as JSON diffs does not hold the document.
func TestPartialJSONIsRefused(t *testing.T) {
	s := rig.MySQL(t)
	database := s.Database(t)
	conn := session(t, s, "USE "+database, "SET binlog_row_value_options = PARTIAL_JSON",
		"CREATE TABLE j (id INT PRIMARY KEY, doc JSON)", `INSERT INTO j VALUES (1, '{"a": "a long enough text to make a diff worth it", "b": 1}')`)
	list := capture(t, s, conn, func() { run(t, conn, "UPDATE j SET doc = JSON_SET(doc, '$.b', 2)") })
	_, columns := columnsOf(t, conn, database, "j")
	seen := 0
	require.NoError(t, replay(s.Flavor, list, columns, func(d decoded) error {
		seen++
		require.ErrorIs(t, d.leanErr, lean.ErrUnsupported)
		return nil
	}))
	require.Equal(t, 1, seen)
}

// compareJSON compares the last image of each row that the changes wrote with the table.
func compareJSON(t *testing.T, s *rig.Server, conn *sql.Conn, column int, change func()) {
	t.Helper()
	columns := []lean.Column{{Index: 0}, {Index: column}}
	got := map[string][]byte{}
	require.NoError(t, replay(s.Flavor, capture(t, s, conn, change), columns, func(d decoded) error {
		for _, r := range d.rows {
			got[string(text(r.after.lean[0]))] = text(r.after.lean[1])
		}
		return d.leanErr
	}))
	require.NotEmpty(t, got)
	for _, row := range query(t, conn, "SELECT id, doc FROM j") {
		if doc, ok := got[string(row[0])]; ok {
			require.Empty(t, firstDifference(string(row[1]), string(doc)), "row %s", row[0])
		}
	}
}

// firstDifference returns the places where two texts part, "" when they are equal.
func firstDifference(a, b string) string {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	if len(a) == len(b) && n == len(a) {
		return ""
	}
	from := max(0, n-40)
	return fmt.Sprintf("the server %.100q, lean %.100q", a[from:], b[from:])
}

// jsonExpressions returns SQL expressions for documents with all that a document can hold.
func jsonExpressions(rnd *rand.Rand) (list []string) {
	for _, text := range []string{
		`null`, `true`, `false`, `0`, `-1`, `32767`, `32768`, `-32768`, `-32769`, `65535`, `65536`, `2147483648`, `-2147483649`, `4294967296`,
		`9223372036854775807`, `-9223372036854775808`, `18446744073709551615`, `18446744073709551616`, `""`, `"a"`, `[]`, `{}`, `[[], {}]`,
		`{"b": 1, "a": 2, "aa": 3, "": 4}`, `{"k": {"k": {"k": [1, [2, [3]]]}}}`, `"ü日本語😀"`, `{"ключ": "Ж"}`, `[1, "x", true, null, 1.5, {"a": []}]`,
		`0.0`, `-0.0`, `1.0`, `1e15`, `1e14`, `1e16`, `123456789012345678.0`, `1e-5`, `1e-14`, `1e-15`, `1.5e-15`, `1e100`, `1.7976931348623157e308`, `5e-324`, `0.1`, `100.25`, `1e22`, `123456.789e3`,
		strings.Repeat("[", 99) + strings.Repeat("]", 99), `"` + strings.Repeat("long", 40000) + `"`, `[` + strings.Repeat(`"abcdefghij", `, 9000) + `70000]`,
		`{"big": "` + strings.Repeat("x", 70000) + `", "n": 70000, "u": 4000000000, "s": 1}`,
	} {
		list = append(list, "'"+text+"'")
	}
	list = append(list,
		"JSON_QUOTE(CONCAT(CHAR(0, 1, 8, 9, 10, 12, 13, 27, 31, 127 USING utf8mb4), '\\\\\"/<>&'))",
		"CAST(1.10 AS JSON)", "CAST(-0.5 AS JSON)", "CAST("+strings.Repeat("9", 35)+"."+strings.Repeat("9", 30)+" AS JSON)", "CAST(CAST(0 AS DECIMAL(10, 3)) AS JSON)",
		"CAST(CAST('2024-02-29' AS DATE) AS JSON)", "CAST(CAST('0000-00-00' AS DATE) AS JSON)", "CAST(CAST('2024-02-29 01:02:03.456' AS DATETIME(3)) AS JSON)",
		"CAST(CAST('-838:59:59' AS TIME) AS JSON)", "CAST(CAST('00:00:00' AS TIME(2)) AS JSON)", "CAST(CAST('-00:00:00.000001' AS TIME(6)) AS JSON)", "CAST(TIMESTAMP('2024-02-29 01:02:03') AS JSON)",
		"JSON_ARRAY(NOW(6), CURDATE(), CURTIME(3), CAST('0000-00-00 00:00:00' AS DATETIME))",
		"JSON_OBJECT('bin', x'00ff10', 'bit', b'101', 'geo', POINT(1, 2.5), 'year', CAST(2024 AS YEAR))", "CAST(REPEAT(x'0123456789', 40) AS JSON)", "CAST(CAST('' AS BINARY) AS JSON)", "CAST(REPEAT(x'01', 57) AS JSON)",
		"JSON_ARRAY(CAST(1.5 AS FLOAT), CAST(0.1 AS FLOAT), PI(), 1/3)")
	// Doubles of all sizes, by their digits.
	for range 100 {
		numbers := make([]string, 50)
		for i := range numbers {
			f := math.Float64frombits(rnd.Uint64())
			switch {
			case math.IsNaN(f) || math.IsInf(f, 0):
				f = 1
			case i%2 == 0: // near the change of notation
				f = math.Ldexp(rnd.Float64()-0.5, rnd.IntN(130)-65)
			case i%3 == 0: // with 15 to 18 digits before the point
				f = math.Ldexp(float64(rnd.Int64N(1<<53)), rnd.IntN(9)-5)
			case i%5 == 0: // with few digits
				f = float64(rnd.IntN(1000)) * math.Pow10(rnd.IntN(40)-20)
			}
			numbers[i] = fmt.Sprintf("%.17e", f)
		}
		list = append(list, "JSON_ARRAY("+strings.Join(numbers, ", ")+")")
	}
	return list
}
