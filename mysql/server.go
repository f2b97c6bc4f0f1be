package mysql

import (
	"context"
	"strconv"
	"strings"
)

// Server is which server it is, and with that what it can do. The zero Server is an old MySQL that can do nothing.
type Server struct {
	// MariaDB tells the flavor: MySQL and its kin (Percona) when false.
	MariaDB bool
	// Version is what the server prints.
	Version string
	// FoldNames: names of databases and tables are compared without regard to case (lower_case_table_names is not 0).
	FoldNames bool

	numbers [3]int
}

// ReadServer asks a server what it is.
func ReadServer(ctx context.Context, q Querier) (Server, error) {
	answer, err := Ask(ctx, q, "SELECT VERSION(), @@version_comment, @@lower_case_table_names")
	if err != nil {
		return Server{}, err
	}
	return NewServer(answer.Text(0, 0), answer.Text(0, 1), answer.Text(0, 2)), nil
}

// NewServer makes a Server of the values of three variables: version, version_comment and lower_case_table_names. Numbers
// that the version lacks, or that no int can hold, count as 0, which means "old".
func NewServer(version, comment, lowerCaseTableNames string) Server {
	s := Server{
		MariaDB: strings.Contains(strings.ToLower(version+" "+comment), "mariadb"), Version: version,
		FoldNames: lowerCaseTableNames != "" && lowerCaseTableNames != "0",
	}
	parts := strings.FieldsFunc(version, func(r rune) bool { return r < '0' || r > '9' })
	for i := range min(len(parts), len(s.numbers)) {
		if n, err := strconv.Atoi(parts[i]); err == nil {
			s.numbers[i] = n
		}
	}
	return s
}

// AtLeast reports whether the server has this version or a later one.
func (s Server) AtLeast(major, minor, patch int) bool {
	for i, want := range [3]int{major, minor, patch} {
		if s.numbers[i] != want {
			return s.numbers[i] > want
		}
	}
	return true
}

// CanSkipLocked reports whether a SELECT ... FOR UPDATE can pass over rows that others hold.
func (s Server) CanSkipLocked() bool {
	if s.MariaDB {
		return s.AtLeast(10, 6, 0)
	}
	return s.AtLeast(8, 0, 0)
}

// HasJSONTable reports whether a list can be joined to a table as JSON.
func (s Server) HasJSONTable() bool { return s.CanSkipLocked() } // both came with the same versions

// indexVisible is an expression over information_schema.STATISTICS that is 'YES' for an index that may be named in a hint.
func (s Server) indexVisible() string {
	switch {
	case s.MariaDB && s.AtLeast(10, 6, 0):
		return "IF(IGNORED='YES','NO','YES')"
	case !s.MariaDB && s.AtLeast(8, 0, 0):
		return "IS_VISIBLE"
	}
	return "'YES'"
}
