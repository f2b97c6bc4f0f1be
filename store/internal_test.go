package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

func TestBatches(t *testing.T) {
	t.Parallel()
	a, b := outbox.Table{Name: "a"}, outbox.Table{Name: "b"}
	var refs []outbox.Ref
	for i := range BatchSize + 1 {
		refs = append(refs, outbox.Ref{Table: a, ID: uint64(i)}, outbox.Ref{Table: b, ID: uint64(i)}) //nolint:gosec // positive
	}
	groups := ByTable(refs)
	require.Len(t, groups, 4)
	for i, want := range []struct {
		table outbox.Table
		n     int
	}{{a, BatchSize}, {b, BatchSize}, {a, 1}, {b, 1}} {
		assert.Equal(t, want.table, groups[i].Table)
		assert.Len(t, groups[i].Refs, want.n)
	}
	assert.EqualValues(t, BatchSize, groups[2].Refs[0].ID)
	assert.Empty(t, ByTable(nil))
	failures := make([]Failure, 201)
	assert.Len(t, failuresByTable(failures), 2)
}

func TestTimeTexts(t *testing.T) {
	t.Parallel()
	table := Table{cols: map[string]mysql.Column{"create_time": {Type: "timestamp"}, "update_time": {Type: "datetime"}}}
	for raw, want := range map[string]string{
		"": "", "0": "0000-00-00 00:00:00", "0.000": "0000-00-00 00:00:00.000", "1761438600": "2025-10-26 00:30:00", "1761438600.250000": "2025-10-26 00:30:00.250000",
	} {
		assert.Equal(t, want, table.timeText("create_time", []byte(raw)), raw)
	}
	assert.Equal(t, "2026-00-10 00:00:00", table.timeText("update_time", []byte("2026-00-10 00:00:00")))
}

func TestFitError(t *testing.T) {
	t.Parallel()
	table := Table{cols: map[string]mysql.Column{"last_error": {Type: "varchar", Chars: 3}}}
	assert.Equal(t, "ééé", table.FitError("éééé"))
	assert.Equal(t, "a?b", table.FitError("a\xff\xfeb"))
	table.cols[words.ColumnLastError] = mysql.Column{Type: "tinytext", Chars: 255}
	assert.Len(t, []rune(table.FitError(strings.Repeat("中", 100))), 63)
}

func TestIDs(t *testing.T) {
	t.Parallel()
	signed, unsigned := Table{}, Table{Unsigned: true}
	for text, id := range map[string]uint64{"-1": 1<<64 - 1, "-9223372036854775808": 1 << 63, "7": 7} {
		got, err := signed.ParseID(text)
		require.NoError(t, err)
		assert.Equal(t, id, got)
		assert.Equal(t, text, signed.FormatID(id))
	}
	got, err := unsigned.ParseID("18446744073709551615")
	require.NoError(t, err)
	assert.Equal(t, "18446744073709551615", unsigned.FormatID(got))
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
	require.ErrorContains(t, Config{Config: mysql.Config{Addr: "x"}}.Validate(), "tables is empty")
	require.NoError(t, Config{Config: mysql.Config{Addr: "x"}, Tables: []string{"a.b"}}.Validate())
}

func TestGrantsByFlavor(t *testing.T) {
	t.Parallel()
	cfg := Config{Config: mysql.Config{User: "mark"}, StreamUser: "str'eam"}
	tables := []outbox.Table{{Database: "app", Name: "m"}}
	printed := strings.Join(grants(mysql.NewServer("9.7.4", "", "0"), cfg, tables, "", true), "\n")
	assert.Equal(t, `CREATE USER IF NOT EXISTS 'mark'@'%' IDENTIFIED BY 'choose a password';
GRANT SELECT, UPDATE ON `+"`app`.`m`"+` TO 'mark'@'%';
GRANT SESSION_VARIABLES_ADMIN ON *.* TO 'mark'@'%';  -- optional: marks write less binlog
CREATE USER IF NOT EXISTS 'str''eam'@'%' IDENTIFIED BY 'choose a password';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'str''eam'@'%';
GRANT SELECT ON `+"`app`.`m`"+` TO 'str''eam'@'%';`, printed)
	maria := strings.Join(grants(mysql.NewServer("10.11.2-MariaDB", "", "0"), cfg, tables, "mark", false), "\n")
	assert.Equal(t, "GRANT REPLICATION SLAVE, BINLOG MONITOR ON *.* TO 'str''eam'@'%';\nGRANT SELECT ON `app`.`m` TO 'str''eam'@'%';", maria)
	assert.Empty(t, grants(mysql.NewServer("9.7.4", "", "0"), Config{Config: mysql.Config{User: "me"}}, tables, "me", false), "nobody can give himself what he lacks")
}

func TestInitPrintsWithoutTheServer(t *testing.T) {
	t.Parallel()
	statements, err := Init(t.Context(), Config{Config: mysql.Config{Addr: "127.0.0.1:1", User: "relay", Password: "canary"}, Tables: []string{"app.m", `app./s\d/`}}, true)
	require.NoError(t, err)
	all := strings.Join(statements, "\n")
	assert.Contains(t, all, "CREATE TABLE IF NOT EXISTS `app`.`m`")
	assert.Contains(t, all, "GRANT SELECT, UPDATE ON `app`.`m` TO 'relay'@'%';")
	assert.NotContains(t, all, "canary")
	_, err = Init(t.Context(), Config{Config: mysql.Config{Addr: "127.0.0.1:1"}, Tables: []string{"app.m"}}, false)
	require.ErrorIs(t, err, ErrUnreachable)
}

func TestMessageNames(t *testing.T) {
	t.Parallel()
	assert.Equal(t, Filter{IDs: []uint64{18446744073709551615}}, ParseMessageName("18446744073709551615"))
	assert.Equal(t, Filter{IDs: []uint64{1<<64 - 1}}, ParseMessageName("-1"))
	assert.Equal(t, Filter{MsgIDs: []string{"a-1"}}, ParseMessageName("a-1"))
}
