package store

import (
	"context"
	"database/sql"
	"time"
)

// Now returns the server's clock, as next_retry_time is compared with it.
func (s *Store) Now(ctx context.Context) (string, error) {
	var now string
	err := s.work.Run(ctx, "read the server's clock", func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT CAST(NOW() AS CHAR)").Scan(&now)
	})
	return now, err
}

// Offset returns how far the server's local time is ahead of UTC at this moment: DATETIME columns that were filled with
// NOW() minus the offset are UTC.
func (s *Store) Offset(ctx context.Context) (time.Duration, error) {
	var seconds int64
	err := s.work.Run(ctx, "read the server's time zone", func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW())").Scan(&seconds)
	})
	return time.Duration(seconds) * time.Second, err
}
