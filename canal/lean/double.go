package lean

import (
	"bytes"
	"math"
	"strconv"
)

// appendDouble prints a number in a JSON document as the server does (my_gcvt): the shortest digits that read back as
// the same number, in plain notation while the point is among them or within 15 digits of the first one, else with an
// exponent that has neither plus nor leading zeros; and with a point, so that it reads back as a double. It fails for
// what JSON does not have.
func appendDouble(dst []byte, f float64) ([]byte, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return dst, false
	}
	var buf [32]byte
	text := strconv.AppendFloat(buf[:0], f, 'e', -1, 64)
	if text[0] == '-' {
		dst = append(dst, '-')
		text = text[1:]
	}
	mantissa, exponent, _ := bytes.Cut(text, []byte("e"))
	exp, err := strconv.Atoi(string(exponent))
	if err != nil {
		return dst, false
	}
	digits := append([]byte{mantissa[0]}, mantissa[min(2, len(mantissa)):]...)
	point := exp + 1 // how many digits are before the point
	const farthest = 15
	switch {
	case point > farthest && point >= len(digits) || point <= -farthest:
		dst = append(dst, mantissa...)
		return strconv.AppendInt(append(dst, 'e'), int64(exp), 10), true
	case point <= 0:
		dst = append(dst, "0."...)
		for range -point {
			dst = append(dst, '0')
		}
		return append(dst, digits...), true
	case point >= len(digits):
		dst = append(dst, digits...)
		for range point - len(digits) {
			dst = append(dst, '0')
		}
		return append(dst, ".0"...), true
	}
	dst = append(append(dst, digits[:point]...), '.')
	return append(dst, digits[point:]...), true
}
