package lean

import (
	"encoding/binary"
	"math"
	"strconv"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// jsonContainer is an object or an array: the number of elements and the size in bytes, then for an object a list of
// offset and length of the keys, then a list of type and offset of the values, or of the values themselves where they
// are short enough. Offsets count from the start of the container and have two bytes in a small one, four in a large.
type jsonContainer struct {
	b      []byte
	object bool
	width  int // of an offset
	count  int
	header int // bytes before the first key or value
}

// newJSONContainer checks that the lists are within the container, and the container within b.
func newJSONContainer(tp byte, b []byte) (c jsonContainer, ok bool) {
	c = jsonContainer{object: tp == jsonSmallObject || tp == jsonLargeObject, width: 2}
	if tp == jsonLargeObject || tp == jsonLargeArray {
		c.width = 4
	}
	if len(b) < 2*c.width {
		return c, false
	}
	count, size := c.number(b), c.number(b[c.width:])
	header := 2*uint64(c.width) + count*uint64(c.width+1)
	if c.object {
		header += count * uint64(c.width+2)
	}
	if header > size || size > uint64(len(b)) {
		return c, false
	}
	c.b, c.count, c.header = b[:size], int(count), int(header)
	return c, true
}

// number reads an offset or a count. b is long enough.
func (c *jsonContainer) number(b []byte) uint64 {
	if c.width == 2 {
		return uint64(binary.LittleEndian.Uint16(b))
	}
	return uint64(binary.LittleEndian.Uint32(b))
}

// key returns the i-th key of an object.
func (c *jsonContainer) key(i int) ([]byte, bool) {
	entry := c.b[2*c.width+i*(c.width+2):]
	offset, length := c.number(entry), uint64(binary.LittleEndian.Uint16(entry[c.width:]))
	if offset < uint64(c.header) || offset+length > uint64(len(c.b)) {
		return nil, false
	}
	return c.b[offset : offset+length], true
}

// value returns the type and the bytes of the i-th value; the bytes go on to the end of the container.
func (c *jsonContainer) value(i int) (tp byte, b []byte, ok bool) {
	at := 2*c.width + i*(c.width+1)
	if c.object {
		at += c.count * (c.width + 2)
	}
	entry := c.b[at : at+c.width+1]
	tp = entry[0]
	switch tp {
	case jsonLiteral, jsonInt16, jsonUint16:
		return tp, entry[1:], true
	case jsonInt32, jsonUint32:
		if c.width == 4 {
			return tp, entry[1:], true
		}
	}
	offset := c.number(entry[1:])
	if offset < uint64(c.header) || offset > uint64(len(c.b)) {
		return 0, nil, false
	}
	return tp, c.b[offset:], true
}

func (p *jsonPrinter) container(c jsonContainer, depth int) bool {
	open, end := byte('['), byte(']')
	if c.object {
		open, end = '{', '}'
	}
	p.dst = append(p.dst, open)
	for i := range c.count {
		if i > 0 {
			p.dst = append(p.dst, ", "...)
		}
		if c.object {
			key, ok := c.key(i)
			if !ok || !p.quote(key) {
				return false
			}
			p.dst = append(p.dst, ": "...)
		}
		tp, b, ok := c.value(i)
		if !ok || !p.value(tp, b, depth) {
			return false
		}
	}
	p.dst = append(p.dst, end)
	return true
}

// opaque prints a value of an SQL type: decimals as numbers, times as strings, anything else in base64.
func (p *jsonPrinter) opaque(tp byte, b []byte) bool {
	b, _, ok := jsonSized(b)
	if !ok {
		return false
	}
	switch tp {
	case mysql.MYSQL_TYPE_NEWDECIMAL:
		if len(b) < 2 {
			return false
		}
		var err error
		p.dst, err = appendDecimal(p.dst, b[2:], int(b[0]), int(b[1]))
		return err == nil
	case mysql.MYSQL_TYPE_DATE, mysql.MYSQL_TYPE_DATETIME, mysql.MYSQL_TYPE_TIMESTAMP, mysql.MYSQL_TYPE_TIME:
		if len(b) < 8 {
			return false
		}
		p.dst = append(appendPackedTime(append(p.dst, '"'), tp, int64(binary.LittleEndian.Uint64(b))), '"')
		return true
	}
	text := strconv.AppendUint([]byte("base64:type"), uint64(tp), 10)
	return p.quote(append(append(text, ':'), appendBase64(b)...))
}

// appendPackedTime prints a time in the server's packed form: 24 bits of microseconds under the whole seconds.
func appendPackedTime(dst []byte, tp byte, n int64) []byte {
	if n < 0 {
		n = -n & math.MaxInt64 // the smallest number has no positive one
		if tp == mysql.MYSQL_TYPE_TIME {
			dst = append(dst, '-')
		}
	}
	whole, micros := n>>24, int(n&(1<<24-1))
	if tp == mysql.MYSQL_TYPE_TIME {
		dst = appendClock(dst, int(whole>>12)&0x3ff, int(whole>>6)&0x3f, int(whole)&0x3f)
		return appendFraction(dst, micros, 6)
	}
	ymd := int(whole >> 17)
	if tp == mysql.MYSQL_TYPE_DATE {
		return appendDate(dst, ymd>>5/13, ymd>>5%13, ymd&0x1f)
	}
	return appendFraction(appendPackedDatetime(dst, whole), micros, 6)
}
