package lean

import (
	"encoding/binary"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// temporalSize returns the bytes of a type with fractional digits, without those of the fraction; 0 for other types.
func temporalSize(tp byte) int {
	switch tp {
	case mysql.MYSQL_TYPE_TIME2:
		return 3
	case mysql.MYSQL_TYPE_TIMESTAMP2:
		return 4
	case mysql.MYSQL_TYPE_DATETIME2:
		return 5
	}
	return 0
}

// appendTemporal prints a time as the server does: with as many digits behind the second as the column has, zero and
// partial dates as they are, TIMESTAMP in UTC. b has the length that the type demands.
func appendTemporal(dst, b []byte, tp byte, digits int) ([]byte, error) {
	if n := temporalSize(tp); n > 0 {
		return appendFractional(dst, b[:n], b[n:], tp, digits)
	}
	switch tp {
	case mysql.MYSQL_TYPE_DATE:
		n := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		dst = appendDate(dst, int(n>>9), int(n>>5&0xf), int(n&0x1f))
	case mysql.MYSQL_TYPE_TIME:
		dst = appendOldTime(dst, b)
	case mysql.MYSQL_TYPE_DATETIME:
		n := binary.LittleEndian.Uint64(b)
		d, t := int(n/1000000), int(n%1000000)
		dst = append(appendDate(dst, d/10000, d/100%100, d%100), ' ')
		dst = appendClock(dst, t/10000, t/100%100, t%100)
	case mysql.MYSQL_TYPE_TIMESTAMP:
		dst = appendUnix(dst, binary.LittleEndian.Uint32(b))
	}
	return dst, nil
}

// appendFractional prints a time of the types with fractional digits: whole are the bytes of the seconds, part those of
// the fraction.
func appendFractional(dst, whole, part []byte, tp byte, digits int) ([]byte, error) {
	micros := micros(bigEndian(part), len(part))
	if tp == mysql.MYSQL_TYPE_TIME2 {
		n := int64(bigEndian(whole)) - 1<<23 // an offset, so that they sort as bytes
		if n < 0 {
			// The fraction is counted from the other end: put both together as one number, and take that apart.
			dst = append(dst, '-')
			shift := 8 * len(part)
			unit := -(n<<shift | int64(bigEndian(part)))
			n, micros = unit>>shift, int(unit&(1<<shift-1))*microsPerUnit(len(part))
		}
		dst = appendClock(dst, int(n>>12)&0x3ff, int(n>>6)&0x3f, int(n)&0x3f)
	}
	if micros > 999999 {
		return dst, malformed("a time with %d microseconds", micros)
	}
	switch tp {
	case mysql.MYSQL_TYPE_TIMESTAMP2:
		dst = appendUnix(dst, binary.BigEndian.Uint32(whole))
	case mysql.MYSQL_TYPE_DATETIME2:
		n := int64(bigEndian(whole)) - 1<<39
		if n < 0 {
			return dst, malformed("a negative DATETIME")
		}
		dst = appendPackedDatetime(dst, n)
	}
	return appendFraction(dst, micros, digits), nil
}

// appendPackedDatetime prints a packed DATETIME: a year times 13 plus the month, 5 bits of day, 5 of hour, 6 of minute, 6
// of second.
func appendPackedDatetime(dst []byte, n int64) []byte {
	ymd, hms := int(n>>17), int(n&(1<<17-1))
	ym := ymd >> 5
	dst = append(appendDate(dst, ym/13, ym%13, ymd&0x1f), ' ')
	return appendClock(dst, hms>>12, hms>>6&0x3f, hms&0x3f)
}

// appendUnix prints seconds since 1970 in UTC. Zero is the zero date, not 1970.
func appendUnix(dst []byte, seconds uint32) []byte {
	if seconds == 0 {
		return append(dst, "0000-00-00 00:00:00"...)
	}
	t := time.Unix(int64(seconds), 0).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = append(appendDate(dst, year, int(month), day), ' ')
	return appendClock(dst, hour, minute, second)
}

// appendOldTime prints a TIME of before MySQL 5.6: three bytes that read as hhmmss in decimal, signed.
func appendOldTime(dst, b []byte) []byte {
	n := int(int32(uint32(b[0])<<8|uint32(b[1])<<16|uint32(b[2])<<24) >> 8)
	if n < 0 {
		dst = append(dst, '-')
		n = -n
	}
	return appendClock(dst, n/10000, n/100%100, n%100)
}

// micros scales a fraction stored in one byte (hundredths), two (ten thousandths) or three (millionths).
func micros(n uint64, size int) int { return int(n) * microsPerUnit(size) }

func microsPerUnit(size int) int {
	switch size {
	case 1:
		return 10000
	case 2:
		return 100
	}
	return 1
}

func bigEndian(b []byte) uint64 {
	n := uint64(0)
	for _, c := range b {
		n = n<<8 | uint64(c)
	}
	return n
}

// appendDate prints yyyy-mm-dd.
func appendDate(dst []byte, year, month, day int) []byte {
	dst = append(appendPadded(dst, year, 4), '-')
	dst = append(appendPadded(dst, month, 2), '-')
	return appendPadded(dst, day, 2)
}

// appendClock prints hh:mm:ss; the hours of a TIME may have three digits.
func appendClock(dst []byte, hour, minute, second int) []byte {
	dst = append(appendPadded(dst, hour, 2), ':')
	dst = append(appendPadded(dst, minute, 2), ':')
	return appendPadded(dst, second, 2)
}

// appendFraction prints the point and the digits of a fraction, nothing when there are no digits.
func appendFraction(dst []byte, micros, digits int) []byte {
	if digits <= 0 {
		return dst
	}
	for range 6 - digits {
		micros /= 10
	}
	return appendPadded(append(dst, '.'), micros, digits)
}

// appendPadded prints n with leading zeros up to a width.
func appendPadded(dst []byte, n, width int) []byte {
	if width == 2 && n < 100 { // most of the parts of a time
		return append(dst, byte('0'+n/10), byte('0'+n%10))
	}
	var digits [20]byte
	i := len(digits)
	for n > 0 || i == len(digits) {
		i--
		digits[i] = byte('0' + n%10)
		n /= 10
	}
	for range width - (len(digits) - i) {
		dst = append(dst, '0')
	}
	return append(dst, digits[i:]...)
}
