package lean_test

import (
	"errors"
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/canal/lean"
)

// FuzzDecode feeds both decoders with a TABLE_MAP and a rows event. Lean never panics, walks what the stock decoder walks,
// and where both find a value it is the same.
func FuzzDecode(f *testing.F) {
	heads := map[bool][]byte{false: formatDescription(f, "mysql"), true: formatDescription(f, "mariadb")}
	for _, r := range recordings(f) {
		for i, event := range r.Events {
			if i > 0 && event[4] != byte(replication.TABLE_MAP_EVENT) && r.Events[i-1][4] == byte(replication.TABLE_MAP_EVENT) {
				f.Add(r.Flavor == "mariadb", event[4], body(r.Events[i-1]), body(event))
			}
		}
	}
	f.Fuzz(func(t *testing.T, mariadb bool, tp byte, tableMap, rows []byte) {
		if int(tp) > len(heads[mariadb])-100 || tp == 0 {
			return // go-mysql looks for the type in the head
		}
		parser := replication.NewBinlogParser()
		flavor := "mysql"
		if mariadb {
			flavor = "mariadb"
		}
		parser.SetFlavor(flavor)
		parser.SetRowsEventDecodeFunc(func(e *replication.RowsEvent, data []byte) error {
			compareDecoders(t, e, data)
			return nil
		})
		if _, err := parser.Parse(heads[mariadb]); err != nil {
			t.Fatal(err)
		}
		if parseTableMap(parser, rawEvent(replication.TABLE_MAP_EVENT, tableMap)) != nil || !rowsEvent(replication.EventType(tp)) {
			return
		}
		_, _ = parser.Parse(rawEvent(replication.EventType(tp), rows))
	})
}

func body(event []byte) []byte {
	return event[replication.EventHeaderSize : len(event)-replication.BinlogChecksumLength]
}

// parseTableMap lets go-mysql panic where it does.
func parseTableMap(parser *replication.BinlogParser, event []byte) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = errors.New("panic")
		}
	}()
	_, err = parser.Parse(event)
	return err
}

func rowsEvent(tp replication.EventType) bool {
	switch tp { //nolint:exhaustive // most are no rows
	case replication.WRITE_ROWS_EVENTv1, replication.WRITE_ROWS_EVENTv2, replication.UPDATE_ROWS_EVENTv1, replication.UPDATE_ROWS_EVENTv2,
		replication.DELETE_ROWS_EVENTv1, replication.DELETE_ROWS_EVENTv2, replication.PARTIAL_UPDATE_ROWS_EVENT:
		return true
	}
	return false // the stock decoder would allocate what a compressed event claims to hold
}

func compareDecoders(t *testing.T, e *replication.RowsEvent, data []byte) {
	pos, err := lean.Header(e, data)
	if err != nil {
		return
	}
	// Every column that can be wanted.
	var columns []lean.Column
	for i := range e.Table.ColumnType {
		c := lean.Column{Index: i, Charset: "utf8mb4", Unsigned: i%2 == 0}
		if _, err := lean.NewPlan(e.Table, []lean.Column{c}); err == nil {
			columns = append(columns, c)
		}
	}
	if _, err := lean.NewPlan(e.Table, nil); err != nil {
		return
	}
	if !hasColumns(e.ColumnBitmap1, e.ColumnCount) && !hasColumns(e.ColumnBitmap2, e.ColumnCount) {
		return // the stock decoder would never end
	}
	walked := decode(replication.WRITE_ROWS_EVENTv2, e, data, nil)
	if walked.stockErr == nil && walked.leanErr != nil && !errors.Is(walked.leanErr, lean.ErrUnsupported) {
		t.Fatalf("the stock decoder walks it, lean does not: %v", walked.leanErr)
	}
	full := decode(replication.WRITE_ROWS_EVENTv2, e, data, columns)
	if full.leanErr != nil || full.stockErr != nil {
		return // a value that is broken: the stock decoder prints it all the same, or the other way round
	}
	if err := full.agree(columns); err != nil {
		t.Fatalf("position %d: %v", pos, err)
	}
}

func hasColumns(bitmap []byte, columns uint64) bool {
	for i := range min(columns, uint64(8*len(bitmap))) {
		if bitmap[i/8]&(1<<(i%8)) != 0 {
			return true
		}
	}
	return false
}

// FuzzJSON prints documents: no panic, no endless text.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		object, "", "\x02\x00\x00\x04\x00", "\x04\x01", "\x0c\x01x", "\x0b\x00\x00\x00\x00\x00\x00\xf0\x3f", "\x0f\xf6\x04\x03\x02\x7e\xcd",
		"\x0f\x0b\x08\xff\xff\xff\xff\xff\xff\xff\xff", "\x01\x00\x00\x00\x00\x08\x00\x00\x00", "\x03\x01\x00\x00\x00\x0d\x00\x00\x00\x07\xff\xff\xff\xff",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := lean.JSONText(b)
		if err == nil && len(got) > 20*len(b)+500 {
			t.Fatalf("%d bytes print %d", len(b), len(got))
		}
	})
}
