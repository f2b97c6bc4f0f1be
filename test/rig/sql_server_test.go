//go:build !unit

package rig_test

import (
	"context"
	"database/sql"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/rig"
)

// servers are the two flavors, for tests that hold for both.
var servers = map[string]func(testing.TB, ...rig.Option) *rig.Server{
	rig.FlavorMySQL:   rig.MySQL,
	rig.FlavorMariaDB: rig.MariaDB,
}

func onBoth(t *testing.T, test func(t *testing.T, get func(testing.TB, ...rig.Option) *rig.Server)) {
	t.Parallel()
	for flavor, get := range servers {
		t.Run(flavor, func(t *testing.T) {
			t.Parallel()
			test(t, get)
		})
	}
}

func query(t *testing.T, db *sql.DB, statement string) string {
	t.Helper()
	var value sql.NullString
	require.NoError(t, db.QueryRowContext(t.Context(), statement).Scan(&value), statement)
	return value.String
}

func exec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	_, err := db.ExecContext(t.Context(), statement)
	require.NoError(t, err, statement)
}

func TestSharedServerIsOneAndRefusesToStop(t *testing.T) {
	onBoth(t, func(t *testing.T, get func(testing.TB, ...rig.Option) *rig.Server) {
		first, second := get(t), get(t)
		assert.Equal(t, first.Addr, second.Addr)
		db := first.DB(t)
		assert.Equal(t, "ROW", query(t, db, "SELECT @@GLOBAL.binlog_format"))
		assert.Equal(t, "1", query(t, db, "SELECT @@GLOBAL.log_bin"))
		want := "NO_LOG"
		if first.Flavor == rig.FlavorMySQL {
			want = "FULL"
			assert.Equal(t, "ON", query(t, db, "SELECT @@GLOBAL.gtid_mode"))
		}
		assert.Equal(t, want, query(t, db, "SELECT @@GLOBAL.binlog_row_metadata"))
		assert.True(t, fails(t, func(t testing.TB) { first.Stop(t) }), "a shared server must not be stopped")
	})
}

func TestDatabaseIsTheTestsOwn(t *testing.T) {
	onBoth(t, func(t *testing.T, get func(testing.TB, ...rig.Option) *rig.Server) {
		server := get(t)
		var name string
		t.Run("inner", func(t *testing.T) {
			name = server.Database(t)
			assert.NotEqual(t, name, server.Database(t))
			exec(t, server.DBOf(t, name), "CREATE TABLE a (id INT PRIMARY KEY)")
		})
		count := query(t, server.DB(t), "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = '"+name+"'")
		assert.Equal(t, "0", count, "dropped when its test ended")
	})
}

// What is committed survives a kill in spite of the fast settings.
func TestOwnServerStopsStartsAndSurvivesKill(t *testing.T) {
	onBoth(t, func(t *testing.T, get func(testing.TB, ...rig.Option) *rig.Server) {
		server := get(t, rig.Args("--max-connections=77"))
		db := server.DB(t)
		assert.Equal(t, "77", query(t, db, "SELECT @@GLOBAL.max_connections"))
		exec(t, db, "CREATE DATABASE kept; CREATE TABLE kept.a (id INT PRIMARY KEY) ENGINE=InnoDB")
		exec(t, db, "INSERT INTO kept.a VALUES (1)")
		server.Restart(t)
		exec(t, db, "INSERT INTO kept.a VALUES (2)")
		server.Kill(t)
		require.Error(t, db.PingContext(t.Context()))
		server.Start(t, "--max-connections=78")
		assert.Equal(t, "2", query(t, db, "SELECT COUNT(*) FROM kept.a"))
		assert.Equal(t, "78", query(t, db, "SELECT @@GLOBAL.max_connections"))

		server.Pause(t)
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		_, err := db.ExecContext(ctx, "SELECT 1")
		require.ErrorIs(t, err, context.DeadlineExceeded, "a paused server answers nothing")
		server.Resume(t)
		assert.Equal(t, "2", query(t, db, "SELECT COUNT(*) FROM kept.a"))
	})
}

func TestOwnServerEndsWithItsTest(t *testing.T) {
	onBoth(t, func(t *testing.T, get func(testing.TB, ...rig.Option) *rig.Server) {
		var folder string
		t.Run("inner", func(t *testing.T) {
			server := get(t, rig.Own())
			folder = server.DataDir
			assert.DirExists(t, folder)
			server.Pause(t) // the worst state to leave it in
		})
		_, err := os.Stat(folder)
		require.ErrorIs(t, err, os.ErrNotExist)
	})
}

func TestRelayUserHasWhatItNeedsOnly(t *testing.T) {
	onBoth(t, func(t *testing.T, get func(testing.TB, ...rig.Option) *rig.Server) {
		server := get(t)
		mine, other := server.Database(t), server.Database(t)
		for _, name := range []string{mine, other} {
			exec(t, server.DBOf(t, name), "CREATE TABLE a (id INT PRIMARY KEY)")
		}
		db := login(t, server, rig.On(mine))
		exec(t, db, "INSERT INTO "+mine+".a VALUES (1)")
		exec(t, db, "UPDATE "+mine+".a SET id = 2")
		exec(t, db, "DELETE FROM "+mine+".a")
		if server.Flavor == rig.FlavorMySQL {
			exec(t, db, "SHOW BINARY LOG STATUS")
		} else {
			exec(t, db, "SHOW MASTER STATUS")
		}
		for _, statement := range []string{
			"SELECT * FROM " + other + ".a", "DROP TABLE " + mine + ".a", "CREATE TABLE " + mine + ".b (id INT)",
			"SET GLOBAL max_connections = 10", "SET SESSION binlog_row_image = MINIMAL",
		} {
			_, err := db.ExecContext(t.Context(), statement)
			require.Error(t, err, statement)
		}
		anywhere := login(t, server, rig.MinimalImages())
		exec(t, anywhere, "SELECT * FROM "+other+".a")
		exec(t, anywhere, "SET SESSION binlog_row_image = MINIMAL")
	})
}

// login opens a pool of the relay's user.
func login(t *testing.T, server *rig.Server, opts ...rig.Grant) *sql.DB {
	t.Helper()
	as := *server
	as.User, as.Password = server.RelayUser(t, opts...)
	return as.DB(t)
}

// fails runs a test function on a testing.TB of its own and tells whether it failed.
func fails(t *testing.T, test func(t testing.TB)) bool {
	t.Helper()
	inner := &failure{TB: t}
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		test(inner)
	}()
	<-done
	return inner.failed
}

// failure is a testing.TB that remembers a Fatal instead of failing the test.
type failure struct {
	testing.TB
	failed bool
}

func (f *failure) Fatal(...any) {
	f.failed = true
	panic("fatal")
}

func (f *failure) Helper() {}
