//go:build !unit

package compose_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/rig"
)

// The init script runs under bash with a mysql that only writes down what it is told; that is run on a real server. Then the
// relay's user must have all that the relay needs.
func TestInitScriptMakesATableAndUsersThatDo(t *testing.T) {
	t.Parallel()
	server := rig.MySQL(t, rig.Own())
	project := loadAll(t)
	container := service(t, project, "mysql")
	text, err := os.ReadFile(mounted(t, container, "/docker-entrypoint-initdb.d/10-outbox.sh"))
	require.NoError(t, err)
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mysql"), []byte("#!/bin/sh\ncat\n"), 0o700))
	run := exec.CommandContext(t.Context(), "bash", "-c", outside(t, project, container, string(text)))
	run.Env = []string{"PATH=" + dir + ":" + os.Getenv("PATH")}
	sql, err := run.Output()
	require.NoError(t, err)
	db := server.DB(t)
	var statements int
	for statement := range strings.SplitSeq(string(sql), ";\n") {
		if strings.TrimSpace(statement) == "" {
			continue
		}
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err, statement)
		statements++
	}
	assert.Greater(t, statements, 6)

	source := relayConfig(t, project, "relay-1").Sources[0]
	report, err := store.Inspect(t.Context(), store.Config{
		Config: mysql.Config{Addr: server.Addr, User: source.Primary.User, Password: source.Primary.Password.Reveal()}, Tables: source.Tables,
		Columns: source.Columns.Outbox(), Statuses: source.Statuses.Outbox(),
	})
	require.NoError(t, err)
	assert.Equal(t, diagnose.OK, report.Worst(), "%+v", report)
	var columns int
	require.NoError(t, db.QueryRowContext(t.Context(), `SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = 'app' AND table_name = 'local_message' AND column_name IN (?, ?, ?, ?)`,
		source.Columns.Key, source.Columns.Headers, source.Columns.LastError, source.Columns.Trace).Scan(&columns))
	assert.Equal(t, 4, columns)
}

// Redis starts on its configuration, and doctor has nothing to say about it.
func TestRedisIsAsTheRelayWantsIt(t *testing.T) {
	t.Parallel()
	project := loadAll(t)
	redis := service(t, project, "redis")
	// What the command writes in front of starting the server, with the paths of outside.
	script, serve, found := strings.Cut(redis.Command[2], "exec redis-server ")
	require.True(t, found)
	dir := t.TempDir()
	conf := filepath.Join(dir, "redis.conf")
	script = strings.ReplaceAll(script, strings.TrimSpace(serve), conf)
	script = strings.ReplaceAll(script, "/etc/redis/redis.conf", mounted(t, redis, "/etc/redis/redis.conf"))
	out, err := exec.CommandContext(t.Context(), "sh", "-c", outside(t, project, redis, script)).CombinedOutput()
	require.NoError(t, err, string(out))
	info, err := os.Stat(conf)
	require.NoError(t, err)
	assert.Equal(t, os.FileMode(0o600), info.Mode().Perm(), "it holds the password")

	text, err := os.ReadFile(conf)
	require.NoError(t, err)
	included, err := os.ReadFile(mounted(t, redis, "/etc/redis/redis.conf"))
	require.NoError(t, err)
	var args []string
	password := ""
	for line := range strings.Lines(string(included) + string(text)) {
		words := strings.Fields(line)
		switch {
		case len(words) == 0, words[0] == "#", words[0] == "include", words[0] == "dir", words[0] == "bind":
		case words[0] == "requirepass":
			password = words[1]
		default:
			args = append(args, "--"+words[0])
			args = append(args, strings.Trim(strings.Join(words[1:], " "), `"`))
		}
	}
	c := relayConfig(t, project, "relay-1")
	assert.Equal(t, c.Redis.Password.Reveal(), password)
	server := rig.Redis(t, rig.Args(args...))
	s, err := checkpoint.Open(checkpoint.Config{URLs: []string{server.URL()}}, zerolog.Nop())
	require.NoError(t, err)
	report, err := s.Inspect(t.Context())
	require.NoError(t, err)
	require.NoError(t, s.Close())
	assert.Equal(t, diagnose.OK, report.Worst(), "%+v", report)
}
