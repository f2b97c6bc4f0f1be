package rig

import (
	"errors"

	"github.com/go-sql-driver/mysql"
)

// codeUnconvertible is what a MySQL answers to a question about its process list while a statement of any session has an emoji in it.
const codeUnconvertible = 3854

// Shown asks, and asks again while the server can't show its process list because of another session's statement. It returns the last
// answer's error.
func Shown(ask func() error) (err error) {
	for range 100 {
		err = ask()
		if refused, ok := errors.AsType[*mysql.MySQLError](err); !ok || refused.Number != codeUnconvertible {
			return err
		}
	}
	return err
}
