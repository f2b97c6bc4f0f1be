package lean

import "strconv"

// A DECIMAL is stored as groups of nine digits in four bytes each, counted from the point in both directions; what is
// left over at either end has as many bytes as its digits need. The highest bit is the sign, inverted; all bits of a
// negative number are.
const digitsPerGroup = 9

// bytesForDigits is the size of a group of fewer than nine digits.
var bytesForDigits = [digitsPerGroup + 1]int{0, 1, 1, 2, 2, 3, 3, 4, 4, 4}

// decimalSize returns the bytes of a DECIMAL(precision, scale).
func decimalSize(precision, scale int) int {
	whole := precision - scale
	return whole/digitsPerGroup*4 + bytesForDigits[whole%digitsPerGroup] +
		scale/digitsPerGroup*4 + bytesForDigits[scale%digitsPerGroup]
}

// appendDecimal prints a DECIMAL: no leading zeros but one before the point, all the digits behind it.
func appendDecimal(dst, b []byte, precision, scale int) ([]byte, error) {
	if precision <= 0 || scale > precision || len(b) < decimalSize(precision, scale) {
		return dst, malformed("DECIMAL(%d,%d) in %d bytes", precision, scale, len(b))
	}
	flip := byte(0)
	if b[0]&0x80 == 0 {
		flip = 0xff
		dst = append(dst, '-')
	}
	groups := decimalGroups{rest: b, flip: flip, sign: 0x80}
	start := len(dst)
	whole := precision - scale
	dst = groups.append(dst, whole%digitsPerGroup, start)
	for range whole / digitsPerGroup {
		dst = groups.append(dst, digitsPerGroup, start)
	}
	if len(dst) == start {
		dst = append(dst, '0')
	}
	if scale == 0 {
		return dst, nil
	}
	dst = append(dst, '.')
	for range scale / digitsPerGroup {
		dst = groups.append(dst, digitsPerGroup, -1)
	}
	return groups.append(dst, scale%digitsPerGroup, -1), nil
}

// decimalGroups takes the groups of a decimal one after the other.
type decimalGroups struct {
	rest []byte
	flip byte
	sign byte // flips the sign bit of the first byte only
}

// append prints the next group of n digits. Zeros that would be the first digit after start are left out; a negative
// start keeps them all.
func (g *decimalGroups) append(dst []byte, n, start int) []byte {
	value := uint64(0)
	size := bytesForDigits[n]
	for _, c := range g.rest[:size] {
		value = value<<8 | uint64(c^g.flip^g.sign)
		g.sign = 0
	}
	g.rest = g.rest[size:]
	if len(dst) == start {
		if value == 0 {
			return dst
		}
		return strconv.AppendUint(dst, value, 10)
	}
	if n == 0 {
		return dst
	}
	return appendPadded(dst, int(value), n)
}
