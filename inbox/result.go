package inbox

import "strconv"

// Result says what became of a delivery.
type Result uint8

const (
	// None comes with an error: nothing is known to be done. The error says whether it may have been (ErrUnknown).
	None Result = iota
	// Handled means that the handler ran and its transaction is committed, with the record of the message in it.
	Handled
	// Duplicate means that the message was handled before, by this process or another of the same group. The handler did not run.
	Duplicate
)

// String returns the result's name.
func (r Result) String() string {
	switch r {
	case None:
		return "none"
	case Handled:
		return "handled"
	case Duplicate:
		return "duplicate"
	}
	return "result(" + strconv.Itoa(int(r)) + ")"
}
