package canal

import (
	"context"
	"crypto/tls"
	"database/sql"
	"fmt"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal/plain"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// querier queries the server; Asker is the real one.
type querier interface {
	// Query runs one statement and returns its whole answer.
	Query(ctx context.Context, statement string) (*mysql.Answer, error)
}

// Asker asks a server about its binlog and its tables, through one connection at most, which is closed after a minute
// without questions. It may be used by any goroutine.
type Asker struct {
	cfg  Config
	pool *mysql.Pool
	// closing ends what is being asked; nil when only the context does.
	closing <-chan struct{}
	began   *beginnings
}

// NewAsker connects to nothing yet. The caller closes it after the Readers that came from it.
func NewAsker(cfg Config) (*Asker, error) {
	cfg = cfg.withDefaults()
	pool, err := mysql.NewPool(cfg.Config, mysql.Options{
		Size: 1, ReadTimeout: cfg.ReadTimeout, Hasty: true,
		Setup: []string{
			// Times are compared with those of the decoder, which prints TIMESTAMP in UTC. And a table that others have locked
			// is an answer, not a connection that seems dead.
			fmt.Sprintf("SET SESSION time_zone='+00:00', lock_wait_timeout=%d", max(1, int(cfg.ReadTimeout/time.Second)/2)),
		},
	}, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	return &Asker{cfg: cfg, pool: pool, began: &beginnings{}}, nil
}

// until returns the same Asker for questions that also end when the channel is closed.
func (a *Asker) until(closing <-chan struct{}) *Asker {
	return &Asker{cfg: a.cfg, pool: a.pool, began: a.began, closing: closing}
}

// Query runs one statement and returns its whole answer.
func (a *Asker) Query(ctx context.Context, statement string) (answer *mysql.Answer, err error) {
	err = a.run(ctx, func(ctx context.Context, conn *sql.Conn) (err error) {
		answer, err = mysql.Ask(ctx, conn, statement)
		return err
	})
	return answer, err
}

// Columns reads the columns of a table in their order, none where the user sees no such table.
func (a *Asker) Columns(ctx context.Context, t outbox.Table) (columns []mysql.Column, err error) {
	err = a.run(ctx, func(ctx context.Context, conn *sql.Conn) error {
		found, err := mysql.ReadColumns(ctx, conn, t.Database, t.Name)
		columns = found[t.Name]
		return err
	})
	return columns, err
}

// tables lists the tables that patterns may name.
func (a *Asker) tables(ctx context.Context, patterns mysql.Patterns) (tables mysql.Tables, err error) {
	err = a.run(ctx, func(ctx context.Context, conn *sql.Conn) (err error) {
		tables, err = mysql.ListTables(ctx, conn, patterns)
		return err
	})
	return tables, err
}

// run calls fn with the connection. One that turns out to be broken is replaced once, since it may have been idle for
// long.
func (a *Asker) run(ctx context.Context, fn func(ctx context.Context, conn *sql.Conn) error) error {
	asking, cancel := untilClosed(ctx, a.closing)
	defer cancel()
	connected := false
	err := a.pool.Run(asking, "", func(ctx context.Context, conn *sql.Conn) error {
		connected = true
		return fn(ctx, conn)
	})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	case asking.Err() != nil:
		return errClosed
	case !connected:
		return fmt.Errorf("connect to %s: %w", a.cfg.Addr, plain.Error(err))
	}
	return plain.Error(err)
}

// streamTLS returns the TLS settings for the connection that carries the binlog: none where TLS is optional and the
// server offers none.
func (a *Asker) streamTLS(ctx context.Context) (*tls.Config, error) {
	if !a.cfg.TLSOptional || a.cfg.TLS == nil {
		return a.cfg.TLS, nil
	}
	answer, err := a.Query(ctx, "SHOW SESSION STATUS LIKE 'Ssl_cipher'")
	if err != nil {
		return nil, err
	}
	if answer.Text(0, 1) == "" {
		return nil, nil //nolint:nilnil // no TLS is an answer
	}
	return a.cfg.TLS, nil
}

// Close ends the connection. Nothing may be asked afterwards.
func (a *Asker) Close() error { return a.pool.Close() }

// untilClosed returns a context that also ends when a channel is closed.
func untilClosed(ctx context.Context, closing <-chan struct{}) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	if closing == nil {
		return ctx, cancel
	}
	go func() {
		select {
		case <-closing:
			cancel()
		case <-ctx.Done():
		}
	}()
	return ctx, cancel
}
