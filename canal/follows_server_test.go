//go:build !unit

package canal

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/test/rig"
)

// At nearly every start a MariaDB need not read its binlog up to the place to confirm it.
func TestMariaDBConfirmsAPlaceWithoutReadingTheFile(t *testing.T) {
	server := rig.MariaDB(t, rig.Own())
	db, database := server.DB(t), server.Database(t)
	exec := func(statement string) {
		t.Helper()
		_, err := db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	exec("CREATE TABLE " + database + ".t (a INT PRIMARY KEY) ENGINE=InnoDB")
	c, err := NewAsker(Config{Config: mysql.Config{Addr: server.Addr, User: server.User, Password: server.Password}})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	look := func() *facts {
		t.Helper()
		f, err := readFacts(t.Context(), c)
		require.NoError(t, err)
		return f
	}
	follows := func(f *facts, saved position.Position) bool {
		t.Helper()
		set, err := gtid.Parse(position.MariaDB, saved.GTID)
		require.NoError(t, err)
		return f.follows(t.Context(), c, saved, set)
	}
	f := look()
	saved := f.end
	require.NotEmpty(t, saved.GTID)
	assert.True(t, follows(f, saved), "at the end")
	exec("INSERT INTO " + database + ".t VALUES (1)")
	exec("INSERT INTO " + database + ".t VALUES (2)")
	f = look()
	assert.True(t, follows(f, saved), "the next transaction is the next of its domain")
	later := saved
	later.GTID = f.end.GTID
	assert.False(t, follows(f, later), "what follows counts as dealt with")
	later = saved
	later.Pos++
	assert.False(t, follows(f, later), "no event starts there")
}
