package inbox

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// What callers branch on, by errors.Is.
var (
	// ErrID is a delivery whose ID is missing or can't be stored unchanged. It will not get better by itself.
	ErrID = errors.New("no usable message id")
	// ErrUnknown is a COMMIT whose answer was lost: the handler's work may be done or not. Deliver the message again; the
	// record, which is in the same transaction, decides.
	ErrUnknown = errors.New("outcome of the commit is unknown")
	// ErrUnavailable is a fault of the database or of the way to it, and not of the message: the transaction could not be
	// begun, the record could not be written, or the connection was gone when the handler returned. Nothing was committed.
	ErrUnavailable = errors.New("database can't serve")
	// ErrBusy is a deadlock or a lock wait that outlasted the bounded tries. Nothing was committed; trying again later
	// is right. It comes with ErrUnavailable when it was the record that could not be written.
	ErrBusy = errors.New("rows are locked by others")
	// ErrTxEnded is a handler that committed or rolled back the transaction itself, which is Do's to end. Deliver
	// again: the record decides.
	ErrTxEnded = errors.New("the handler ended the transaction itself")
	// ErrNoTx is a *sql.DB where a transaction is needed: the record would be committed alone, and a message whose
	// handler then fails would be taken for handled.
	ErrNoTx = errors.New("not a transaction")
	// ErrHorizon is a purge that would forget messages that may still come again.
	ErrHorizon = errors.New("purge horizon is too short")
	// ErrNoCause is an Emit outside the handler of a Do, with a context that names no cause.
	ErrNoCause = errors.New("no message is being handled in this context")
)

// Error is a statement of this package that failed. Its text holds neither data nor the server's message, which may
// quote data; the server's own error is in its chain.
type Error struct {
	// Op says what was attempted.
	Op string
	// Number is the server's error number, 0 when there was none.
	Number uint16
	kinds  []error
	cause  error
}

// Error returns what was attempted, and why it failed.
func (e *Error) Error() string {
	parts := []string{e.Op}
	for _, kind := range e.kinds {
		parts = append(parts, kind.Error())
	}
	if e.Number != 0 {
		parts = append(parts, fmt.Sprintf("error %d", e.Number))
	}
	if hint := hints[e.Number]; hint != "" {
		parts = append(parts, hint)
	}
	return strings.Join(parts, ": ")
}

// Unwrap returns the sentinels and the driver's error.
func (e *Error) Unwrap() []error { return append([]error{e.cause}, e.kinds...) }

// The server's error numbers that mean something here.
const (
	numDuplicate   = 1062
	numLockWait    = 1205
	numDeadlock    = 1213
	numChanged     = 1020 // MariaDB: the row changed since the snapshot (innodb_snapshot_isolation)
	numCertify     = 3101 // MySQL: group replication rolled the transaction back
	numDenied      = 1142
	numNoTable     = 1146
	numNoColumn    = 1054
	numReadOnly    = 1290
	numReadOnlyTx  = 1792
	numReadOnlySrv = 1836
)

var hints = map[uint16]string{
	numNoTable:     "create it with the statement that inbox.Schema returns",
	numNoColumn:    "compare the table with the statement that inbox.Schema returns",
	numDenied:      "grant INSERT, SELECT and DELETE on it",
	numReadOnly:    "the server is read-only; lead the address to the primary",
	numReadOnlyTx:  "the transaction is read-only; begin it for writing",
	numReadOnlySrv: "the server is read-only; lead the address to the primary",
}

// blocked reports whether the transaction failed only because others were in its way. It was rolled back, or will be,
// as a whole, and the same work may well succeed at once.
func blocked(number uint16) bool {
	switch number {
	case numDeadlock, numLockWait, numChanged, numCertify:
		return true
	}
	return false
}

// NumberOf returns the MySQL error number in err's chain, 0 when there is none. This package does not import a driver,
// so it looks for what go-sql-driver's *mysql.MySQLError has: a field Number of type uint16. For a driver with another
// shape set Config.Number.
func NumberOf(err error) uint16 {
	if err == nil {
		return 0
	}
	if number := fieldNumber(err); number != 0 {
		return number
	}
	switch wrapped := err.(type) { //nolint:errorlint // this is the walk through the chain
	case interface{ Unwrap() error }:
		return NumberOf(wrapped.Unwrap())
	case interface{ Unwrap() []error }:
		for _, part := range wrapped.Unwrap() {
			if number := NumberOf(part); number != 0 {
				return number
			}
		}
	}
	return 0
}

func fieldNumber(err error) uint16 {
	value := reflect.ValueOf(err)
	if value.Kind() == reflect.Pointer && !value.IsNil() {
		value = value.Elem()
	}
	if value.Kind() != reflect.Struct {
		return 0
	}
	field := value.FieldByName("Number")
	if !field.IsValid() || field.Kind() != reflect.Uint16 {
		return 0
	}
	return uint16(field.Uint())
}

// failed describes a failure of one of this package's own statements. The caller's ended context is no fault of
// the database.
func (in *Inbox) failed(ctx context.Context, op string, err error) error {
	if ended := ctx.Err(); ended != nil {
		return fmt.Errorf("%s: %w", op, ended)
	}
	own := &Error{Op: op, Number: in.number(err), kinds: []error{ErrUnavailable}, cause: err}
	if blocked(own.Number) {
		own.kinds = append(own.kinds, ErrBusy)
	}
	return own
}

func idError(text string) error { return fmt.Errorf("%w: %s", ErrID, text) }

// Permanent marks a handler's error as one that no retry mends: the loops make the message a dead letter, or stop, at
// once. Permanent(nil) is nil.
func Permanent(err error) error {
	if err == nil {
		return nil
	}
	return &permanent{err}
}

// IsPermanent reports whether err was marked by Permanent.
func IsPermanent(err error) bool {
	_, ok := errors.AsType[*permanent](err)
	return ok
}

type permanent struct{ error }

func (p *permanent) Unwrap() error { return p.error }

// RetryAfter marks a handler's error with the time after which another attempt makes sense, such as what a busy
// service answered. The loops wait that long in place of their own backoff; the attempt counts like any other.
// RetryAfter(d, nil) is nil.
func RetryAfter(d time.Duration, err error) error {
	if err == nil {
		return nil
	}
	return &retryAfter{err, d}
}

// RetryDelay returns what RetryAfter was given, if err was marked by it.
func RetryDelay(err error) (d time.Duration, ok bool) {
	marked, ok := errors.AsType[*retryAfter](err)
	if !ok {
		return 0, false
	}
	return marked.after, true
}

type retryAfter struct {
	error
	after time.Duration
}

func (r *retryAfter) Unwrap() error { return r.error }
