package lean

import (
	"strings"
	"sync"
	"unicode/utf8"
)

//go:generate go run ./internal/gentables -mysql root@tcp(127.0.0.1:3306)/ -mariadb root@tcp(127.0.0.1:3307)/

// charsetBinary is the charset of byte strings.
const charsetBinary = "binary"

// charset converts text to UTF-8 as the server does for a client that reads in utf8mb4. A code that the charset allows
// but gives no character becomes a question mark, as it does there; bytes that the server would not have stored are
// ErrMalformed.
//
// The tables were read from the servers (internal/gentables): golang.org/x/text/encoding follows the web browsers, which
// differ from MySQL in all charsets but a few.
type charset struct {
	name string
	// next decodes the first character of b, which is not empty. A size of 0 means malformed.
	next func(b []byte) (r rune, size int)
	// ascii says that a byte below 0x80 which starts a character is the ASCII character.
	ascii bool
}

// findCharset returns what converts from a charset, nil when the bytes are UTF-8 already or no text.
func findCharset(name string) (*charset, error) {
	name = strings.ToLower(name)
	switch name {
	case charsetBinary, "utf8mb4", "utf8mb3", "utf8":
		return nil, nil
	case "ucs2":
		return &charset{name: name, next: nextUCS2}, nil
	case "utf16":
		return &charset{name: name, next: nextUTF16}, nil
	case "utf16le":
		return &charset{name: name, next: nextUTF16LE}, nil
	case "utf32":
		return &charset{name: name, next: nextUTF32}, nil
	}
	if runes, ok := singleBytes[name]; ok {
		return singleByte(name, []rune(runes)), nil
	}
	tables, err := multiByteTables()
	if err != nil {
		return nil, err
	}
	if t, ok := tables[name]; ok {
		return &charset{name: name, next: t.next, ascii: true}, nil
	}
	return nil, unsupported("charset %q", name)
}

// appendUTF8 appends the text b, converted.
func (c *charset) appendUTF8(dst, b []byte) ([]byte, error) {
	for len(b) > 0 {
		if c.ascii && b[0] < utf8.RuneSelf {
			n := asciiPrefix(b)
			dst = append(dst, b[:n]...)
			b = b[n:]
			continue
		}
		r, size := c.next(b)
		if size == 0 {
			return dst, malformed("text that is no %s", c.name)
		}
		dst = utf8.AppendRune(dst, r)
		b = b[size:]
	}
	return dst, nil
}

// asciiPrefix returns how many bytes b begins with are ASCII.
func asciiPrefix(b []byte) int {
	for i, c := range b {
		if c >= utf8.RuneSelf {
			return i
		}
	}
	return len(b)
}

func singleByte(name string, runes []rune) *charset {
	ascii := true
	for i, r := range runes[:utf8.RuneSelf] {
		ascii = ascii && rune(i) == r
	}
	return &charset{name: name, ascii: ascii, next: func(b []byte) (rune, int) { return runes[b[0]], 1 }}
}

// multiByteTables unpacks the tables at the first use.
var multiByteTables = sync.OnceValues(unpackMultiByte)
