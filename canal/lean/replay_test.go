package lean_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/canal/lean"
)

// recording is a piece of a binlog with what it says, as far as the server agreed: the server tests make them (-record).
type recording struct {
	Flavor  string
	Columns []lean.Column
	// Events are a FORMAT_DESCRIPTION, then TABLE_MAP and rows events.
	Events [][]byte
	// Rows are the changes as row.String prints them.
	Rows []string
}

// image is a copied lean.Image, with what the stock decoder made of the same columns.
type image struct {
	lean  lean.Image
	stock []any
	gone  []int // the columns that the stock decoder says the image has not
}

// row is one change. An image is nil where the event has none.
type row struct{ before, after *image }

// String prints the values, quoted, NULL where they are, and - where the image has none.
func (r row) String() string {
	var b strings.Builder
	for _, i := range []*image{r.before, r.after} {
		if i == nil {
			b.WriteString(" none")
			continue
		}
		b.WriteString(" [")
		for _, v := range i.lean {
			b.WriteString(" " + [...]string{"-", "NULL", strconv.QuoteToASCII(string(text(v)))}[v.State])
		}
		b.WriteString(" ]")
	}
	return b.String()[1:]
}

// decoded is a rows event seen by both decoders.
type decoded struct {
	table    *replication.TableMapEvent
	rows     []row
	leanErr  error // of the header, the plan or the rows
	stockErr error
}

// replay parses events as a BinlogSyncer does and hands each rows event to both decoders.
func replay(flavor string, events [][]byte, columns []lean.Column, visit func(decoded) error) error {
	parser := replication.NewBinlogParser()
	parser.SetFlavor(flavor)
	parser.SetTimestampStringLocation(time.UTC)
	parser.SetRenderJSONAsMySQLText(true)
	var errs []error // the parser would wrap them in the whole event
	var tp replication.EventType
	parser.SetRowsEventDecodeFunc(func(e *replication.RowsEvent, data []byte) error {
		errs = append(errs, visit(decode(tp, e, data, columns)))
		return nil
	})
	for _, event := range events {
		tp = typeOf(event)
		if _, err := parser.Parse(event); err != nil {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

// typeOf reads the type in an event's header.
func typeOf(event []byte) replication.EventType { return replication.EventType(event[4]) }

// decode runs both decoders over one event.
func decode(tp replication.EventType, e *replication.RowsEvent, data []byte, columns []lean.Column) (d decoded) {
	pos, err := lean.Header(e, data)
	if err != nil {
		d.leanErr, d.stockErr = err, err
		return d
	}
	d.table = e.Table
	// First, since it fails where the other would ask for gigabytes.
	plan, err := lean.NewPlan(e.Table, columns)
	begin, rows := pos, data
	if err == nil {
		rows, begin, err = lean.Rows(tp, data, pos)
	}
	if err == nil {
		err = plan.Decode(e, rows, begin, func(before, after lean.Image) error {
			d.rows = append(d.rows, row{copyImage(before), copyImage(after)})
			return nil
		})
	}
	d.leanErr = err
	if d.stockErr = stockDecode(e, pos, data); d.stockErr == nil {
		d.attach(e, columns)
	}
	return d
}

// stockDecode keeps a panic of the stock decoder, which it catches in some places only, from ending the test, and the
// decoder from reading what lies behind the event.
func stockDecode(e *replication.RowsEvent, pos int, data []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return e.DecodeData(pos, slices.Clip(data))
}

// attach sets what the stock decoder says beside what lean says.
func (d *decoded) attach(e *replication.RowsEvent, columns []lean.Column) {
	var images []*image
	for _, r := range d.rows {
		for _, i := range []*image{r.before, r.after} {
			if i != nil {
				images = append(images, i)
			}
		}
	}
	for n := range min(len(images), len(e.Rows)) {
		images[n].gone = e.SkippedColumns[n]
		for _, c := range columns {
			if c.Index < 0 {
				images[n].stock = append(images[n].stock, nil)
				continue
			}
			images[n].stock = append(images[n].stock, e.Rows[n][c.Index])
		}
	}
	if len(images) != len(e.Rows) && d.leanErr == nil {
		d.leanErr = fmt.Errorf("%d images, the stock decoder has %d", len(images), len(e.Rows))
	}
}

func copyImage(i lean.Image) *image {
	if i == nil {
		return nil
	}
	return &image{lean: slices.Clone(i)}
}

// text prints a value as a SELECT does; nil for NULL and for a column that is not there.
func text(v lean.Value) []byte {
	switch {
	case v.State != lean.Present:
		return nil
	case v.Kind == lean.Int:
		return strconv.AppendInt(nil, v.Int, 10)
	case v.Kind == lean.Uint:
		return strconv.AppendUint(nil, v.Uint, 10)
	}
	return v.Bytes
}

// agree compares an event's rows by both decoders.
func (d *decoded) agree(columns []lean.Column) error {
	for n, r := range d.rows {
		for _, i := range []*image{r.before, r.after} {
			if i == nil {
				continue
			}
			if err := i.agree(d.table, columns); err != nil {
				return fmt.Errorf("row %d: %w", n, err)
			}
		}
	}
	return nil
}

func (i *image) agree(table *replication.TableMapEvent, columns []lean.Column) error {
	unsigned, collations := table.UnsignedMap(), table.CollationMap()
	if slices.Contains(table.ColumnType, mysql.MYSQL_TYPE_VECTOR) {
		collations = nil // shifted
	}
	for n, c := range columns {
		v := i.lean[n]
		if c.Index < 0 || slices.Contains(i.gone, c.Index) {
			if v.State != lean.Absent {
				return fmt.Errorf("column %d is absent, lean has %v", c.Index, v)
			}
			continue
		}
		if i.stock[n] == nil {
			// NULL, or a column of the type NULL, which has no bytes.
			if v.State != lean.Null {
				return fmt.Errorf("column %d is NULL, lean has %v", c.Index, v)
			}
			continue
		}
		_, told := unsigned[c.Index]
		want := stockText(i.stock[n], table.ColumnType[c.Index], !told && c.Unsigned)
		charset, ok := lean.CollationCharset(collations[c.Index])
		if !ok {
			charset = c.Charset
		}
		if c.DataType == "binary" {
			charset = c.DataType
		}
		if err := sameText(table.ColumnType[c.Index], charset, text(v), want); err != nil {
			return fmt.Errorf("column %d of type %d: %w", c.Index, table.ColumnType[c.Index], err)
		}
	}
	return nil
}

// stockText prints what the stock decoder returns.
func stockText(v any, tp byte, unsigned bool) string {
	switch n := v.(type) {
	case []byte:
		return string(n)
	case int8:
		if unsigned {
			return fmt.Sprint(uint8(n))
		}
	case int16:
		if unsigned {
			return fmt.Sprint(uint16(n))
		}
	case int32:
		if unsigned && tp == mysql.MYSQL_TYPE_INT24 { // sign extended
			return fmt.Sprint(n & 0xffffff)
		}
		if unsigned {
			return fmt.Sprint(uint32(n))
		}
	case int64:
		if unsigned {
			return fmt.Sprint(uint64(n))
		}
	}
	return fmt.Sprint(v)
}

// sameText compares lean's text with the stock decoder's, allowing for what the latter does otherwise than the server.
func sameText(tp byte, charset string, got []byte, want string) error {
	same := string(got) == want
	switch tp {
	case mysql.MYSQL_TYPE_JSON:
		same = same || sameJSON(got, want)
	case mysql.MYSQL_TYPE_TIME2: // no fraction when it is zero
		plain, zeros, _ := strings.Cut(string(got), ".")
		same = same || plain == want && strings.Trim(zeros, "0") == "" || strings.TrimPrefix(plain, "-") == want
	case mysql.MYSQL_TYPE_STRING:
		same = same || charset == "binary" && string(bytes.TrimRight(got, "\x00")) == strings.TrimRight(want, "\x00")
	}
	if !same && !slices.Contains([]string{"", "binary", "utf8mb4", "utf8mb3"}, charset) {
		return nil // in its own charset: the server tests compare these
	}
	if !same {
		return fmt.Errorf("%q, the stock decoder has %q", got, want)
	}
	return nil
}

// sameJSON compares documents by content.
func sameJSON(a []byte, b string) bool {
	var x, y any
	if errors.Join(json.Unmarshal(a, &x), json.Unmarshal([]byte(b), &y)) != nil {
		return false
	}
	return equalJSON(x, y)
}

func equalJSON(x, y any) bool {
	switch x := x.(type) {
	case []any:
		y, ok := y.([]any)
		return ok && slices.EqualFunc(x, y, equalJSON)
	case map[string]any:
		y, ok := y.(map[string]any)
		return ok && maps.EqualFunc(x, y, equalJSON)
	case string:
		y, ok := y.(string)
		return ok && (x == y || strings.TrimRight(x, ".0") == strings.TrimRight(y, ".0") || // a TIME of zero
			strings.ReplaceAll(x, "\n", "") == y) // base64 in lines
	}
	return x == y
}
