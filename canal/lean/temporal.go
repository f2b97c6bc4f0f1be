package lean

import (
	"encoding/binary"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
)

// temporalSize returns the bytes of a type with fractional digits, without those of the fraction.
func temporalSize(tp byte) int {
	switch tp {
	case mysql.MYSQL_TYPE_TIME2:
		return 3
	case mysql.MYSQL_TYPE_TIMESTAMP2:
		return 4
	}
	return 5
}

// appendTemporal prints a time as the server does: with as many digits behind the second as the column has, zero and
// partial dates as they are, TIMESTAMP in UTC. b has the length that the type demands.
func appendTemporal(dst, b []byte, tp byte, digits int) []byte {
	switch tp {
	case mysql.MYSQL_TYPE_DATE:
		n := uint32(b[0]) | uint32(b[1])<<8 | uint32(b[2])<<16
		return appendDate(dst, int(n>>9), int(n>>5&0xf), int(n&0x1f))
	case mysql.MYSQL_TYPE_TIME:
		return appendOldTime(dst, b)
	case mysql.MYSQL_TYPE_DATETIME:
		n := binary.LittleEndian.Uint64(b)
		d, t := int(n/1000000), int(n%1000000)
		dst = append(appendDate(dst, d/10000, d/100%100, d%100), ' ')
		return appendClock(dst, t/10000, t/100%100, t%100)
	case mysql.MYSQL_TYPE_TIMESTAMP:
		return appendUnix(dst, binary.LittleEndian.Uint32(b), 0, 0)
	case mysql.MYSQL_TYPE_TIMESTAMP2:
		return appendUnix(dst, binary.BigEndian.Uint32(b), fraction(b[4:], digits), digits)
	case mysql.MYSQL_TYPE_DATETIME2:
		const offset = 1 << 39 // so that they sort as bytes
		n := int64(bigEndian(b[:5])) - offset
		return appendPackedDatetime(dst, n, fraction(b[5:], digits), digits)
	case mysql.MYSQL_TYPE_TIME2:
		return appendTime2(dst, b, digits)
	}
	return dst
}

// appendPackedDatetime prints the whole seconds of a packed DATETIME: a year times 13 plus the month, 5 bits of day, 5 of hour,
// 6 of minute, 6 of second.
func appendPackedDatetime(dst []byte, n int64, micros, digits int) []byte {
	if n < 0 {
		n = -n
	}
	ymd, hms := int(n>>17), int(n&(1<<17-1))
	ym := ymd >> 5
	dst = append(appendDate(dst, ym/13, ym%13, ymd&0x1f), ' ')
	return appendFraction(appendClock(dst, hms>>12, hms>>6&0x3f, hms&0x3f), micros, digits)
}

// appendUnix prints seconds since 1970 in UTC. Zero is the zero date, not 1970.
func appendUnix(dst []byte, seconds uint32, micros, digits int) []byte {
	if seconds == 0 {
		return appendFraction(append(dst, "0000-00-00 00:00:00"...), micros, digits)
	}
	t := time.Unix(int64(seconds), 0).UTC()
	year, month, day := t.Date()
	hour, minute, second := t.Clock()
	dst = append(appendDate(dst, year, int(month), day), ' ')
	return appendFraction(appendClock(dst, hour, minute, second), micros, digits)
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

// appendTime2 prints a TIME. Its bytes are one big endian number with an offset, so negative times have their fraction
// counted from the other end: put both together as one number, and take that apart.
func appendTime2(dst, b []byte, digits int) []byte {
	fractionBytes := len(b) - 3
	n := int64(bigEndian(b)) - 1<<(23+8*fractionBytes)
	if n < 0 {
		dst = append(dst, '-')
		n = -n
	}
	unit := n & (1<<(8*fractionBytes) - 1)
	hms := int(n >> (8 * fractionBytes))
	dst = appendClock(dst, hms>>12&0x3ff, hms>>6&0x3f, hms&0x3f)
	return appendFraction(dst, micros(uint64(unit), fractionBytes), digits)
}

// fraction returns the microseconds in the bytes behind a time.
func fraction(b []byte, digits int) int {
	n := (digits + 1) / 2
	return micros(bigEndian(b[:n]), n)
}

// micros scales a fraction stored in one byte (hundredths), two (ten thousandths) or three (millionths).
func micros(n uint64, size int) int {
	switch size {
	case 1:
		return int(n) * 10000
	case 2:
		return int(n) * 100
	}
	return int(n)
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
