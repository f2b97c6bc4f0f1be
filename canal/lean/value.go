package lean

// State tells whether an image holds a column, and whether the column holds a value.
type State uint8

// The states of a Value.
const (
	// Absent: the image does not hold the column (binlog_row_image is not FULL), or the table does not have it.
	Absent State = iota
	// Null: the column is NULL.
	Null
	// Present: the column has a value.
	Present
)

// Kind tells which field of a Value holds it.
type Kind uint8

// The kinds of a Value. The kind of a column is the same in every row of a plan.
const (
	// Bytes: text in UTF-8, binary strings as they are, times, decimals and JSON in the server's notation.
	Bytes Kind = iota
	// Int: a signed integer.
	Int
	// Uint: an unsigned integer, or a YEAR.
	Uint
)

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case Int:
		return "int"
	case Uint:
		return "uint"
	case Bytes:
		return "bytes"
	}
	return "unknown"
}

// Value is one column of one row image.
type Value struct {
	State State
	Kind  Kind
	Int   int64
	Uint  uint64
	// Bytes is a copy: it may be kept, and it may be changed. All the Bytes of one image share one allocation, so whoever
	// keeps a small one for long, and not its neighbours, should copy it. Not nil when the value is Present.
	Bytes []byte
}

// Image is a row before or after a change: one Value per wanted column, in the order in which the plan lists them.
type Image []Value
