//go:build !unit

package inbox_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"strings"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox"
)

// trips notes each request that the driver is asked to make.
type trips struct {
	mu   sync.Mutex
	seen []string
}

func (r *trips) note(what string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.seen = append(r.seen, what)
}

func (r *trips) take() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	seen := r.seen
	r.seen = nil
	return seen
}

// countingConnector wraps the driver's connections.
type countingConnector struct {
	driver.Connector
	trips *trips
}

func (c countingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	conn, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &countingConn{conn, c.trips}, nil
}

type countingConn struct {
	driver.Conn
	trips *trips
}

func (c *countingConn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	c.trips.note("BEGIN")
	tx, err := c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts) //nolint:errcheck,forcetypeassert // the driver has it
	return countingTx{tx, c.trips}, err
}

func (c *countingConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	c.trips.note("PREPARE " + verb(query))
	return c.Conn.(driver.ConnPrepareContext).PrepareContext(ctx, query) //nolint:errcheck,forcetypeassert // the driver has it
}

func (c *countingConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args) //nolint:errcheck,forcetypeassert // the driver has it
	if err != driver.ErrSkip {                                                 //nolint:errorlint // what database/sql compares with
		c.trips.note(verb(query))
	}
	return result, err
}

type countingTx struct {
	driver.Tx
	trips *trips
}

func (t countingTx) Commit() error   { t.trips.note("COMMIT"); return t.Tx.Commit() }
func (t countingTx) Rollback() error { t.trips.note("ROLLBACK"); return t.Tx.Rollback() }

func verb(query string) string { return strings.Join(strings.Fields(query)[:3], " ") }

// Do adds one round trip to a transaction, with any DSN: the record's INSERT. A duplicate costs three in all.
func TestDoAddsOneRoundTrip(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, w *world) {
		for _, interpolate := range []bool{false, true} {
			w.exec(t, "DELETE FROM consumed_message")
			connector, err := mysql.NewConnector(w.config(func(cfg *mysql.Config) { cfg.InterpolateParams = interpolate }))
			require.NoError(t, err)
			var seen trips
			db := sql.OpenDB(countingConnector{connector, &seen})
			t.Cleanup(func() { assert.NoError(t, db.Close()) })
			require.NoError(t, db.PingContext(t.Context()))
			handler := func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "UPDATE counter SET n = n + 1")
				return err
			}

			tx, err := db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			require.NoError(t, handler(t.Context(), tx))
			require.NoError(t, tx.Commit())
			assert.Equal(t, []string{"BEGIN", "UPDATE counter SET", "COMMIT"}, seen.take(), "without the inbox")

			in, err := inbox.New(db, inbox.Config{Group: "points"})
			require.NoError(t, err)
			for _, id := range []string{"m-1", "订单-1'"} {
				_, err = in.Do(t.Context(), message(id), handler)
				require.NoError(t, err)
				assert.Equal(t, []string{"BEGIN", "INSERT INTO `consumed_message`", "UPDATE counter SET", "COMMIT"}, seen.take(), "handled")
				_, err = in.Do(t.Context(), message(id), handler)
				require.NoError(t, err)
				assert.Equal(t, []string{"BEGIN", "INSERT INTO `consumed_message`", "ROLLBACK"}, seen.take(), "duplicate")
			}
		}
	})
}
