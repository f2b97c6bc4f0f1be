package mysql

import (
	"context"
	"crypto/tls"
	sqldriver "database/sql/driver"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	driver "github.com/go-sql-driver/mysql"
)

// What callers branch on. Every error of this package that came from the server, or from the way to it, matches one of
// them by errors.Is, or context.Canceled and context.DeadlineExceeded when the caller's time was over. The classes below
// ErrServer match it, too: who does not know them sees "anything else".
var (
	// ErrUnreachable is a broken or refused connection, a server that is starting or stopping, or one with no
	// connection to spare. Trying again later is right.
	ErrUnreachable = errors.New("database unreachable")
	// ErrBusy is a lock that could not be had in time, or a deadlock, after the bounded retries. Trying again later is right.
	ErrBusy = errors.New("rows are locked by others")
	// ErrReadOnly is a server that takes no writes: demoted to a replica, or set read-only. Trying again helps once the
	// address leads to the primary again; the connection has been dropped so that a new one is made.
	ErrReadOnly = errors.New("database is read-only")
	// ErrPrivilege is a right that the user does not have. An administrator must grant it; `doctor` prints the SQL.
	ErrPrivilege = errors.New("privilege missing")
	// ErrGone is a table or database that does not exist (any more), perhaps renamed for a moment.
	ErrGone = errors.New("table does not exist")
	// ErrSchema is a table that lacks a needed column or index, or has it with a type that can't serve.
	ErrSchema = errors.New("table has not the needed shape")
	// ErrServer is anything else that the server refused; unknown means worth a bounded number of tries.
	ErrServer = errors.New("database refused the statement")

	// ErrRefused is a table that does not take what is to be written: a CHECK, a trigger, a foreign or unique key, or a column's
	// type refuses the values. The same statement fails again until a person changes the table; another row may pass.
	ErrRefused = below(ErrServer, "database refused the statement: the table does not take these values")
	// ErrCertificate is a server whose certificate is not accepted. It stays so until the configuration or the certificate
	// changes.
	ErrCertificate = below(ErrServer, "the server's certificate is not accepted")
	// errFormat is a session that writes its binlog by statements, which InnoDB refuses in READ COMMITTED. A new session may
	// have another format.
	errFormat = below(ErrServer, "database refused the statement: binlog_format is STATEMENT")
)

// class is a class of errors within a wider one.
type class struct {
	text   string
	within error
}

func below(within error, text string) error { return &class{text: text, within: within} }

// Error returns what the class means.
func (c *class) Error() string { return c.text }

// Unwrap returns the wider class.
func (c *class) Unwrap() error { return c.within }

// Error is a refusal of the server or a fault on the way to it. Its text holds neither data nor the statement, because
// the server's own message may quote both.
type Error struct {
	// Op says what was attempted, such as "mark rows sent in app.local_message"; "" when the caller says it.
	Op string
	// Number is the server's error number, 0 for a fault of the connection.
	Number uint16
	// Class is one of the classes of this package, or of who made the error.
	Class error
	// Text says why it failed.
	Text string

	cause error // a fault of the network, for errors.As
}

// Error returns what was attempted, and why it failed.
func (e *Error) Error() string {
	if e.Op == "" {
		return e.Text
	}
	return e.Op + ": " + e.Text
}

// Unwrap returns the class, and the network's error where it was one.
func (e *Error) Unwrap() []error {
	var within []error
	for _, err := range []error{e.Class, e.cause} {
		if err != nil {
			within = append(within, err)
		}
	}
	return within
}

// classes are the server error numbers that mean something particular, each with its reason. A number that is not listed
// is classed by its SQLSTATE.
var classes = map[uint16]error{
	1040: ErrUnreachable, // too many connections
	1053: ErrUnreachable, // server shutdown in progress
	1077: ErrUnreachable, // normal shutdown
	1079: ErrUnreachable, // shutdown complete
	1129: ErrUnreachable, // host blocked after many connection errors
	1152: ErrUnreachable, // aborted connection
	1158: ErrUnreachable, // network read error, seen by the server
	1159: ErrUnreachable, // network read timeout, seen by the server
	1160: ErrUnreachable, // network write error, seen by the server
	1161: ErrUnreachable, // network write timeout, seen by the server
	1184: ErrUnreachable, // aborted connection
	1203: ErrUnreachable, // user has too many connections
	1226: ErrUnreachable, // user's resource limit
	1317: ErrUnreachable, // query killed
	1927: ErrUnreachable, // MariaDB: connection was killed
	2006: ErrUnreachable, // a proxy's "server has gone away"
	2013: ErrUnreachable, // a proxy's "lost connection"
	3032: ErrUnreachable, // MySQL: server is in offline mode
	3168: ErrUnreachable, // MySQL: server isn't available
	4031: ErrUnreachable, // MySQL: disconnected because of inactivity
	// Out of something that comes back, and nothing to do with what was asked.
	1021: ErrUnreachable, // disk full
	1026: ErrUnreachable, // a file can't be written
	1037: ErrUnreachable, // out of memory
	1041: ErrUnreachable, // out of resources
	1114: ErrUnreachable, // table full, as it is when the disk is
	1135: ErrUnreachable, // no thread can be made
	1180: ErrUnreachable, // the commit failed
	1598: ErrUnreachable, // the binlog can't be written

	1205: ErrBusy, // lock wait timeout
	1213: ErrBusy, // deadlock
	1969: ErrBusy, // MariaDB: max_statement_time exceeded
	3024: ErrBusy, // MySQL: max_execution_time exceeded
	3101: ErrBusy, // MySQL: group replication rolled the transaction back
	3572: ErrBusy, // NOWAIT met a lock

	1290: ErrReadOnly, // --read-only and its kin
	1792: ErrReadOnly, // read-only transaction
	1836: ErrReadOnly, // read-only mode

	1044: ErrPrivilege, // database access denied
	1045: ErrPrivilege, // user or password wrong
	1095: ErrPrivilege, // not owner of the thread
	1130: ErrPrivilege, // host not allowed
	1142: ErrPrivilege, // command denied on a table
	1143: ErrPrivilege, // command denied on a column
	1227: ErrPrivilege, // a global privilege is missing
	1419: ErrPrivilege, // a trigger or function may not be made while the binlog is on
	1370: ErrPrivilege, // routine access denied
	1410: ErrPrivilege, // not allowed to create a user with GRANT
	1698: ErrPrivilege, // access denied, no password
	1820: ErrPrivilege, // password expired: only a new one may be set
	1862: ErrPrivilege, // password expired
	3118: ErrPrivilege, // account locked
	4151: ErrPrivilege, // MariaDB: account locked

	1049: ErrGone, // unknown database
	1051: ErrGone, // unknown table
	1146: ErrGone, // table does not exist

	1054: ErrSchema, // unknown column
	1072: ErrSchema, // key column does not exist
	1176: ErrSchema, // the index named in FORCE INDEX does not exist
	1364: ErrSchema, // column has no default

	1665: errFormat, // binlog_format is STATEMENT

	1052: ErrServer, // a column's name is ambiguous: a statement of ours is wrong, although the state is a refusal's

	// A table's lasting no to a row. The SQLSTATE of most says so; here are those by whose state nothing is said, and those
	// that are met most.
	1022: ErrRefused, // duplicate key
	1048: ErrRefused, // a column takes no NULL
	1062: ErrRefused, // duplicate entry
	1264: ErrRefused, // out of a column's range
	1265: ErrRefused, // data truncated
	1292: ErrRefused, // a time or number that is none
	1366: ErrRefused, // a value that the column's type or character set does not have
	1369: ErrRefused, // a view's CHECK OPTION
	1406: ErrRefused, // data too long
	1411: ErrRefused, // a text that is no time
	1442: ErrRefused, // a trigger changes the table that it stands on
	1451: ErrRefused, // a child refers to the row
	1452: ErrRefused, // the parent does not exist
	1526: ErrRefused, // no partition takes the value
	1644: ErrRefused, // SIGNAL, of a trigger
	1690: ErrRefused, // out of range: a BIGINT that counts on
	1748: ErrRefused, // the row does not belong to the named partition
	3140: ErrRefused, // MySQL: text that is no JSON
	3819: ErrRefused, // MySQL: a CHECK constraint
	4025: ErrRefused, // MariaDB: a CHECK constraint
}

// saysNoData lists the errors whose server message holds names and numbers only, never data or parts of the statement.
var saysNoData = map[uint16]bool{
	1040: true, 1044: true, 1045: true, 1049: true, 1051: true, 1053: true, 1054: true, 1129: true, 1130: true, 1142: true,
	1143: true, 1146: true, 1176: true, 1193: true, 1203: true, 1205: true, 1213: true, 1220: true, 1226: true, 1227: true,
	1290: true, 1317: true, 1381: true, 1698: true, 1792: true, 1820: true, 1836: true, 1862: true, 1927: true, 3032: true,
	3101: true, 3118: true, 3572: true, 4031: true, 4151: true,
}

// Server error numbers that the relay branches on one by one, by the names of the servers' manuals.
const (
	CodeUnknownDatabase = 1049 // ER_BAD_DB_ERROR
	CodeUnknownColumn   = 1054 // ER_BAD_FIELD_ERROR
	CodeNoSuchTable     = 1146 // ER_NO_SUCH_TABLE
	CodeWrongOffset     = 1220 // ER_ERROR_WHEN_EXECUTING_COMMAND
	CodeNoBinlog        = 1381 // ER_NO_BINARY_LOGGING
	CodeStatementFormat = 1665 // ER_BINLOG_STMT_MODE_AND_ROW_ENGINE

	codeUnknownVariable    = 1193 // ER_UNKNOWN_SYSTEM_VARIABLE
	codeNoSuchGrantee      = 1410 // ER_CANT_CREATE_USER_WITH_GRANT: MySQL 8 at a GRANT to a user that does not exist
	codeTooManyConnections = 1040 // ER_CON_COUNT_ERROR
	codeUserConnections    = 1203 // ER_TOO_MANY_USER_CONNECTIONS
)

// Code returns the number of a server's error, 0 when it is none.
func Code(err error) uint16 {
	if own, ok := errors.AsType[*Error](err); ok {
		return own.Number
	}
	return 0
}

// Retryable reports whether the same call may succeed later without a person's help, for all that is known: an ErrServer
// is worth a bounded number of tries.
func Retryable(err error) bool {
	return errors.Is(err, ErrUnreachable) || errors.Is(err, ErrBusy) || errors.Is(err, ErrReadOnly) || errors.Is(err, ErrServer)
}

// Describe turns an error of database/sql or the driver into an *Error, which says what was attempted, matches a class, and
// quotes no data. A nil error stays nil; an *Error stays as it is; a context's error is wrapped.
func Describe(op string, err error) error {
	if err == nil {
		return nil
	}
	if _, own := errors.AsType[*Error](err); own {
		return err
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		if op == "" {
			return err
		}
		return fmt.Errorf("%s: %w", op, err)
	}
	if server, ok := errors.AsType[*driver.MySQLError](err); ok {
		return describeServer(op, server)
	}
	if unknown, ok := errors.AsType[*tls.CertificateVerificationError](err); ok {
		return &Error{Op: op, Class: ErrCertificate, Text: fmt.Sprintf("%v: %v", ErrCertificate, unknown.Err)}
	}
	if brokenConnection(err) {
		return &Error{Op: op, Class: ErrUnreachable, Text: connectionText(err), cause: err}
	}
	for _, plugin := range []error{driver.ErrNoTLS, driver.ErrCleartextPassword, driver.ErrNativePassword, driver.ErrOldPassword, driver.ErrUnknownPlugin} {
		if errors.Is(err, plugin) {
			return &Error{Op: op, Class: ErrPrivilege, Text: plugin.Error()}
		}
	}
	// A failed scan quotes the value that could not be read, so its text is not repeated.
	return &Error{Op: op, Class: ErrServer, Text: fmt.Sprintf("unexpected answer (%T)", err)}
}

// describeIn is Describe for what failed under ctx. The time limits of dialing look like the end of a context: while ctx has
// not ended, they are the server's fault.
func describeIn(ctx context.Context, op string, err error) error {
	_, own := errors.AsType[*Error](err)
	network, ok := errors.AsType[*net.OpError](err)
	if ok && network.Timeout() && ctx.Err() == nil && !own {
		return &Error{Op: op, Class: ErrUnreachable, Text: connectionText(err), cause: err}
	}
	return Describe(op, err)
}

func describeServer(op string, server *driver.MySQLError) error {
	kind := ClassOf(server.Number, string(server.SQLState[:]))
	name := fmt.Sprintf("error %d", server.Number)
	if server.SQLState[0] != 0 { // what a server refuses before it has greeted has no state
		name += " (" + string(server.SQLState[:]) + ")"
	}
	text := fmt.Sprintf("%s: %v", name, kind)
	if saysNoData[server.Number] {
		text = name + ": " + server.Message
	}
	if server.Number == codeNoSuchGrantee {
		text += ": the user that is to get it does not exist; run the CREATE USER that `init --print-sql` prints"
	}
	return &Error{Op: op, Number: server.Number, Class: kind, Text: text}
}

// brokenConnection reports whether the fault is of the way to the server, not of the statement.
func brokenConnection(err error) bool {
	var network net.Error
	return errors.Is(err, sqldriver.ErrBadConn) || errors.Is(err, driver.ErrInvalidConn) || errors.Is(err, driver.ErrMalformPkt) ||
		errors.Is(err, driver.ErrPktSync) || errors.Is(err, driver.ErrBusyBuffer) || errors.Is(err, io.EOF) ||
		errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) || errors.As(err, &network)
}

// connectionText says what broke; dial errors name the address and the reason and nothing secret.
func connectionText(err error) string {
	if op, ok := errors.AsType[*net.OpError](err); ok {
		return op.Error()
	}
	return "connection lost"
}

// ClassOf returns the class of a server's error: by its number, else by the class of its SQLSTATE.
func ClassOf(number uint16, state string) error {
	if class, known := classes[number]; known {
		return class
	}
	for _, refused := range []string{
		"22", // data exception: a value is out of range, cut off or malformed
		"23", // integrity constraint violation
		"44", // WITH CHECK OPTION violation
		"45", // a SIGNAL of the user's own, whatever its number
	} {
		if strings.HasPrefix(state, refused) {
			return ErrRefused
		}
	}
	return ErrServer
}
