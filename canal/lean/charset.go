package lean

const charsetBinary = "binary"

// charset converts text to UTF-8.
type charset struct{}

func (c *charset) appendUTF8(dst, b []byte) ([]byte, error) { return append(dst, b...), nil }

func findCharset(name string) (*charset, error) {
	switch name {
	case charsetBinary, "utf8mb4", "utf8mb3", "utf8":
		return nil, nil
	}
	return nil, unsupported("charset %s", name)
}
