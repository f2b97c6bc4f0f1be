//go:build !unit

package store

import (
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

// desk is a database of the test's own with one table, the administrator's pool, and a store of a user with the least
// privileges.
type desk struct {
	*fixture.Outbox
	*Store
	cfg Config
}

// newDesk makes the pattern's table with the optional columns.
func newDesk(t *testing.T, srv *rig.Server, change ...func(*Config)) *desk {
	t.Helper()
	return newDeskWith(t, srv, "", change...)
}

// newDeskWith makes the table by a given CREATE TABLE, in which %s stands for its name.
func newDeskWith(t *testing.T, srv *rig.Server, create string, change ...func(*Config)) *desk {
	t.Helper()
	o := fixture.New(t, srv, create)
	d := &desk{Outbox: o, cfg: Config{Config: o.User, Tables: []string{o.Table.Database + ".local_message"}}}
	for _, c := range change {
		c(&d.cfg)
	}
	d.Store = open(t, d.cfg)
	return d
}

func open(t *testing.T, cfg Config) *Store {
	t.Helper()
	s, err := Open(t.Context(), cfg, zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// state is what a test looks at in a row.
type state struct {
	Status, Retries int
	HasNext         bool
	LastError       string
}

func (d *desk) state(t testing.TB, ref outbox.Ref) state {
	t.Helper()
	var s state
	err := d.DB.QueryRowContext(t.Context(), "SELECT status, COALESCE(retry_count,0), next_retry_time IS NOT NULL, COALESCE(last_error,'') FROM "+d.Name()+
		" WHERE msg_id="+mysql.Literal(ref.MsgID)).Scan(&s.Status, &s.Retries, &s.HasNext, &s.LastError)
	require.NoError(t, err)
	return s
}

// until polls a condition for a bounded time.
func until(t testing.TB, what string, condition func() bool) {
	t.Helper()
	require.Eventually(t, condition, 20*time.Second, 20*time.Millisecond, what)
}

func msgIDs(rows []outbox.Row) []string {
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].MsgID
	}
	return ids
}

func (d *desk) candidates(t testing.TB, q Query) []outbox.Row {
	t.Helper()
	rows, err := d.Candidates(t.Context(), q)
	require.NoError(t, err)
	return rows
}
