package router

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// keyRule is where a record's key comes from. The zero value is the row's key column.
type keyRule struct {
	from    keySource
	pointer []token
}

type keySource uint8

const (
	fromColumn keySource = iota
	fromMsgID
	fromID
	fromPointer
)

// token is one step of a JSON pointer: a member's name, or an element's index where the value is an array.
type token struct {
	name  []byte
	index int // -1 when the name is no index
}

// KeyColumn tells the reader of rows which column to load as Row.Key when the key setting names a column; ok is false
// when the setting needs none but the one that is loaded anyway.
func KeyColumn(key string) (column string, ok bool) {
	switch {
	case key == "", strings.HasPrefix(key, "/"), strings.EqualFold(key, words.ColumnMsgID), strings.EqualFold(key, words.ColumnID):
		return "", false
	}
	return key, true
}

// KeyInContent reports whether some key is found by a JSON pointer into the content.
func (r *Router) KeyInContent() bool {
	inContent := func(in route) bool { return in.key.from == fromPointer }
	return r.key.from == fromPointer || slices.ContainsFunc(r.routes, inContent)
}

func keyColumn(cfg Config) string {
	if cfg.KeyColumn != "" {
		return cfg.KeyColumn
	}
	if column, ok := KeyColumn(cfg.Key); ok {
		return column
	}
	return outbox.DefaultColumns().Key
}

func parseKey(key, column string) (keyRule, error) {
	switch {
	case key == "", strings.EqualFold(key, column):
		return keyRule{}, nil
	case strings.HasPrefix(key, "/"):
		pointer, err := parsePointer(key)
		return keyRule{from: fromPointer, pointer: pointer}, err
	case strings.EqualFold(key, words.ColumnMsgID):
		return keyRule{from: fromMsgID}, nil
	case strings.EqualFold(key, words.ColumnID):
		return keyRule{from: fromID}, nil
	}
	return keyRule{}, fmt.Errorf("%q is neither a JSON pointer (/%s) nor the column that rows carry as their key (%s)", key, key, column)
}

// parsePointer reads a pointer of RFC 6901. Go's standard library has none.
func parsePointer(pointer string) ([]token, error) {
	parts := strings.Split(pointer, "/")[1:]
	tokens := make([]token, len(parts))
	for i, part := range parts {
		name, err := unescapeToken(part)
		if err != nil {
			return nil, fmt.Errorf("JSON pointer %q: %w", pointer, err)
		}
		tokens[i] = token{name: []byte(name), index: arrayIndex(part)}
	}
	return tokens, nil
}

func unescapeToken(part string) (string, error) {
	for i := strings.IndexByte(part, '~'); i >= 0; {
		if i+1 >= len(part) || part[i+1] != '0' && part[i+1] != '1' {
			return "", fmt.Errorf("%q: a tilde is written ~0 and a slash ~1", part)
		}
		next := strings.IndexByte(part[i+1:], '~')
		if next < 0 {
			break
		}
		i += 1 + next
	}
	return strings.NewReplacer("~1", "/", "~0", "~").Replace(part), nil
}

func arrayIndex(part string) int {
	if part == "" || len(part) > 1 && part[0] == '0' {
		return -1
	}
	index, err := strconv.ParseUint(part, 10, 31)
	if err != nil {
		return -1
	}
	return int(index)
}

// Key returns the key of the record that the row makes, or would make were it not refused: the msg_id when it has none.
func (r *Router) Key(row *outbox.Row) []byte {
	_, rule := r.match(row.Topic)
	return rule.find(row, []byte(row.MsgID))
}

// find returns the row's key. What finds nothing falls back: to the key column, and from there to msg_id. An empty
// value counts as nothing, or all rows without a key would wait for one another in one partition.
func (k keyRule) find(row *outbox.Row, msgID []byte) []byte {
	switch k.from {
	case fromMsgID:
		return msgID
	case fromID:
		return strconv.AppendUint(nil, row.ID, 10)
	case fromPointer:
		if key := lookup(row.Content, k.pointer); len(key) > 0 {
			return key
		}
	case fromColumn:
	}
	if len(row.Key) > 0 {
		return row.Key
	}
	return msgID
}

// lookup returns the text of the value that a pointer leads to: a string's characters, a number's literal, true or
// false. It is nil for null, objects, arrays, missing values, and content that is no JSON up to there.
func lookup(content []byte, pointer []token) []byte {
	s := scanner{data: content}
	for _, step := range pointer {
		if !s.enter(step) {
			return nil
		}
	}
	raw, ok := s.value()
	if !ok {
		return nil
	}
	switch raw[0] {
	case '"':
		return unquote(raw)
	case '{', '[', 'n':
		return nil
	}
	return raw
}

// unquote returns the characters of a JSON string. Without escapes they are the bytes between the quotes.
func unquote(raw []byte) []byte {
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return nil
	}
	return []byte(text)
}
