// Package plain makes texts of go-mysql's errors that are fit to be logged: none holds what may be a message's content.
package plain

import (
	"errors"
	"fmt"
	"strings"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
)

// Text returns an error's text without what may be a message's content: go-mysql puts the whole event into the text of
// its EventError, and the values of rows into others.
func Text(err error) string {
	if my, ok := errors.AsType[*gomysql.MyError](err); ok {
		return my.Error()
	}
	if event, ok := errors.AsType[*replication.EventError](err); ok && event.Header != nil {
		return fmt.Sprintf("event %s at %d can't be read", event.Header.EventType, event.Header.LogPos)
	}
	return Cut(err.Error())
}

// maxText is how much of a text is logged.
const maxText = 400

// Cut cuts off what may be a message's content, and what is too long to read.
func Cut(text string) string {
	if i := strings.Index(text, ", data "); i >= 0 {
		text = text[:i]
	}
	if len(text) > maxText {
		text = text[:maxText] + "..."
	}
	return text
}

// Error returns err with its Text as its text, so that any caller can log it; nil for nil. Its cause stays wrapped.
func Error(err error) error {
	if err == nil {
		return nil
	}
	return &stripped{cause: err}
}

// stripped is an error whose text is the plain one.
type stripped struct {
	cause error
}

// Error returns the plain text.
func (e *stripped) Error() string { return Text(e.cause) }

// Unwrap returns the cause.
func (e *stripped) Unwrap() error { return e.cause }
