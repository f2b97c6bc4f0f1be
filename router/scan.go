package router

import (
	"bytes"
	"encoding/json"
)

// scanner walks over JSON text without building anything, to find one value in a body whose rest nobody wants.
// encoding/json would decode, and allocate for, every value before it. It is as strict as it needs to be: values are
// delimited by the grammar, but scalars that are passed over are not read.
type scanner struct {
	data []byte
	pos  int
}

// enter goes to the member or element that step names, of the object or array at the scanner's place. The first of
// several members with the same name counts.
func (s *scanner) enter(step token) bool {
	switch s.peek() {
	case '{':
		return s.enterObject(step.name)
	case '[':
		return s.enterArray(step.index)
	}
	return false
}

func (s *scanner) enterObject(name []byte) bool {
	s.pos++
	for {
		if s.peek() != '"' {
			return false
		}
		key, ok := s.str()
		if !ok || s.peek() != ':' {
			return false
		}
		s.pos++
		if bytes.Equal(unquote(key), name) {
			return true
		}
		if _, ok := s.value(); !ok || s.peek() != ',' {
			return false
		}
		s.pos++
	}
}

func (s *scanner) enterArray(index int) bool {
	if index < 0 {
		return false
	}
	s.pos++
	for range index {
		if _, ok := s.value(); !ok || s.peek() != ',' {
			return false
		}
		s.pos++
	}
	return s.peek() != ']' && s.peek() != 0
}

// peek skips white space and returns the next byte, 0 at the end.
func (s *scanner) peek() byte {
	for s.pos < len(s.data) {
		switch c := s.data[s.pos]; c {
		case ' ', '\t', '\r', '\n':
			s.pos++
		default:
			return c
		}
	}
	return 0
}

// value passes over one value and returns its text.
func (s *scanner) value() ([]byte, bool) {
	switch s.peek() {
	case '"':
		return s.str()
	case '{', '[':
		return s.composite()
	}
	return s.literal()
}

func (s *scanner) str() ([]byte, bool) {
	start := s.pos
	for i := start + 1; i < len(s.data); i++ {
		switch s.data[i] {
		case '\\':
			i++
		case '"':
			s.pos = i + 1
			return s.data[start:s.pos], true
		}
	}
	return nil, false
}

// composite passes over an object or array by counting brackets, which strings can't disturb.
func (s *scanner) composite() ([]byte, bool) {
	start, depth := s.pos, 0
	for s.pos < len(s.data) {
		switch s.data[s.pos] {
		case '"':
			if _, ok := s.str(); !ok {
				return nil, false
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
		s.pos++
		if depth == 0 {
			return s.data[start:s.pos], true
		}
	}
	return nil, false
}

// literal passes over a number, true, false or null. It is checked, because it may become a key.
func (s *scanner) literal() ([]byte, bool) {
	start := s.pos
	for s.pos < len(s.data) && !bytes.ContainsRune([]byte(" \t\r\n,]}:"), rune(s.data[s.pos])) {
		s.pos++
	}
	raw := s.data[start:s.pos]
	return raw, len(raw) > 0 && json.Valid(raw)
}
