package outbox_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
)

func TestWithinCommits(t *testing.T) {
	t.Parallel()
	n := &noop{columns: everything}
	err := outbox.Within(t.Context(), n.open(t), func(ctx context.Context, tx *sql.Tx) error {
		_, err := outbox.Put(ctx, tx, outbox.Message{Topic: "orders", Body: 1})
		return err
	})
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 1, 0}, []int64{n.statements.Load(), n.commits.Load(), n.rollbacks.Load()})
}

func TestWithinRollsBack(t *testing.T) {
	t.Parallel()
	mine := errors.New("mine")
	for name, c := range map[string]struct {
		db   *noop
		fn   func(tx *sql.Tx) error
		want []error
	}{
		"Error":          {&noop{}, func(*sql.Tx) error { return mine }, []error{mine}},
		"RollbackFails":  {&noop{rollback: errAway}, func(*sql.Tx) error { return mine }, []error{mine, errAway}},
		"RolledBackByFn": {&noop{}, func(tx *sql.Tx) error { return errors.Join(tx.Rollback(), mine) }, []error{mine}},
	} {
		err := outbox.Within(t.Context(), c.db.open(t), func(_ context.Context, tx *sql.Tx) error { return c.fn(tx) })
		for _, want := range c.want {
			require.ErrorIs(t, err, want, name)
		}
		assert.Equal(t, int64(1), c.db.rollbacks.Load(), name)
		assert.Zero(t, c.db.commits.Load(), name)
	}
}

var errAway = errors.New("the server is away")

func TestWithinTellsWhatFailed(t *testing.T) {
	t.Parallel()
	err := outbox.Within(t.Context(), (&noop{refuse: errAway}).open(t), func(context.Context, *sql.Tx) error {
		t.Error("fn was called")
		return nil
	})
	require.ErrorIs(t, err, errAway)
	require.ErrorContains(t, err, "begin")
	err = outbox.Within(t.Context(), (&noop{commit: errAway}).open(t), func(context.Context, *sql.Tx) error { return nil })
	require.ErrorIs(t, err, errAway)
	require.ErrorContains(t, err, "outcome is unknown")
}

func TestWithinRollsBackWhenFnPanics(t *testing.T) {
	t.Parallel()
	n := &noop{}
	db := n.open(t)
	assert.PanicsWithValue(t, "mine", func() {
		_ = outbox.Within(t.Context(), db, func(context.Context, *sql.Tx) error { panic("mine") })
	}, "the panic goes on")
	assert.Equal(t, int64(1), n.rollbacks.Load())
	assert.Zero(t, n.commits.Load())
}

// The kinds of things that may be passed as a transaction.
type (
	wrapper struct{ *sql.DB }            // as sqlx.DB and bun.DB are
	commits struct{ script }             // as sqlx.Tx, gorm's and ent's transactions are
	single  struct{ script }             // as a wrapped *sql.Conn is
	pooled  struct{ script }             // as gorm's PreparedStmtDB is
	closes  struct{ script }             // as *ent.Client is
	own     struct{ next outbox.Execer } // somebody's own, of which nothing is known
	nothing interface{ outbox.Execer }   // nil
)

func (*commits) Commit() error              { return nil }
func (*commits) Close() error               { return nil }
func (*single) Raw(func(any) error) error   { return nil }
func (*single) Close() error                { return nil }
func (*pooled) GetDBConn() (*sql.DB, error) { return nil, nil }
func (*closes) Close() error                { return nil }
func (o own) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	return o.next.ExecContext(ctx, query, args...)
}

func TestPoolsAreNoTransactions(t *testing.T) {
	t.Parallel()
	m := outbox.Message{Topic: "orders", Body: 1}
	db := (&noop{columns: everything}).open(t)
	conn, err := db.Conn(t.Context())
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, conn.Close()) })
	for name, tx := range map[string]outbox.Execer{
		"sql.DB": db, "Wrapper": wrapper{db}, "Pool": &pooled{}, "Client": &closes{}, "nil": nothing(nil), "nil Tx": (*sql.Tx)(nil),
	} {
		_, err := outbox.Put(t.Context(), tx, m)
		require.ErrorIs(t, err, outbox.ErrNoTx, name)
		_, err = outbox.PutAll(t.Context(), tx, []outbox.Message{m})
		require.ErrorIs(t, err, outbox.ErrNoTx, name)
	}
	for name, tx := range map[string]outbox.Execer{
		"sql.Tx": begin(t), "sql.Conn": conn, "Tx": &commits{}, "Conn": &single{}, "Own": own{&script{}},
	} {
		_, err := outbox.Put(t.Context(), tx, m)
		require.NoError(t, err, name)
	}
	allowed := box(t, outbox.Config{AllowPool: true})
	for name, tx := range map[string]outbox.Execer{"sql.DB": db, "Wrapper": wrapper{db}, "Pool": &pooled{}, "Client": &closes{}} {
		_, err := allowed.Put(t.Context(), tx, m)
		require.NoError(t, err, name)
	}
	_, err = allowed.Put(t.Context(), nil, m)
	require.ErrorIs(t, err, outbox.ErrNoTx)
}
