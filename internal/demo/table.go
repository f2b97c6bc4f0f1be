package demo

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/outbox"
)

// rows reads the state of this run's rows, and of no others.
func (r *run) rows(ctx context.Context) ([]oracle.Row, error) {
	found, err := readRows(ctx, r.cfg.DB, r.cfg.Table, r.prefix)
	if err != nil {
		return nil, fmt.Errorf("read the rows of %s: %w", r.cfg.Table, err)
	}
	return found, nil
}

func readRows(ctx context.Context, db *sql.DB, table outbox.Table, prefix string) ([]oracle.Row, error) {
	// The prefix has no character that LIKE takes for more than itself; the unique key on msg_id serves it.
	rows, err := db.QueryContext(ctx, `SELECT CAST(id AS UNSIGNED), msg_id, status, COALESCE(retry_count, 0)
		FROM `+outbox.QuoteTable(table)+` WHERE msg_id LIKE ?`, prefix+"%")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	statuses := outbox.DefaultStatuses()
	found := []oracle.Row{} // never nil: an empty table was read all the same
	for rows.Next() {
		row := oracle.Row{Table: table.String()}
		var status int64
		if err := rows.Scan(&row.ID, &row.MsgID, &status, &row.RetryCount); err != nil {
			return nil, err
		}
		row.Status = statuses.Of(status)
		found = append(found, row)
	}
	return found, rows.Err()
}

// dropTimeout bounds the clean-up of an interrupted run.
const dropTimeout = 10 * time.Second

// dropOrders removes the business table, also after an interrupt.
func (r *run) dropOrders(ctx context.Context, name string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), dropTimeout) // the run may have been interrupted
	defer cancel()
	table := outbox.QuoteTable(outbox.Table{Database: r.cfg.Table.Database, Name: name[len(r.cfg.Table.Database)+1:]})
	if _, err := r.cfg.DB.ExecContext(ctx, "DROP TABLE IF EXISTS "+table); err != nil {
		return fmt.Errorf("drop the demo's business table %s: %w", name, err)
	}
	return nil
}
