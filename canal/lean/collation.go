package lean

// CollationCharset names the charset of a collation id.
func CollationCharset(id uint64) (string, bool) {
	return "", false
}
