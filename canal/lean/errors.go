package lean

import (
	"errors"
	"fmt"
)

var (
	// ErrUnsupported is returned for a table or an event that lean can't read with certainty: an unknown column type, a
	// wanted column of a type or charset that has no exact text form here, an update written as JSON diffs. Nothing is
	// wrong with the row: somebody who asks the server for it gets it.
	ErrUnsupported = errors.New("unsupported by the lean decoder")

	// ErrMalformed is returned for an event that contradicts itself: truncated, longer than its rows, or with content
	// that no server writes. The rows before the broken one have been visited.
	ErrMalformed = errors.New("malformed rows event")

	// ErrMismatch is returned for an event whose TABLE_MAP is not the one the plan was made from: the table has been
	// altered, make a new plan.
	ErrMismatch = errors.New("plan was made for another table definition")
)

// malformed wraps ErrMalformed with what was found.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrMalformed, fmt.Sprintf(format, args...))
}

// unsupported wraps ErrUnsupported with what was found.
func unsupported(format string, args ...any) error {
	return fmt.Errorf("%w: %s", ErrUnsupported, fmt.Sprintf(format, args...))
}
