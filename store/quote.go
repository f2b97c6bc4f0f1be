package store

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// identifier quotes a name of a database, table, column or index.
func identifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// literal quotes a text for the sessions of this package: their character set is utf8mb4 and their sql_mode has neither
// NO_BACKSLASH_ESCAPES nor ANSI_QUOTES, so nothing but the quote, the backslash and NUL needs care.
func literal(s string) string {
	if strings.IndexByte(s, '\'') < 0 && strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, 0) < 0 {
		return "'" + s + "'"
	}
	return "'" + escaper.Replace(s) + "'"
}

var escaper = strings.NewReplacer(`'`, `''`, `\`, `\\`, "\x00", `\0`)

// binaryLiteral quotes bytes that are no text.
func binaryLiteral(s string) string {
	if s == "" {
		return "''"
	}
	return "X'" + hex.EncodeToString([]byte(s)) + "'"
}

// interval renders a duration for date arithmetic.
func interval(d time.Duration) string {
	return "INTERVAL " + strconv.FormatInt(max(d, 0).Microseconds(), 10) + " MICROSECOND"
}

// literals renders a list of texts.
func literals(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = literal(text)
	}
	return strings.Join(quoted, ",")
}
