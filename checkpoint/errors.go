package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/redis/go-redis/v9"
)

var (
	// ErrNone says that Redis surely has no checkpoint of the source.
	ErrNone = errors.New("there is no checkpoint")
	// ErrLost is an ErrNone whose history shows that there was a checkpoint: it was deleted or evicted, and not by an operator's command.
	ErrLost = fmt.Errorf("%w, though the history shows that there was one: it was deleted or evicted", ErrNone)
	// ErrNewer says that the record has a format which this relay doesn't know. Run the newer relay.
	ErrNewer = errors.New("the checkpoint was written by a newer relay")
	// ErrBroken says that there is a record which makes no sense.
	ErrBroken = errors.New("the checkpoint is broken")
	// ErrFenced says that a newer epoch has been handed out or saved: this relay was replaced.
	ErrFenced = errors.New("the checkpoint belongs to a newer leader")
	// ErrNothingToUndo says that the history holds no operator's change.
	ErrNothingToUndo = errors.New("there is no operator's change to undo")
)

func newerError(version string) error {
	return fmt.Errorf("%w: its format is %s, this one knows up to %d: upgrade this relay", ErrNewer, version, Version)
}

// Code says why Redis did not do what it was asked, as logs and metrics spell it.
type Code string

// The codes. An operator reads them as the label of a metric, so they are fixed.
const (
	CodeNone      Code = ""           // no error
	CodeFenced    Code = "fenced"     // ErrFenced
	CodeNewer     Code = "newer"      // ErrNewer
	CodeAway      Code = "away"       // not reachable, or no answer in time
	CodeStopped   Code = "stopped"    // the caller's context ended
	CodeLoading   Code = "loading"    // reading its data set after a start: wait
	CodeMisconf   Code = "misconf"    // can't persist and so refuses writes
	CodeMemory    Code = "memory"     // at maxmemory with nothing to evict
	CodeReadOnly  Code = "readonly"   // a replica, or too few replicas are in step
	CodeAuth      Code = "auth"       // wrong or missing password, or a right is missing
	CodeBusy      Code = "busy"       // a script runs too long, or too many clients
	CodeTopology  Code = "topology"   // a cluster that was addressed as one server, or one that is down
	CodeWrongType Code = "wrong_type" // a key of ours holds something else
	CodeOther     Code = "other"
)

// CodeOf classifies an error of this package or of go-redis.
func CodeOf(err error) Code {
	switch {
	case err == nil:
		return CodeNone
	case errors.Is(err, ErrFenced):
		return CodeFenced
	case errors.Is(err, ErrNewer):
		return CodeNewer
	}
	if refusal, ok := errors.AsType[redis.Error](err); ok {
		return codeOfReply(refusal.Error())
	}
	return codeOfWay(err)
}

// codeOfReply goes by the first word, which is the protocol's error code; what follows is text for people.
func codeOfReply(text string) Code {
	code, _, _ := strings.Cut(text, " ")
	if code == "ERR" {
		// Redis before 7 hides the code of a command that failed inside a script: "ERR Error running script (call to f_0123):
		// @user_script:3: -MISCONF Redis is ...".
		if _, inner, found := strings.Cut(text, ": -"); found {
			code, _, _ = strings.Cut(inner, " ")
		}
	}
	switch code {
	case "LOADING": // after a start, until the data set is read; commands are answered with this at once
		return CodeLoading
	case "MISCONF": // stop-writes-on-bgsave-error, after a snapshot or the append-only file could not be written
		return CodeMisconf
	case "OOM": // used memory > maxmemory with noeviction
		return CodeMemory
	case "READONLY", // a replica: also a master that was just demoted
		"MASTERDOWN", // a replica with replica-serve-stale-data no
		"NOREPLICAS": // min-replicas-to-write
		return CodeReadOnly
	case "NOAUTH", "WRONGPASS", "NOPERM": // no password, a wrong one, an ACL without the right
		return CodeAuth
	case "BUSY", "TRYAGAIN", // a slow script; a slot on its way to another node
		"UNKILLABLE":
		return CodeBusy
	case "MOVED", "ASK", "CROSSSLOT", "CLUSTERDOWN": // see keys
		return CodeTopology
	case "WRONGTYPE":
		return CodeWrongType
	}
	// These have no code of their own.
	switch {
	case strings.HasPrefix(text, "ERR max number of clients reached"):
		return CodeBusy
	case strings.HasPrefix(text, "ERR Protocol error: unauthenticated"): // a long request before AUTH, so in place of NOAUTH
		return CodeAuth
	}
	return CodeOther
}

// codeOfWay classifies what is no answer of Redis.
func codeOfWay(err error) Code {
	_, network := errors.AsType[net.Error](err)
	switch {
	case errors.Is(err, context.Canceled):
		return CodeStopped
	case network, // refused, reset, no such host, time-out; a deadline is one too
		errors.Is(err, context.DeadlineExceeded),
		errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), // closed under way
		errors.Is(err, redis.ErrPoolTimeout), errors.Is(err, redis.ErrPoolExhausted), // all connections wait for it
		strings.HasPrefix(err.Error(), "redis: all sentinels specified in configuration are unreachable"): // has no type
		return CodeAway
	}
	return CodeOther
}

// advice tells an operator what to do about a code.
func advice(code Code) string {
	switch code {
	case CodeAway:
		return "check that redis runs and that its address is right"
	case CodeLoading:
		return "redis is reading its data set: wait"
	case CodeMisconf:
		return "redis can't persist: look at its log and its disk"
	case CodeMemory:
		return "raise redis's maxmemory or make room"
	case CodeReadOnly:
		return "address the primary, or look at its replicas"
	case CodeAuth:
		return "check redis's user, password and the user's rights"
	case CodeBusy:
		return "redis is overloaded: look at its slow log and maxclients"
	case CodeTopology:
		return "for a redis cluster give a list of addresses or redis+cluster://; look at CLUSTER INFO"
	case CodeWrongType:
		return "a key of the relay holds something else: choose another redis.prefix"
	default:
		return ""
	}
}

// opError is a call that Redis did not serve. Its text never holds the password: servers repeat arguments that they don't
// understand, AUTH's too.
type opError struct {
	text  string
	cause error
}

func (e *opError) Error() string { return e.text }
func (e *opError) Unwrap() error { return e.cause }

// wrap says what was attempted and what to do.
func (s *Store) wrap(what string, err error) error {
	text := what + ": " + s.target.redact(err.Error())
	if hint := advice(CodeOf(err)); hint != "" {
		text += ": " + hint
	}
	return &opError{text: text, cause: err}
}
