package canal

import (
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/canal/plain"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
)

// ErrCannotStream is returned by Open when the server answers but can't be streamed from: the binlog is off, its
// format is not ROW, a privilege is missing. It stays so until somebody changes the server; the text says what.
var ErrCannotStream = errors.New("the binlog can't be streamed")

// cannotStream wraps ErrCannotStream with a reason that ends with what to do.
func cannotStream(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrCannotStream, fmt.Sprintf(format, args...))
}

// PositionLost is returned by Next when the server can't go on from the position: resolve it again.
type PositionLost struct {
	// Reason is one of words.Recovery*.
	Reason string
	// Detail says what was found, for an operator.
	Detail string
}

// Error says what was found.
func (e *PositionLost) Error() string {
	return fmt.Sprintf("the binlog position is lost (%s): %s", e.Reason, e.Detail)
}

// Server error codes of the stream, by the names of the servers' manuals.
const (
	codeServerShutdown   = 1053 // ER_SERVER_SHUTDOWN
	codeFatalReading     = 1236 // ER_MASTER_FATAL_ERROR_READING_BINLOG
	codeQueryInterrupted = 1317 // ER_QUERY_INTERRUPTED
	codePurgedGTIDs      = 1789 // ER_MASTER_HAS_PURGED_REQUIRED_GTIDS
	codeConnectionKilled = 1927 // ER_CONNECTION_KILLED, MariaDB
	codeGTIDNotInBinlog  = 1945 // ER_GTID_POSITION_NOT_FOUND_IN_BINLOG, MariaDB
	codeGTIDNotInBinlog2 = 1946 // ER_GTID_POSITION_NOT_FOUND_IN_BINLOG2, MariaDB
	codeGTIDStrict       = 1950 // ER_GTID_STRICT_OUT_OF_ORDER, MariaDB
)

// serverCode returns the code of a server's error, 0 when it is none.
func serverCode(err error) uint16 {
	if my, ok := errors.AsType[*gomysql.MyError](err); ok {
		return my.Code
	}
	return mysql.Code(err)
}

// denied reports whether the server refused for lack of a right.
func denied(err error) bool {
	if my, ok := errors.AsType[*gomysql.MyError](err); ok {
		err = mysql.ClassOf(my.Code, my.State)
	}
	return errors.Is(err, mysql.ErrPrivilege)
}

// reasonOf classes an error that ended a connection.
func reasonOf(err error) string {
	var timeout net.Error
	switch serverCode(err) {
	case 0:
	case codeFatalReading:
		if sameServerID(err) {
			return words.ReconnectServerID
		}
		return words.ReconnectFatal
	case codePurgedGTIDs, codeGTIDNotInBinlog, codeGTIDNotInBinlog2, codeGTIDStrict:
		return words.ReconnectFatal
	case codeServerShutdown, codeQueryInterrupted, codeConnectionKilled:
		return words.ReconnectShutdown
	default:
		if denied(err) {
			return words.ReconnectDenied
		}
		return words.ReconnectServer
	}
	var event *replication.EventError
	var op *net.OpError
	switch {
	case errors.Is(err, errStandstill):
		return words.ReconnectStuck
	case errors.As(err, &timeout) && timeout.Timeout(), strings.Contains(err.Error(), "i/o timeout"):
		// go-mysql wraps ErrBadConn around the text of the network's error, so the text is all there is.
		return words.ReconnectTimeout
	case errors.As(err, &op) && op.Op == "dial":
		return words.ReconnectRefused
	case errors.As(err, &event), errors.Is(err, assemble.ErrMalformed):
		return words.ReconnectMalformed
	case errors.Is(err, gomysql.ErrBadConn), errors.Is(err, io.EOF), errors.Is(err, replication.ErrSyncClosed):
		return words.ReconnectClosed
	}
	return words.ReconnectClosed
}

// sameServerID tells another replica with our server id from the other things that error 1236 stands for. One code
// stands for all of them, so its text is all there is: "A slave/replica with the same server_uuid/server_id as this
// slave/replica has connected to the master/source".
func sameServerID(err error) bool {
	var my *gomysql.MyError
	return errors.As(err, &my) && my.Code == codeFatalReading && strings.Contains(my.Message, "with the same server_")
}

// fatalDetail explains error 1236 and its like to an operator. The server uses one code for many causes, so the text
// has to be looked at; what it doesn't match is passed on as it is.
func fatalDetail(err error) (recovery, detail string) {
	var my *gomysql.MyError
	if !errors.As(err, &my) {
		return words.RecoveryInvalid, plain.Text(err)
	}
	text := my.Message
	has := func(parts ...string) bool {
		for _, p := range parts {
			if strings.Contains(text, p) {
				return true
			}
		}
		return false
	}
	switch {
	case my.Code == codePurgedGTIDs, has("purged"):
		return words.RecoveryPurged, "the server has purged binlog files that are needed: " + text
	case has("Could not find first log file"):
		return words.RecoveryPurged, "the binlog file does not exist any more: " + text
	case has("max_allowed_packet"):
		return words.RecoveryInvalid, "an event is larger than the server's max_allowed_packet (raise it), or the position is not the start of an event: " + text
	}
	return words.RecoveryInvalid, text
}
