package assemble

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"example.com/outbox-relay/canal/lean"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// fill gives the columns that an insert's image leaves out (binlog_row_image is not FULL) the values that the table
// gives them. It returns *unmapped when a value is not known.
func (m *mapper) fill(ctx context.Context, mp *mapping, t outbox.Table, image lean.Image) error {
	for f := range numFields {
		if image[f].State != lean.Absent || mp.index[f] < 0 {
			continue
		}
		if mp.columns == nil {
			columns, err := m.read(ctx, t)
			if err != nil {
				return err
			}
			mp.columns = columns
		}
		value, ok := lean.Value{}, false
		for i := range mp.columns {
			if strings.EqualFold(mp.columns[i].Name, m.names[f]) {
				value, ok = valueOf(&mp.columns[i])
			}
		}
		if !ok || f == fieldID {
			return &unmapped{reason: words.MissedColumns, detail: fmt.Sprintf(
				"rows of %s leave out column %s, whose value can't be told: set binlog_row_image=FULL", t, m.names[f])}
		}
		image[f] = value
	}
	return nil
}

// valueOf returns what a row that doesn't name the column has in it; ok is false when that is not known.
func valueOf(c *mysql.Column) (v lean.Value, ok bool) {
	text, kind := c.Literal()
	switch {
	case kind == mysql.ComputedDefault:
		return lean.Value{}, false
	case kind == mysql.LiteralDefault:
		if n, err := strconv.ParseInt(text, 10, 64); err == nil && c.Integer() {
			return lean.Value{State: lean.Present, Kind: lean.Int, Int: n}, true
		}
		return lean.Value{State: lean.Present, Kind: lean.Bytes, Bytes: []byte(text)}, true
	case c.Nullable:
		return lean.Value{State: lean.Null}, true
	case c.Integer():
		return lean.Value{State: lean.Present, Kind: lean.Int}, true
	case c.Charset != "":
		return lean.Value{State: lean.Present, Kind: lean.Bytes, Bytes: []byte{}}, true
	}
	return zeroTime(c)
}

// zeroTime is what a time that must not be NULL gets where the SQL mode allows to leave it out.
func zeroTime(c *mysql.Column) (lean.Value, bool) {
	zero := ""
	switch c.Type {
	case "date":
		zero = "0000-00-00"
	case "datetime", "timestamp":
		zero = "0000-00-00 00:00:00"
		var digits int
		if _, err := fmt.Sscanf(c.FullType, c.Type+"(%d)", &digits); err == nil && digits > 0 && digits <= 6 {
			zero += "." + strings.Repeat("0", digits)
		}
	default:
		return lean.Value{}, false
	}
	return lean.Value{State: lean.Present, Kind: lean.Bytes, Bytes: []byte(zero)}, true
}
