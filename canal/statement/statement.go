// Package statement understands the statements of a binlog as far as transactions need it: what one does to the
// transaction around it, and which of our tables it may name. It is pure and no parser of SQL: what is not known for
// certain counts as more than it is.
package statement

import (
	"bytes"
	"strings"
)

// Kind is what a statement in the binlog means for the transaction around it.
type Kind uint8

// The kinds of statements.
const (
	Other Kind = iota // DDL and whatever is not known
	Write             // a row change logged as a statement
	Begin
	Commit
	Rollback
	Savepoint
	RollbackTo
	Release
	XAStart
	XAEnd
	XAPrepare
	XACommit
	XARollback
)

// Statement is a statement of the binlog, understood as far as assembling transactions needs it.
type Statement struct {
	Kind Kind
	// Name is the savepoint in lower case, since servers compare them without regard to case, or the XA transaction's id
	// as the server writes it.
	Name string
}

// Parse understands a statement. It never fails: what it does not know is Other.
func Parse(query []byte) Statement {
	words := bytes.TrimSpace(skipComments(query))
	// By far the most frequent ones.
	switch string(words) {
	case "BEGIN":
		return Statement{Kind: Begin}
	case "COMMIT":
		return Statement{Kind: Commit}
	}
	first, rest := nextWord(words)
	switch strings.ToUpper(first) {
	case "BEGIN", "START":
		return Statement{Kind: Begin}
	case "COMMIT":
		return Statement{Kind: Commit}
	case "ROLLBACK":
		return parseRollback(rest)
	case "SAVEPOINT":
		return Statement{Kind: Savepoint, Name: savepointName(rest)}
	case "RELEASE":
		_, rest = nextWord(rest) // SAVEPOINT
		return Statement{Kind: Release, Name: savepointName(rest)}
	case "XA":
		return parseXA(rest)
	case "INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "WITH", "CALL", "DO", "SELECT", "SET", "EXECUTE", "VALUES", "TABLE":
		return Statement{Kind: Write}
	}
	return Statement{Kind: Other}
}

// parseRollback reads what follows ROLLBACK: nothing, or [WORK] TO [SAVEPOINT] name.
func parseRollback(rest []byte) Statement {
	word, after := nextWord(rest)
	if strings.EqualFold(word, "WORK") {
		word, after = nextWord(after)
	}
	if !strings.EqualFold(word, "TO") {
		return Statement{Kind: Rollback}
	}
	if word, behind := nextWord(after); strings.EqualFold(word, "SAVEPOINT") && len(bytes.TrimSpace(behind)) > 0 {
		after = behind
	}
	return Statement{Kind: RollbackTo, Name: savepointName(after)}
}

// parseXA reads what follows XA. Both servers write the id in one form, X'..',X'..',n.
func parseXA(rest []byte) Statement {
	word, rest := nextWord(rest)
	s := Statement{Name: string(bytes.TrimSpace(rest))}
	switch strings.ToUpper(word) {
	case "START", "BEGIN":
		s.Kind = XAStart
	case "END":
		s.Kind = XAEnd
	case "PREPARE":
		s.Kind = XAPrepare
	case "COMMIT":
		s.Kind = XACommit
	case "ROLLBACK":
		s.Kind = XARollback
	}
	return s
}

// savepointName returns a savepoint's name without its quotes.
func savepointName(text []byte) string {
	name := string(bytes.TrimSpace(text))
	for _, q := range []string{"`", `"`} {
		if len(name) >= 2 && strings.HasPrefix(name, q) && strings.HasSuffix(name, q) {
			name = strings.ReplaceAll(name[1:len(name)-1], q+q, q)
			break
		}
	}
	return strings.ToLower(name)
}

// nextWord returns the letters at the head of the text, and returns what follows them without leading blanks.
func nextWord(text []byte) (string, []byte) {
	text = skipComments(text)
	end := 0
	for end < len(text) && identByte(text[end]) {
		end++
	}
	return string(text[:end]), skipComments(text[end:])
}

// skipComments passes over blanks and comments. A comment that the server executes stays.
func skipComments(text []byte) []byte {
	for {
		text = bytes.TrimLeft(text, " \t\r\n")
		switch {
		case bytes.HasPrefix(text, []byte("/*")) && !bytes.HasPrefix(text, []byte("/*!")) && !bytes.HasPrefix(text, []byte("/*M!")):
			end := bytes.Index(text[2:], []byte("*/"))
			if end < 0 {
				return nil
			}
			text = text[2+end+2:]
		case bytes.HasPrefix(text, []byte("#")), bytes.HasPrefix(text, []byte("-- ")), bytes.HasPrefix(text, []byte("--\n")):
			end := bytes.IndexByte(text, '\n')
			if end < 0 {
				return nil
			}
			text = text[end+1:]
		default:
			return text
		}
	}
}

// identByte reports whether a byte may be part of an unquoted name. Bytes of other charsets count as letters.
func identByte(b byte) bool {
	return b == '_' || b == '$' || b >= 0x80 || b >= '0' && b <= '9' || b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z'
}
