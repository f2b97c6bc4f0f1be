package mysql

import (
	"context"
	"database/sql"
	"strings"
)

// Querier is what a session and a transaction have in common.
type Querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// Answer is what a statement yields, read whole: rows of texts. It is for small answers, such as SHOW's, whose columns differ
// by version.
type Answer struct {
	columns []string
	rows    [][]sql.NullString
}

// Len returns the number of rows.
func (a *Answer) Len() int { return len(a.rows) }

// Text returns a value as the server prints it; "" for NULL, and for a row or column that the answer does not have.
func (a *Answer) Text(row, column int) string { return a.cell(row, column).String }

// IsNull reports whether a value is NULL, or not in the answer.
func (a *Answer) IsNull(row, column int) bool { return !a.cell(row, column).Valid }

// Named is Text by the column's name, whatever its case.
func (a *Answer) Named(row int, column string) string {
	for i, name := range a.columns {
		if strings.EqualFold(name, column) {
			return a.Text(row, i)
		}
	}
	return ""
}

func (a *Answer) cell(row, column int) sql.NullString {
	if row >= len(a.rows) || column >= len(a.rows[row]) {
		return sql.NullString{}
	}
	return a.rows[row][column]
}

// Ask runs a statement and reads its answer.
func Ask(ctx context.Context, q Querier, statement string) (*Answer, error) {
	rows, err := q.QueryContext(ctx, statement)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	a := &Answer{}
	if a.columns, err = rows.Columns(); err != nil {
		return nil, err
	}
	for rows.Next() {
		cells := make([]sql.NullString, len(a.columns))
		into := make([]any, len(cells))
		for i := range cells {
			into[i] = &cells[i]
		}
		if err := rows.Scan(into...); err != nil {
			return nil, err
		}
		a.rows = append(a.rows, cells)
	}
	return a, rows.Err()
}

// closeRows frees the session for its next statement. What Close could report, rows.Err has reported before.
func closeRows(rows *sql.Rows) { _ = rows.Close() }

// Texts runs a statement and returns its first column.
func Texts(ctx context.Context, q Querier, statement string) ([]string, error) {
	a, err := Ask(ctx, q, statement)
	if err != nil {
		return nil, err
	}
	texts := make([]string, a.Len())
	for i := range texts {
		texts[i] = a.Text(i, 0)
	}
	return texts, nil
}
