package assemble

import (
	"bytes"
	"strings"
)

// statementKind is what a statement in the binlog means for the transaction around it.
type statementKind uint8

const (
	stmtOther statementKind = iota // DDL and whatever is not known
	stmtWrite                      // a row change logged as a statement
	stmtBegin
	stmtCommit
	stmtRollback
	stmtSavepoint
	stmtRollbackTo
	stmtRelease
	stmtXAStart
	stmtXAEnd
	stmtXAPrepare
	stmtXACommit
	stmtXARollback
)

// statement is a statement of the binlog, understood as far as the assembler needs it.
type statement struct {
	kind statementKind
	// name is the savepoint in lower case, since servers compare them without regard to case, or the XA transaction's id
	// as the server writes it.
	name string
}

// parseStatement understands a statement.
func parseStatement(query []byte) statement {
	words := bytes.TrimSpace(skipComments(query))
	// By far the most frequent ones.
	switch string(words) {
	case "BEGIN":
		return statement{kind: stmtBegin}
	case "COMMIT":
		return statement{kind: stmtCommit}
	}
	first, rest := nextWord(words)
	switch strings.ToUpper(first) {
	case "BEGIN", "START":
		return statement{kind: stmtBegin}
	case "COMMIT":
		return statement{kind: stmtCommit}
	case "ROLLBACK":
		return parseRollback(rest)
	case "SAVEPOINT":
		return statement{kind: stmtSavepoint, name: savepointName(rest)}
	case "RELEASE":
		_, rest = nextWord(rest) // SAVEPOINT
		return statement{kind: stmtRelease, name: savepointName(rest)}
	case "XA":
		return parseXA(rest)
	case "INSERT", "REPLACE", "UPDATE", "DELETE", "LOAD", "WITH", "CALL", "DO", "SELECT", "SET", "EXECUTE", "VALUES", "TABLE":
		return statement{kind: stmtWrite}
	}
	return statement{kind: stmtOther}
}

// parseRollback reads what follows ROLLBACK: nothing, or [WORK] TO [SAVEPOINT] name.
func parseRollback(rest []byte) statement {
	word, after := nextWord(rest)
	if strings.EqualFold(word, "WORK") {
		word, after = nextWord(after)
	}
	if !strings.EqualFold(word, "TO") {
		return statement{kind: stmtRollback}
	}
	if word, behind := nextWord(after); strings.EqualFold(word, "SAVEPOINT") && len(bytes.TrimSpace(behind)) > 0 {
		after = behind
	}
	return statement{kind: stmtRollbackTo, name: savepointName(after)}
}

// parseXA reads what follows XA. Both servers write the id in one form, X'..',X'..',n.
func parseXA(rest []byte) statement {
	word, rest := nextWord(rest)
	s := statement{name: string(bytes.TrimSpace(rest))}
	switch strings.ToUpper(word) {
	case "START", "BEGIN":
		s.kind = stmtXAStart
	case "END":
		s.kind = stmtXAEnd
	case "PREPARE":
		s.kind = stmtXAPrepare
	case "COMMIT":
		s.kind = stmtXACommit
	case "ROLLBACK":
		s.kind = stmtXARollback
	}
	return s
}

// savepointName takes a savepoint's name out of its quotes.
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

// nextWord takes the letters at the head of the text, and returns what follows them without leading blanks.
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
