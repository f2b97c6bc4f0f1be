package store

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
)

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pattern, database, table string
		fold, match              bool
	}{
		{"app.local_message", "app", "local_message", false, true},
		{"app.local_message", "app", "local_message_bak", false, false},
		{"app.local_message", "xapp", "local_message", false, false},
		{"app.Local_Message", "app", "local_message", false, false},
		{"App.Local_Message", "app", "local_message", true, true},
		{`app./local_message_\d+/`, "app", "local_message_12", false, true},
		{`app./local_message_\d+/`, "app", "local_message_12x", false, false},
		{`app./local_message_\d+/`, "app", "Local_Message_12", true, true},
		{`/app\d/.m`, "app7", "m", false, true},
		{`/a.p/./m.n/`, "a.p", "m.n", false, true},
		{`/a|b/./m|n/`, "b", "n", false, true},
		{`/a|b/./m|n/`, "bx", "n", false, false},
		{"app.odd.name", "app", "odd.name", false, true},
		{"app.with/slash", "app", "with/slash", false, true},
	} {
		p, err := parsePattern(tc.pattern, tc.fold)
		require.NoError(t, err, tc.pattern)
		assert.Equal(t, tc.match, p.database.match(tc.database) && p.table.match(tc.table), "%+v", tc)
	}
	for _, wrong := range []string{"", "table", ".table", "app.", "/app.table", "app./table", "/app/table", "app./(/", "/(/.t", "//", "app./"} {
		_, err := parsePattern(wrong, false)
		assert.Error(t, err, wrong)
	}
}

func TestNearest(t *testing.T) {
	t.Parallel()
	names := []string{"orders", "local_message", "Local_Messages", "local_massage", "x"}
	assert.Equal(t, []string{"local_message", "Local_Messages", "local_massage"}, nearest("local_mesage", names))
	assert.Empty(t, nearest("zzzzzzzz", names))
	assert.Equal(t, 3, distance("kitten", "sitting"))
	assert.Equal(t, 4, distance("", "four"))
	assert.Equal(t, 4, distance("four", ""))
}

func TestServerFeatures(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]server{
		"9.7.4":                       {major: 9, minor: 7, skipLocked: true, indexVisible: "IS_VISIBLE"},
		"8.0.36-28.1":                 {major: 8, skipLocked: true, indexVisible: "IS_VISIBLE"},
		"5.7.44-log":                  {major: 5, minor: 7, indexVisible: "'YES'"},
		"10.11.19-MariaDB-deb12-log":  {major: 10, minor: 11, mariaDB: true, skipLocked: true, indexVisible: "IF(IGNORED='YES','NO','YES')"},
		"10.5.23-MariaDB":             {major: 10, minor: 5, mariaDB: true, indexVisible: "'YES'"},
		"11.4.2-MariaDB-ubu2404":      {major: 11, minor: 4, mariaDB: true, skipLocked: true, indexVisible: "IF(IGNORED='YES','NO','YES')"},
		"99999999999999999999.1.1-xx": {minor: 1, indexVisible: "'YES'"},
	} {
		want.version = version
		assert.Equal(t, want, newServer(version, 0), version)
	}
	assert.True(t, newServer("8.4.0", 2).foldNames)
}

func TestLiterals(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `'plain é 中'`, literal("plain é 中"))
	assert.Equal(t, `'it''s \\ \0'`, literal("it's \\ \x00"))
	assert.Equal(t, "`we``ird`", identifier("we`ird"))
	assert.Equal(t, "X'00ff27'", binaryLiteral("\x00\xff'"))
	assert.Equal(t, "''", binaryLiteral(""))
	assert.Equal(t, "INTERVAL 1500000 MICROSECOND", interval(1500*time.Millisecond))
	assert.Equal(t, "INTERVAL 0 MICROSECOND", interval(-time.Second))
}

func TestErrorsAreClassedByNumber(t *testing.T) {
	t.Parallel()
	for number, want := range map[uint16]error{
		1040: ErrUnreachable, 1053: ErrUnreachable, 1927: ErrUnreachable, 4031: ErrUnreachable, 1205: ErrBusy, 1213: ErrBusy, 3572: ErrBusy,
		1021: ErrUnreachable, 1114: ErrUnreachable, 1598: ErrUnreachable, // a report must not be skipped because of a full disk
		1290: ErrReadOnly, 1836: ErrReadOnly, 1045: ErrPrivilege, 1142: ErrPrivilege, 1227: ErrPrivilege, 1146: ErrGone, 1049: ErrGone,
		1054: ErrSchema, 1176: ErrSchema, 1366: ErrServer, 1062: ErrServer, 60000: ErrServer,
	} {
		err := describe("mark", fmt.Errorf("wrapped: %w", &mysql.MySQLError{Number: number, SQLState: [5]byte{'H', 'Y', '0', '0', '0'}, Message: "canary"}))
		require.ErrorIs(t, err, want, number)
		var own *Error
		require.ErrorAs(t, err, &own)
		assert.Equal(t, number, own.Number)
		assert.Equal(t, !slices.Contains([]error{ErrPrivilege, ErrGone, ErrSchema}, want), Retryable(err), number)
		assert.Equal(t, saysNoData[number], strings.Contains(err.Error(), "canary"), number)
	}
}

func TestFaultsOfTheConnectionAreUnreachable(t *testing.T) {
	t.Parallel()
	for _, cause := range []error{
		driver.ErrBadConn, mysql.ErrInvalidConn, io.EOF, io.ErrUnexpectedEOF, net.ErrClosed, mysql.ErrMalformPkt,
		&net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")},
	} {
		err := describe("mark", fmt.Errorf("wrapped: %w", cause))
		require.ErrorIs(t, err, ErrUnreachable, cause)
		assert.True(t, Retryable(err))
	}
	for _, quiet := range []error{context.Canceled, context.DeadlineExceeded} {
		err := describe("mark", quiet)
		require.ErrorIs(t, err, quiet)
		assert.False(t, Retryable(err))
	}
	odd := describe("mark", errors.New(`converting "canary" to int`))
	require.ErrorIs(t, odd, ErrServer)
	assert.NotContains(t, odd.Error(), "canary")
	require.NoError(t, describe("mark", nil))
	own := schemaError(ErrGone, "x")
	assert.Equal(t, own, describe("other", own), "a described error is not described again")
	require.ErrorIs(t, describe("connect", mysql.ErrNoTLS), ErrPrivilege)
}

func TestBatches(t *testing.T) {
	t.Parallel()
	a, b := outbox.Table{Name: "a"}, outbox.Table{Name: "b"}
	var refs []outbox.Ref
	for i := range batchSize + 1 {
		refs = append(refs, outbox.Ref{Table: a, ID: uint64(i)}, outbox.Ref{Table: b, ID: uint64(i)}) //nolint:gosec // positive
	}
	groups := byTable(refs)
	require.Len(t, groups, 4)
	for i, want := range []struct {
		table outbox.Table
		n     int
	}{{a, batchSize}, {b, batchSize}, {a, 1}, {b, 1}} {
		assert.Equal(t, want.table, groups[i].table)
		assert.Len(t, groups[i].refs, want.n)
	}
	assert.EqualValues(t, batchSize, groups[2].refs[0].ID)
	assert.Empty(t, byTable(nil))
	failures := make([]Failure, 201)
	assert.Len(t, failuresByTable(failures), 2)
}

func TestTimeTexts(t *testing.T) {
	t.Parallel()
	table := Table{cols: map[string]column{"create_time": {kind: "timestamp"}, "update_time": {kind: "datetime"}}}
	for raw, want := range map[string]string{
		"": "", "0": "0000-00-00 00:00:00", "0.000": "0000-00-00 00:00:00.000", "1761438600": "2025-10-26 00:30:00", "1761438600.250000": "2025-10-26 00:30:00.250000",
	} {
		assert.Equal(t, want, table.timeText("create_time", []byte(raw)), raw)
	}
	assert.Equal(t, "2026-00-10 00:00:00", table.timeText("update_time", []byte("2026-00-10 00:00:00")))
}

func TestLockNames(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "outbox-relay:default", lockName("default"))
	long := strings.Repeat("x", 80)
	assert.Len(t, lockName(long), maxLockName)
	assert.NotEqual(t, lockName(long), lockName(long+"y"))
}

func TestFitError(t *testing.T) {
	t.Parallel()
	table := Table{cols: map[string]column{"last_error": {kind: "varchar", length: 3}}}
	assert.Equal(t, "ééé", table.fitError("éééé"))
	assert.Equal(t, "a?b", table.fitError("a\xff\xfeb"))
	table.cols["last_error"] = column{kind: "tinytext", length: 255}
	assert.Len(t, []rune(table.fitError(strings.Repeat("中", 100))), 63)
}

func TestIDs(t *testing.T) {
	t.Parallel()
	signed, unsigned := Table{}, Table{Unsigned: true}
	for text, id := range map[string]uint64{"-1": 1<<64 - 1, "-9223372036854775808": 1 << 63, "7": 7} {
		got, err := signed.parseID(text)
		require.NoError(t, err)
		assert.Equal(t, id, got)
		assert.Equal(t, text, signed.formatID(id))
	}
	got, err := unsigned.parseID("18446744073709551615")
	require.NoError(t, err)
	assert.Equal(t, "18446744073709551615", unsigned.formatID(got))
	assert.Negative(t, signed.byIDOrder(1<<64-1, 1), "-1 comes before 1")
	assert.Positive(t, unsigned.byIDOrder(1<<64-1, 1))
}

func TestValidateReportsEverything(t *testing.T) {
	t.Parallel()
	err := Config{Tables: []string{"x", "a.b"}, Statuses: outbox.Statuses{0, 1, 1, 3, 4, 5}}.Validate()
	require.Error(t, err)
	for _, part := range []string{"address is empty", `"x"`, "sent and failed are both 1"} {
		require.ErrorContains(t, err, part)
	}
	require.ErrorContains(t, Config{Addr: "x"}.Validate(), "tables is empty")
	require.NoError(t, Config{Addr: "x", Tables: []string{"a.b"}}.Validate())
}

func TestGrantsByFlavor(t *testing.T) {
	t.Parallel()
	cfg := Config{User: "mark", StreamUser: "str'eam"}
	tables := []outbox.Table{{Database: "app", Name: "m"}}
	printed := strings.Join(grants(newServer("9.7.4", 0), cfg, tables, "", true), "\n")
	assert.Equal(t, `CREATE USER IF NOT EXISTS 'mark'@'%' IDENTIFIED BY 'choose a password';
GRANT SELECT, UPDATE ON `+"`app`.`m`"+` TO 'mark'@'%';
GRANT SESSION_VARIABLES_ADMIN ON *.* TO 'mark'@'%';  -- optional: marks write less binlog
CREATE USER IF NOT EXISTS 'str''eam'@'%' IDENTIFIED BY 'choose a password';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'str''eam'@'%';
GRANT SELECT ON `+"`app`.`m`"+` TO 'str''eam'@'%';`, printed)
	maria := strings.Join(grants(newServer("10.11.2-MariaDB", 0), cfg, tables, "mark", false), "\n")
	assert.Equal(t, "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO 'str''eam'@'%';\nGRANT SELECT ON `app`.`m` TO 'str''eam'@'%';", maria)
	assert.Empty(t, grants(newServer("9.7.4", 0), Config{User: "me"}, tables, "me", false), "nobody can give himself what he lacks")
}

func TestInitPrintsWithoutTheServer(t *testing.T) {
	t.Parallel()
	statements, err := Init(t.Context(), Config{Addr: "127.0.0.1:1", User: "relay", Password: "canary", Tables: []string{"app.m", `app./s\d/`}}, true)
	require.NoError(t, err)
	all := strings.Join(statements, "\n")
	assert.Contains(t, all, "CREATE TABLE IF NOT EXISTS `app`.`m`")
	assert.Contains(t, all, "GRANT SELECT, UPDATE ON `app`.`m` TO 'relay'@'%';")
	assert.NotContains(t, all, "canary")
	_, err = Init(t.Context(), Config{Addr: "127.0.0.1:1", Tables: []string{"app.m"}}, false)
	require.ErrorIs(t, err, ErrUnreachable)
}

func TestMessageNames(t *testing.T) {
	t.Parallel()
	assert.Equal(t, Filter{IDs: []uint64{18446744073709551615}}, ParseMessageName("18446744073709551615"))
	assert.Equal(t, Filter{IDs: []uint64{1<<64 - 1}}, ParseMessageName("-1"))
	assert.Equal(t, Filter{MsgIDs: []string{"a-1"}}, ParseMessageName("a-1"))
}
