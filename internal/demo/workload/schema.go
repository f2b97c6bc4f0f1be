package workload

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/outbox"
)

const ordersDDL = `CREATE TABLE IF NOT EXISTS %s (
  id BIGINT PRIMARY KEY AUTO_INCREMENT, order_no VARCHAR(64) NOT NULL, amount INT NOT NULL, note TEXT,
  create_time DATETIME NOT NULL, KEY idx_order (order_no)) DEFAULT CHARSET = utf8mb4`

const messagesDDL = `CREATE TABLE IF NOT EXISTS %s (
  id BIGINT PRIMARY KEY AUTO_INCREMENT,
  msg_id VARCHAR(64) NOT NULL, topic VARCHAR(64) NOT NULL, msg_content %s NOT NULL,
  status TINYINT NOT NULL, retry_count INT DEFAULT 0, next_retry_time DATETIME,
  create_time DATETIME NOT NULL, update_time DATETIME NOT NULL,%s
  UNIQUE KEY uk_msg_id (msg_id), KEY idx_status_retry (status, next_retry_time)) DEFAULT CHARSET = utf8mb4`

// The last one is VARCHAR, not JSON, so that a test can write headers that are none.
const optionalColumns = `
  msg_key VARCHAR(255) NULL, headers TEXT NULL, last_error VARCHAR(1024) NULL, trace_parent VARCHAR(64) NULL,`

// CreateOrders creates the business table.
func CreateOrders(ctx context.Context, db *sql.DB, table string) error {
	return run(ctx, db, fmt.Sprintf(ordersDDL, quote(table)))
}

// CreateMessages creates a local message table: the pattern's own, with the optional columns when asked.
func CreateMessages(ctx context.Context, db *sql.DB, table string, optional bool) error {
	extra := ""
	if optional {
		extra = optionalColumns
	}
	return run(ctx, db, fmt.Sprintf(messagesDDL, quote(table), "MEDIUMTEXT", extra))
}

// Rows reads the state of every row of the tables.
func Rows(ctx context.Context, db *sql.DB, tables ...string) ([]oracle.Row, error) {
	all := []oracle.Row{} // never nil: an empty table was read all the same
	for _, table := range tables {
		rows, err := tableRows(ctx, db, table)
		if err != nil {
			return nil, err
		}
		all = append(all, rows...)
	}
	return all, nil
}

func tableRows(ctx context.Context, db *sql.DB, table string) ([]oracle.Row, error) {
	database, name, _ := strings.Cut(table, ".")
	var reasons int
	err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM information_schema.columns
		WHERE table_schema = ? AND table_name = ? AND column_name = 'last_error'`, database, name).Scan(&reasons)
	if err != nil {
		return nil, fmt.Errorf("columns of %s: %w", table, err)
	}
	reason := "''"
	if reasons > 0 {
		reason = "COALESCE(last_error, '')"
	}
	rows, err := db.QueryContext(ctx, `SELECT CAST(id AS UNSIGNED), msg_id, status, COALESCE(retry_count, 0),
		COALESCE(CAST(next_retry_time AS CHAR), ''), `+reason+` FROM `+quote(table))
	if err != nil {
		return nil, fmt.Errorf("rows of %s: %w", table, err)
	}
	defer func() { _ = rows.Close() }()
	statuses := outbox.DefaultStatuses()
	var found []oracle.Row
	for rows.Next() {
		row := oracle.Row{Table: table}
		var status int64
		if err := rows.Scan(&row.ID, &row.MsgID, &status, &row.RetryCount, &row.NextRetry, &row.LastError); err != nil {
			return nil, fmt.Errorf("row of %s: %w", table, err)
		}
		row.Status = statuses.Of(status)
		found = append(found, row)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("rows of %s: %w", table, err)
	}
	return found, nil
}

// Unsettled returns the oldest messages, at most limit of each table, that are pending and not handed to the sweeper:
// those a checkpoint must not cover.
func Unsettled(ctx context.Context, db *sql.DB, limit int, tables ...string) ([]string, error) {
	var ids []string
	for _, table := range tables {
		found, err := unsettled(ctx, db, limit, table)
		if err != nil {
			return nil, fmt.Errorf("unsettled rows of %s: %w", table, err)
		}
		ids = append(ids, found...)
	}
	return ids, nil
}

func unsettled(ctx context.Context, db *sql.DB, limit int, table string) ([]string, error) {
	rows, err := db.QueryContext(ctx, `SELECT msg_id FROM `+quote(table)+`
		WHERE status = 0 AND next_retry_time IS NULL ORDER BY id LIMIT ?`, limit)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return nil, err
		}
		ids = append(ids, id)
	}
	return ids, rows.Err()
}

// Open counts the rows that are not at their end yet: pending or failed.
func Open(ctx context.Context, db *sql.DB, tables ...string) (int, error) {
	total := 0
	for _, table := range tables {
		var n int
		if err := db.QueryRowContext(ctx, `SELECT COUNT(*) FROM `+quote(table)+` WHERE status IN (0, 2)`).Scan(&n); err != nil {
			return 0, fmt.Errorf("open rows of %s: %w", table, err)
		}
		total += n
	}
	return total, nil
}

func run(ctx context.Context, db *sql.DB, statement string) error {
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("create table: %w", err)
	}
	return nil
}

// quote puts a database.table into backquotes.
func quote(table string) string {
	return "`" + strings.ReplaceAll(table, ".", "`.`") + "`"
}
