package lean

import (
	"encoding/binary"
	"unicode/utf16"
	"unicode/utf8"
)

// nextUCS2 decodes a character of two bytes. Surrogates are no characters.
func nextUCS2(b []byte) (rune, int) {
	if len(b) < 2 {
		return 0, 0
	}
	r := rune(binary.BigEndian.Uint16(b))
	if utf16.IsSurrogate(r) {
		return 0, 0
	}
	return r, 2
}

// nextUTF16 decodes a character of two or four bytes, the high one first.
func nextUTF16(b []byte) (rune, int) { return decodeUTF16(b, binary.BigEndian) }

// nextUTF16LE decodes a character of two or four bytes, the low one first.
func nextUTF16LE(b []byte) (rune, int) { return decodeUTF16(b, binary.LittleEndian) }

func decodeUTF16(b []byte, order binary.ByteOrder) (rune, int) {
	if len(b) < 2 {
		return 0, 0
	}
	r := rune(order.Uint16(b))
	if !utf16.IsSurrogate(r) {
		return r, 2
	}
	if len(b) < 4 {
		return 0, 0
	}
	if r = utf16.DecodeRune(r, rune(order.Uint16(b[2:]))); r == utf8.RuneError {
		return 0, 0
	}
	return r, 4
}

// nextUTF32 decodes a character of four bytes.
func nextUTF32(b []byte) (rune, int) {
	if len(b) < 4 {
		return 0, 0
	}
	n := binary.BigEndian.Uint32(b)
	if n > utf8.MaxRune || utf16.IsSurrogate(rune(n)) {
		return 0, 0
	}
	return rune(n), 4
}
