package store

import (
	"fmt"

	"example.com/outbox-relay/mysql"
)

// The classes of errors are package mysql's; these are the ones that the relay branches on.
var (
	ErrUnreachable = mysql.ErrUnreachable // the server can't be reached
	ErrBusy        = mysql.ErrBusy        // rows are locked by others
	ErrReadOnly    = mysql.ErrReadOnly    // the server takes no writes
	ErrPrivilege   = mysql.ErrPrivilege   // the user lacks a right
	ErrGone        = mysql.ErrGone        // the table does not exist
	ErrSchema      = mysql.ErrSchema      // the table has not the needed shape
	ErrServer      = mysql.ErrServer      // anything else that the server refused
)

// schemaError is a table that can't serve, found by looking at it.
func schemaError(class error, format string, args ...any) error {
	return &mysql.Error{Op: "look at the tables", Class: class, Text: fmt.Sprintf(format, args...)}
}
