//go:build !unit

package examples

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/rig"
)

// TestProducers: outbox works with each of these libraries, with its own types and no adapter.
func TestProducers(t *testing.T) {
	srv := rig.MySQL(t)
	for _, name := range []string{"databasesql", "sqlx", "gorm", "ent", "otel"} {
		t.Run(name, func(t *testing.T) { // one after the other: each is a build
			c := mysql.NewConfig()
			c.Net, c.Addr, c.User, c.Passwd, c.DBName = "tcp", srv.Addr, srv.User, srv.Password, srv.Database(t)
			test := exec.CommandContext(t.Context(), "go", "test", "-count=1", "./...")
			test.Dir = filepath.Join("..", "..", "examples", name)
			test.Env = append(os.Environ(), "EXAMPLE_DSN="+c.FormatDSN(), "GOWORK=off")
			out, err := test.CombinedOutput()
			require.NoError(t, err, "%s", out)
			assert.Contains(t, string(out), "ok  \texample.com/outbox-relay/examples/"+name, "its tests were run")
		})
	}
}
