package outbox

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// Beginner opens transactions: *sql.DB, *sql.Conn and *sqlx.DB do.
type Beginner interface {
	BeginTx(ctx context.Context, opts *sql.TxOptions) (*sql.Tx, error)
}

// Within runs fn in a transaction of its own and commits when fn returns nil. It rolls back when fn returns an error, which
// is returned, when fn panics, and the panic goes on, and when ctx ends. An error from the commit itself means that the
// outcome is unknown: the transaction may have been committed.
func Within(ctx context.Context, db Beginner, fn func(ctx context.Context, tx *sql.Tx) error) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	ended := false
	defer func() {
		if !ended { // fn panicked or left its goroutine: there is nobody to tell how the rollback went
			_ = tx.Rollback()
		}
	}()
	err = fn(ctx, tx)
	ended = true
	if err != nil {
		// The transaction is done already when ctx has ended.
		if undo := tx.Rollback(); undo != nil && !errors.Is(undo, sql.ErrTxDone) {
			return errors.Join(err, fmt.Errorf("roll back: %w", undo))
		}
		return err
	}
	if err := tx.Commit(); err != nil {
		return fmt.Errorf("commit, whose outcome is unknown: %w", err)
	}
	return nil
}

// CheckTx returns ErrNoTx for a pool of connections, unless Config.AllowPool is set, and for nil. What is neither known as a pool
// nor as a transaction is the caller's own type, and taken at his word. Put and PutAll ask it first.
func (b *Box) CheckTx(tx Execer) error {
	switch tx := tx.(type) {
	case *sql.Tx:
		if tx != nil {
			return nil
		}
	case interface{ Commit() error }: // sqlx, the transactions of gorm, ent and bun
		return nil
	case interface{ Raw(f func(any) error) error }: // a single connection, such as *sql.Conn
		return nil
	case nil:
	case interface{ Close() error }, interface{ SetMaxOpenConns(n int) }, interface{ GetDBConn() (*sql.DB, error) }:
		// *sql.DB and what embeds it, *ent.Client, gorm's pool of prepared statements
		if b.cfg.AllowPool {
			return nil
		}
	default:
		return nil
	}
	return ErrNoTx
}
