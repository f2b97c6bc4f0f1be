//go:build !unit

package mysql

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/rig"
)

// both runs a test on each flavor of server.
func both(t *testing.T, test func(t *testing.T, srv *rig.Server)) {
	t.Helper()
	t.Parallel()
	t.Run("mysql", func(t *testing.T) { t.Parallel(); test(t, rig.MySQL(t)) })
	t.Run("mariadb", func(t *testing.T) { t.Parallel(); test(t, rig.MariaDB(t)) })
}

// desk is a database of the test's own, the administrator's pool, and a pool of a user with the least privileges.
type desk struct {
	*Pool
	db       *sql.DB
	database string
	cfg      Config
	lease    time.Duration
}

// newDesk makes an empty database.
func newDesk(t *testing.T, srv *rig.Server, grants ...rig.Grant) *desk {
	t.Helper()
	database := srv.Database(t)
	user, password := srv.RelayUser(t, append([]rig.Grant{rig.On(database)}, grants...)...)
	d := open(t, Config{Addr: srv.Addr, User: user, Password: password})
	d.db, d.database = srv.DB(t), database
	return d
}

func open(t *testing.T, cfg Config) *desk {
	t.Helper()
	p, err := NewPool(cfg, Options{Size: 4}, zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return &desk{Pool: p, cfg: cfg, lease: 10 * time.Second}
}

// AcquireLock waits for the lock of a source.
func (d *desk) AcquireLock(ctx context.Context, source string) (*Lock, error) {
	return AcquireLock(ctx, d.cfg, source, d.lease, zerolog.Nop())
}

func (d *desk) exec(t testing.TB, query string) {
	t.Helper()
	_, err := d.db.ExecContext(t.Context(), query)
	require.NoError(t, err, query)
}
