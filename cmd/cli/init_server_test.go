//go:build !unit

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/cmd/cli"
	"example.com/outbox-relay/test/rig"
)

type initResult struct {
	Sources []struct {
		Executed           bool
		Statements, Grants []string
	}
}

// From nothing to what doctor is content with; a second time there is nothing to do.
func TestInit(t *testing.T) {
	flavors(t, func(t *testing.T, server *rig.Server) {
		s := newScene(t, server, rig.Kafka(t))
		s.exec("DROP TABLE " + s.table)
		user := "'" + s.settings["source.primary.user"].(string) + "'@'%'" //nolint:forcetypeassert,errcheck // the test's own
		s.exec("REVOKE ALL PRIVILEGES, GRANT OPTION FROM " + user)

		printed := s.ok("init", "--print-sql")
		assert.Contains(t, printed, "CREATE TABLE IF NOT EXISTS")
		assert.Contains(t, printed, "GRANT SELECT, UPDATE")
		assert.Contains(t, s.fails(cli.ExitFailed, "init"), "--print-sql")

		password := filepath.Join(t.TempDir(), "password")
		require.NoError(t, os.WriteFile(password, []byte(server.Password+"\n"), 0o600))
		admin := []string{"init", "--user", server.User, "--password-file", password}
		var r initResult
		s.json(&r, admin...)
		assert.True(t, r.Sources[0].Executed)
		assert.NotEmpty(t, r.Sources[0].Statements)
		s.doctor().only()

		// What is missing is added to a table that is there.
		s.exec("ALTER TABLE " + s.table + " DROP COLUMN last_error, DROP INDEX idx_status_retry")
		r = initResult{}
		s.json(&r, admin...)
		all := strings.Join(r.Sources[0].Statements, "\n")
		assert.Contains(t, all, "ADD COLUMN `last_error`")
		assert.Contains(t, all, "CREATE INDEX idx_status_retry")
		s.doctor().only()

		r = initResult{}
		s.json(&r, append(admin, "--print-sql")...)
		assert.Empty(t, r.Sources[0].Statements)
		assert.False(t, r.Sources[0].Executed)
		assert.Contains(t, s.ok("init"), "nothing is missing")
	})
}

// What is printed can be fed to a client as it is.
func TestInitPrintsSQL(t *testing.T) {
	t.Parallel()
	s := newScene(t, rig.MySQL(t), nil)
	s.exec("DROP TABLE " + s.table)
	s.exec(s.ok("init", "--print-sql"))
	s.insert("a", "orders", "")
}
