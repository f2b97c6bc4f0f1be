package lean

// ToUTF8 converts a text as a Plan does.
func ToUTF8(charset string, b []byte) ([]byte, error) {
	c, err := findCharset(charset)
	if err != nil || c == nil {
		return b, err
	}
	return c.appendUTF8(nil, b)
}

// JSONText prints a document in binary JSON as a Plan does.
func JSONText(b []byte) ([]byte, error) { return appendJSON(nil, b) }

// KnownCharset reports whether text of the charset can be decoded. The name is as in information_schema, in any case.
func KnownCharset(name string) bool {
	_, err := findCharset(name)
	return err == nil
}
