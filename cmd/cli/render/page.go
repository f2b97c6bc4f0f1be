package render

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
	"unicode"
)

// Page gathers the text of a result: lines, aligned fields and tables, in the order of the calls.
type Page struct {
	out   bytes.Buffer
	table *tabwriter.Writer // open while rows of one block come
}

// Line adds a line of its own.
func (p *Page) Line(format string, args ...any) {
	p.flush()
	p.out.WriteString(clean(fmt.Sprintf(format, args...), true) + "\n")
}

// Blank separates what follows, unless it is the first.
func (p *Page) Blank() {
	p.flush()
	if p.out.Len() > 0 {
		p.out.WriteString("\n")
	}
}

// Field adds a name with its value; fields that follow each other are aligned. An empty value is left out.
func (p *Page) Field(name, format string, args ...any) {
	if value := fmt.Sprintf(format, args...); value != "" {
		p.row(name, value)
	}
}

// Header begins a table.
func (p *Page) Header(names ...string) {
	p.flush()
	p.row(names...)
}

// Row adds a row to the table.
func (p *Page) Row(cells ...string) { p.row(cells...) }

func (p *Page) row(cells ...string) {
	if p.table == nil {
		p.table = tabwriter.NewWriter(&p.out, 0, 0, 2, ' ', 0)
	}
	cleaned := make([]string, len(cells))
	for i, cell := range cells {
		cleaned[i] = clean(cell, false)
		if cell == "" {
			cleaned[i] = "-"
		}
	}
	_, _ = fmt.Fprintln(p.table, strings.Join(cleaned, "\t")) // a buffer takes everything
}

func (p *Page) flush() {
	if p.table != nil {
		_ = p.table.Flush() // a buffer takes everything
		p.table = nil
	}
}

func (p *Page) bytes() []byte {
	p.flush()
	return p.out.Bytes()
}

// clean shows control characters as what they are, so that they neither break the layout nor reach the terminal.
func clean(text string, lines bool) string {
	harmless := func(r rune) bool {
		return r == '\n' && lines || r != unicode.ReplacementChar && !unicode.IsControl(r) && !unicode.Is(unicode.Bidi_Control, r)
	}
	if strings.IndexFunc(text, func(r rune) bool { return !harmless(r) }) < 0 {
		return text
	}
	var out strings.Builder
	for _, r := range text {
		switch {
		case harmless(r):
			out.WriteRune(r)
		case r == '\n':
			out.WriteString("; ")
		case r == '\t':
			out.WriteString(" ")
		default:
			out.WriteString(strings.Trim(fmt.Sprintf("%+q", r), "'"))
		}
	}
	return out.String()
}
