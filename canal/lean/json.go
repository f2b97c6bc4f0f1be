package lean

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"
)

// The types of values in MySQL's binary JSON.
const (
	jsonSmallObject = 0x00
	jsonLargeObject = 0x01
	jsonSmallArray  = 0x02
	jsonLargeArray  = 0x03
	jsonLiteral     = 0x04
	jsonInt16       = 0x05
	jsonUint16      = 0x06
	jsonInt32       = 0x07
	jsonUint32      = 0x08
	jsonInt64       = 0x09
	jsonUint64      = 0x0a
	jsonDouble      = 0x0b
	jsonString      = 0x0c
	jsonOpaque      = 0x0f
)

const (
	// jsonMaxDepth is how deep MySQL lets documents nest.
	jsonMaxDepth = 100
	// jsonMaxGrowth is more than the text of a document can exceed its binary form. A hostile document reuses its parts
	// to print terabytes.
	jsonMaxGrowth = 16
)

// appendJSON prints a document in MySQL's binary JSON as the server prints it: blanks behind commas and colons, the
// members in stored order. go-mysql's own decoder gives equal documents but other bytes (no blanks, other exponents), and
// can't be reached from outside a full decode.
func appendJSON(dst, b []byte) ([]byte, error) {
	if len(b) == 0 {
		// Left by INSERT IGNORE of NULL into a NOT NULL column; the server reads it as the literal.
		return append(dst, "null"...), nil
	}
	p := jsonPrinter{dst: dst, limit: len(dst) + jsonMaxGrowth*len(b) + 64}
	if !p.value(b[0], b[1:], 0) {
		return dst, malformed("a JSON document of %d bytes that contradicts itself", len(b))
	}
	return p.dst, nil
}

// jsonPrinter prints values; its methods return false when the document is broken.
type jsonPrinter struct {
	dst   []byte
	limit int
}

func (p *jsonPrinter) value(tp byte, b []byte, depth int) bool {
	if len(p.dst) > p.limit {
		return false
	}
	switch tp {
	case jsonSmallObject, jsonLargeObject, jsonSmallArray, jsonLargeArray:
		if depth >= jsonMaxDepth {
			return false
		}
		c, ok := newJSONContainer(tp, b)
		return ok && p.container(c, depth+1)
	case jsonLiteral:
		return p.literal(b)
	case jsonDouble:
		if len(b) < 8 {
			return false
		}
		var ok bool
		p.dst, ok = appendDouble(p.dst, math.Float64frombits(binary.LittleEndian.Uint64(b)))
		return ok
	case jsonString:
		s, _, ok := jsonSized(b)
		return ok && p.quote(s)
	case jsonOpaque:
		return len(b) > 0 && p.opaque(b[0], b[1:])
	}
	return p.integer(tp, b)
}

func (p *jsonPrinter) literal(b []byte) bool {
	if len(b) == 0 || b[0] > 2 {
		return false
	}
	p.dst = append(p.dst, [...]string{"null", "true", "false"}[b[0]]...)
	return true
}

func (p *jsonPrinter) integer(tp byte, b []byte) bool {
	size := map[byte]int{jsonInt16: 2, jsonUint16: 2, jsonInt32: 4, jsonUint32: 4, jsonInt64: 8, jsonUint64: 8}[tp]
	if size == 0 || len(b) < size {
		return false
	}
	switch tp {
	case jsonInt16:
		p.dst = strconv.AppendInt(p.dst, int64(int16(binary.LittleEndian.Uint16(b))), 10)
	case jsonUint16:
		p.dst = strconv.AppendUint(p.dst, uint64(binary.LittleEndian.Uint16(b)), 10)
	case jsonInt32:
		p.dst = strconv.AppendInt(p.dst, int64(int32(binary.LittleEndian.Uint32(b))), 10)
	case jsonUint32:
		p.dst = strconv.AppendUint(p.dst, uint64(binary.LittleEndian.Uint32(b)), 10)
	case jsonInt64:
		p.dst = strconv.AppendInt(p.dst, int64(binary.LittleEndian.Uint64(b)), 10)
	case jsonUint64:
		p.dst = strconv.AppendUint(p.dst, binary.LittleEndian.Uint64(b), 10)
	}
	return true
}

// quote prints a string. What has no escape goes out as it is: the document is UTF-8.
func (p *jsonPrinter) quote(s []byte) bool {
	const hex = "0123456789abcdef"
	p.dst = append(p.dst, '"')
	from := 0
	for i, c := range s {
		if c >= 0x20 && c != '"' && c != '\\' {
			continue
		}
		p.dst = append(p.dst, s[from:i]...)
		from = i + 1
		switch c {
		case '"', '\\':
			p.dst = append(p.dst, '\\', c)
		case '\b':
			p.dst = append(p.dst, `\b`...)
		case '\f':
			p.dst = append(p.dst, `\f`...)
		case '\n':
			p.dst = append(p.dst, `\n`...)
		case '\r':
			p.dst = append(p.dst, `\r`...)
		case '\t':
			p.dst = append(p.dst, `\t`...)
		default:
			p.dst = append(p.dst, '\\', 'u', '0', '0', hex[c>>4], hex[c&0xf])
		}
	}
	p.dst = append(append(p.dst, s[from:]...), '"')
	return true
}

// jsonSized reads a length of up to five bytes, seven bits in each, and that many bytes behind it.
func jsonSized(b []byte) (content, rest []byte, ok bool) {
	length := uint64(0)
	for i := range min(len(b), 5) {
		length |= uint64(b[i]&0x7f) << (7 * i)
		if b[i]&0x80 == 0 {
			b = b[i+1:]
			if length > uint64(len(b)) {
				return nil, nil, false
			}
			return b[:length], b[length:], true
		}
	}
	return nil, nil, false
}

// jsonBase64Line is how many characters of base64 the server prints between line feeds.
const jsonBase64Line = 76

// appendBase64 prints as the server's base64_encode does.
func appendBase64(b []byte) []byte {
	code := base64.StdEncoding.AppendEncode(nil, b)
	var lines []byte
	for len(code) > jsonBase64Line {
		lines = append(append(lines, code[:jsonBase64Line]...), '\n')
		code = code[jsonBase64Line:]
	}
	return append(lines, code...)
}
