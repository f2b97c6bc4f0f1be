package lean

import (
	"bytes"
	"compress/flate"
	_ "embed" // the tables
	"encoding/binary"
	"fmt"
	"io"
)

//go:embed charset_table.bin
var packedTables []byte

// cellMalformed stands in the tables for a code that the server does not store. No character has this number.
const cellMalformed = 0xd800

// grid is a rectangle of two-byte codes: the first and the last first byte, the first and the last second byte.
type grid struct{ firstLow, firstHigh, secondLow, secondHigh byte }

func (g grid) cells() int {
	return (int(g.firstHigh-g.firstLow) + 1) * (int(g.secondHigh-g.secondLow) + 1)
}

// index returns the cell of a code, false when it is outside.
func (g grid) index(first, second byte) (int, bool) {
	if first < g.firstLow || first > g.firstHigh || second < g.secondLow || second > g.secondHigh {
		return 0, false
	}
	return int(first-g.firstLow)*(int(g.secondHigh-g.secondLow)+1) + int(second-g.secondLow), true
}

// multiShape tells how the codes of a charset are built: of one byte, of two in the grid, of 0x8f and two in the grid
// (triple), of four (quad, in gb18030 only).
type multiShape struct {
	name         string
	grid         grid
	triple, quad bool
}

// multiByte holds the tables of one charset: the rune of each code.
type multiByte struct {
	multiShape
	one, two, three, four []uint16
}

// The four-byte codes of gb18030 count in mixed radix: 0x81308130 is 0, the second and the fourth byte have ten values,
// the third one 126. Up to bmpQuads they are in the table; the supplementary planes start at 0x90308130.
const (
	bmpQuads        = 4 * 10 * 126 * 10
	supplementQuads = (0x90 - 0x81) * 10 * 126 * 10
)

// next decodes one character.
func (m *multiByte) next(b []byte) (rune, int) {
	if r := m.one[b[0]]; r != cellMalformed {
		return rune(r), 1
	}
	switch {
	case len(b) < 2:
	case m.triple && b[0] == 0x8f:
		if len(b) < 3 {
			break
		}
		if i, ok := m.grid.index(b[1], b[2]); ok {
			return cell(m.three[i], 3)
		}
	case m.quad && b[1] >= '0' && b[1] <= '9':
		return m.nextQuad(b)
	default:
		if i, ok := m.grid.index(b[0], b[1]); ok {
			return cell(m.two[i], 2)
		}
	}
	return 0, 0
}

func (m *multiByte) nextQuad(b []byte) (rune, int) {
	if len(b) < 4 || b[0] < 0x81 || b[2] < 0x81 || b[2] > 0xfe || b[3] < '0' || b[3] > '9' {
		return 0, 0
	}
	n := ((int(b[0]-0x81)*10+int(b[1]-'0'))*126+int(b[2]-0x81))*10 + int(b[3]-'0')
	switch {
	case n < bmpQuads:
		return cell(m.four[n], 4)
	case n >= supplementQuads && n < supplementQuads+0x100000:
		return rune(0x10000 + n - supplementQuads), 4
	case b[0] == 0xff:
		return 0, 0
	}
	return '?', 4
}

func cell(c uint16, size int) (rune, int) {
	if c == cellMalformed {
		return 0, 0
	}
	return rune(c), size
}

// unpackMultiByte reads the packed tables: 16 bit numbers, each the difference to the one before it.
func unpackMultiByte() (map[string]*multiByte, error) {
	packed, err := io.ReadAll(flate.NewReader(bytes.NewReader(packedTables)))
	if err != nil {
		return nil, fmt.Errorf("unpack the charset tables: %w", err)
	}
	tables := make(map[string]*multiByte, len(multiBytes))
	for _, shape := range multiBytes {
		m := &multiByte{multiShape: shape}
		parts := []struct {
			table *[]uint16
			cells int
		}{{&m.one, 256}, {&m.two, shape.grid.cells()}, {&m.three, 0}, {&m.four, 0}}
		if shape.triple {
			parts[2].cells = shape.grid.cells()
		}
		if shape.quad {
			parts[3].cells = bmpQuads
		}
		last := uint16(0)
		for _, part := range parts {
			if len(packed) < 2*part.cells {
				return nil, fmt.Errorf("unpack the charset tables: they end within %s", shape.name)
			}
			*part.table = make([]uint16, part.cells)
			for i := range *part.table {
				last += binary.LittleEndian.Uint16(packed[2*i:])
				(*part.table)[i] = last
			}
			packed = packed[2*part.cells:]
		}
		tables[shape.name] = m
	}
	return tables, nil
}
