package store

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"
)

// server is what the relay's SQL needs to know about the server it runs on.
type server struct {
	mariaDB      bool
	version      string
	major, minor int
	foldNames    bool // lower_case_table_names is not 0: names are compared without regard to case
	skipLocked   bool
	indexVisible string // an expression over information_schema.STATISTICS that is 'YES' for an index that may be named in a hint
}

func readServer(ctx context.Context, conn *sql.Conn) (server, error) {
	var version string
	var lower int
	if err := conn.QueryRowContext(ctx, "SELECT VERSION(), @@lower_case_table_names").Scan(&version, &lower); err != nil {
		return server{}, err
	}
	return newServer(version, lower), nil
}

func newServer(version string, lowerCaseTableNames int) server {
	s := server{version: version, foldNames: lowerCaseTableNames != 0, mariaDB: strings.Contains(strings.ToLower(version), "mariadb")}
	parts := strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	if len(parts) >= 2 {
		s.major, s.minor = number(parts[0]), number(parts[1])
	}
	s.indexVisible = "'YES'"
	if s.mariaDB {
		s.skipLocked = s.atLeast(10, 6)
		if s.atLeast(10, 6) {
			s.indexVisible = "IF(IGNORED='YES','NO','YES')"
		}
		return s
	}
	s.skipLocked = s.atLeast(8, 0)
	if s.atLeast(8, 0) {
		s.indexVisible = "IS_VISIBLE"
	}
	return s
}

// number reads digits; what no int can hold counts as 0, which means "old".
func number(digits string) int {
	n, err := strconv.Atoi(digits)
	if err != nil {
		return 0
	}
	return n
}

func (s server) atLeast(major, minor int) bool {
	return s.major > major || (s.major == major && s.minor >= minor)
}

// Now returns the server's clock, as next_retry_time is compared with it.
func (s *Store) Now(ctx context.Context) (string, error) {
	var now string
	err := s.work.run(ctx, "read the server's clock", func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT CAST(NOW() AS CHAR)").Scan(&now)
	})
	return now, err
}

// Offset returns how far the server's local time is ahead of UTC at this moment: DATETIME columns that were filled with
// NOW() minus the offset are UTC.
func (s *Store) Offset(ctx context.Context) (time.Duration, error) {
	var seconds int64
	err := s.work.run(ctx, "read the server's time zone", func(ctx context.Context, conn *sql.Conn) error {
		return conn.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(SECOND, UTC_TIMESTAMP(), NOW())").Scan(&seconds)
	})
	return time.Duration(seconds) * time.Second, err
}
