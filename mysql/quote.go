package mysql

import (
	"encoding/hex"
	"strconv"
	"strings"
	"time"
)

// Identifier quotes a name of a database, table, column or index.
func Identifier(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }

// Literal quotes a text for the sessions of this package: their character set is utf8mb4 and their sql_mode has neither
// NO_BACKSLASH_ESCAPES nor ANSI_QUOTES, so nothing but the quote, the backslash and NUL needs care.
func Literal(s string) string {
	if strings.IndexByte(s, '\'') < 0 && strings.IndexByte(s, '\\') < 0 && strings.IndexByte(s, 0) < 0 {
		return "'" + s + "'"
	}
	return "'" + escaper.Replace(s) + "'"
}

var escaper = strings.NewReplacer(`'`, `''`, `\`, `\\`, "\x00", `\0`)

// Literals renders a list of texts, separated by commas.
func Literals(texts []string) string {
	quoted := make([]string, len(texts))
	for i, text := range texts {
		quoted[i] = Literal(text)
	}
	return strings.Join(quoted, ",")
}

// BinaryLiteral quotes bytes that are no text.
func BinaryLiteral(s string) string {
	if s == "" {
		return "''"
	}
	return "X'" + hex.EncodeToString([]byte(s)) + "'"
}

// Interval renders a duration for date arithmetic. A negative one counts as none.
func Interval(d time.Duration) string {
	return "INTERVAL " + strconv.FormatInt(max(d, 0).Microseconds(), 10) + " MICROSECOND"
}
