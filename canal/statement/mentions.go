package statement

import (
	"bytes"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Mention says which of our names a statement contains.
type Mention struct {
	// Table: a local message table, qualified or of the statement's own database.
	Table bool
	// Name: a name that some local message table has, or one of their databases itself. More than Table, for statements
	// that may change what a name means.
	Name bool
}

// Mentions looks for our tables' names in a statement. It is no parser: every name outside of strings and comments
// counts. So it finds too much rather than too little.
func Mentions(p mysql.Patterns, query []byte, database string) Mention {
	var (
		m       Mention
		t       = tokens{text: query}
		before  string // the name before a dot
		dotted  bool
		current string
		whole   bool // current is one of their databases, if no table of it follows
	)
	for {
		token, kind := t.next()
		m.Name = m.Name || whole && kind != tokenDot
		whole = false
		switch kind {
		case tokenEnd:
			return m
		case tokenDot:
			before, dotted = current, true
			continue
		case tokenOther:
			current, dotted = "", false
			continue
		case tokenName:
		}
		current = token
		m.Name = m.Name || p.MatchName(token)
		whole = p.MatchDatabase(token)
		owner := database
		if dotted {
			owner = before
		}
		dotted = false
		m.Table = m.Table || p.Match(outbox.Table{Database: owner, Name: token})
		if m.Table && m.Name {
			return m
		}
	}
}

// tokenKind is what a part of a statement is.
type tokenKind uint8

const (
	tokenEnd tokenKind = iota
	tokenName
	tokenDot
	tokenOther
)

// tokens cuts a statement into names and the rest.
type tokens struct {
	text []byte
}

func (t *tokens) next() (string, tokenKind) {
	t.text = skipComments(t.text)
	if len(t.text) == 0 {
		return "", tokenEnd
	}
	switch b := t.text[0]; {
	case b == '`' || b == '"':
		return string(t.quoted(b)), tokenName
	case b == '\'':
		t.quoted(b)
		return "", tokenOther
	case b == '.':
		t.text = t.text[1:]
		return "", tokenDot
	case identByte(b):
		end := 1
		for end < len(t.text) && identByte(t.text[end]) {
			end++
		}
		name := string(t.text[:end])
		t.text = t.text[end:]
		return name, tokenName
	}
	t.text = t.text[1:]
	return "", tokenOther
}

// quoted reads a quoted part. Quotes are doubled inside; in strings they may also be escaped.
func (t *tokens) quoted(q byte) []byte {
	body := t.text[1:]
	for i := 0; i < len(body); i++ {
		switch {
		case body[i] == '\\' && q != '`':
			i++
		case body[i] != q:
		case i+1 < len(body) && body[i+1] == q:
			i++
		default:
			t.text = body[i+1:]
			return bytes.ReplaceAll(body[:i], []byte{q, q}, []byte{q})
		}
	}
	t.text = nil
	return body
}
