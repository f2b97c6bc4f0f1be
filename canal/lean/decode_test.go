package lean_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/lean"
)

// small is a table of an INT, a VARCHAR(20) and a TINYINT.
var small = []column{{tp: mysql.MYSQL_TYPE_LONG}, {mysql.MYSQL_TYPE_VARCHAR, []byte{80, 0}}, {tp: mysql.MYSQL_TYPE_TINY}}

var smallWanted = []lean.Column{{Index: 2, Unsigned: true}, {Index: 1, Charset: "utf8mb4"}, {Index: -1}, {Index: 1, Charset: "latin1"}}

func TestStatesAndKinds(t *testing.T) {
	t.Parallel()
	p := parse(t, replication.UPDATE_ROWS_EVENTv2, tableMap(small), rows(3, []byte{0b001, 0b110},
		[]byte("\x00\x01\x00\x00\x00"+"\x00\x02\xc3\xa9\xff"+"\x00\x02\x00\x00\x00"+"\x01\x07")))
	plan := p.plan(t, smallWanted...)
	require.Equal(t, []lean.Kind{lean.Uint, lean.Bytes, lean.Bytes, lean.Bytes}, plan.Kinds())
	var got []lean.Image
	require.NoError(t, plan.Decode(p.event, p.data, p.pos, func(before, after lean.Image) error {
		got = append(got, cloned(before), cloned(after))
		return nil
	}))
	absent, null := lean.Value{}, lean.Value{State: lean.Null}
	number := func(n uint64) lean.Value { return lean.Value{State: lean.Present, Kind: lean.Uint, Uint: n} }
	text := func(s string) lean.Value { return lean.Value{State: lean.Present, Bytes: []byte(s)} }
	require.Equal(t, []lean.Image{
		{{Kind: lean.Uint}, absent, absent, absent},
		{number(255), text("\xc3\xa9"), absent, text("Ã©")},
		{{Kind: lean.Uint}, absent, absent, absent},
		{number(7), null, absent, null},
	}, got)
}

// cloned copies an image, which is good during the visit only.
func cloned(i lean.Image) lean.Image { return append(lean.Image(nil), i...) }

func TestInsertsHaveNoBeforeAndDeletesNoAfter(t *testing.T) {
	t.Parallel()
	for tp, insert := range map[replication.EventType]bool{replication.WRITE_ROWS_EVENTv2: true, replication.DELETE_ROWS_EVENTv2: false} {
		p := parse(t, tp, tableMap(small), rows(3, []byte{0b111}, []byte("\x00\x01\x00\x00\x00\x01a\x05")))
		require.NoError(t, p.plan(t, smallWanted...).Decode(p.event, p.data, p.pos, func(before, after lean.Image) error {
			require.Equal(t, insert, before == nil)
			require.Equal(t, insert, after != nil)
			return nil
		}))
	}
}

// TestBytesAreCopies: neither the event nor another value may change when one is changed, and a value may be appended to.
func TestBytesAreCopies(t *testing.T) {
	t.Parallel()
	p := parse(t, replication.WRITE_ROWS_EVENTv2, tableMap(small), rows(3, []byte{0b111}, []byte("\x00\x01\x00\x00\x00\x03abc\x05\x00\x01\x00\x00\x00\x00\x05")))
	before := bytes.Clone(p.data)
	var kept [][]byte
	require.NoError(t, p.plan(t, smallWanted...).Decode(p.event, p.data, p.pos, func(_, after lean.Image) error {
		kept = append(kept, after[1].Bytes, after[3].Bytes)
		return nil
	}))
	_ = append(kept[0], "overwritten"...)
	kept[0][0] = 'x'
	require.Equal(t, before, p.data)
	clear(p.data)
	require.Equal(t, "xbc", string(kept[0]))
	require.Equal(t, "abc", string(kept[1]))
	require.Equal(t, []byte{}, kept[2], "empty, but not nil")
}

func TestDecodeSomeShowsNumbersFirst(t *testing.T) {
	t.Parallel()
	p := parse(t, replication.WRITE_ROWS_EVENTv2, tableMap(small), rows(3, []byte{0b111}, []byte("\x00\x01\x00\x00\x00\x01a\x05\x00\x01\x00\x00\x00\x01b\x06")))
	plan := p.plan(t, smallWanted...)
	var asked []uint64
	var visited []string
	keep := func(before, after lean.Image) bool {
		require.Nil(t, before)
		require.Equal(t, lean.Present, after[1].State)
		require.Nil(t, after[1].Bytes)
		asked = append(asked, after[0].Uint)
		return after[0].Uint == 6
	}
	require.NoError(t, plan.DecodeSome(p.event, p.data, p.pos, keep, func(_, after lean.Image) error {
		visited = append(visited, string(after[1].Bytes))
		return nil
	}))
	require.Equal(t, []uint64{5, 6}, asked)
	require.Equal(t, []string{"b"}, visited)
}

func TestVisitorsErrorStopsTheWalk(t *testing.T) {
	t.Parallel()
	p := parse(t, replication.WRITE_ROWS_EVENTv2, tableMap(small), rows(3, []byte{0b111}, []byte("\x00\x01\x00\x00\x00\x01a\x05\x00\x01\x00\x00\x00\x01b\x06")))
	full, calls := errors.New("full"), 0
	require.ErrorIs(t, p.plan(t).Decode(p.event, p.data, p.pos, func(_, _ lean.Image) error { calls++; return full }), full)
	require.Equal(t, 1, calls)
}

// TestOneAllocationPerImage: what a row costs on top of the event's share.
func TestOneAllocationPerImage(t *testing.T) {
	row := []byte("\x00\x01\x00\x00\x00\x03abc\x05")
	count := func(n int, keep func(before, after lean.Image) bool) float64 {
		p := parse(t, replication.WRITE_ROWS_EVENTv2, tableMap(small), rows(3, []byte{0b111}, bytes.Repeat(row, n)))
		plan := p.plan(t, lean.Column{Index: 0}, lean.Column{Index: 1, Charset: "utf8mb4"}, lean.Column{Index: 2})
		return testing.AllocsPerRun(10, func() {
			if err := plan.DecodeSome(p.event, p.data, p.pos, keep, func(_, _ lean.Image) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	require.InDelta(t, 100, count(200, nil)-count(100, nil), 0.5)
	nothing := func(_, _ lean.Image) bool { return false }
	require.InDelta(t, 0, count(200, nothing)-count(100, nothing), 0.5)
}

func TestBrokenEvents(t *testing.T) {
	t.Parallel()
	insert := func(bitmap byte, images string) parsed {
		return parse(t, replication.WRITE_ROWS_EVENTv2, tableMap(small), rows(3, []byte{bitmap}, []byte(images)))
	}
	decode := func(p parsed, plan *lean.Plan) error {
		return plan.Decode(p.event, p.data, p.pos, func(_, _ lean.Image) error { return nil })
	}
	whole := insert(0b111, "\x00\x01\x00\x00\x00\x03abc\x05")
	plan := whole.plan(t, smallWanted...)
	require.NoError(t, decode(whole, plan))

	require.ErrorIs(t, decode(insert(0b111, "\x00\x01\x00\x00\x00\xffabc\x05"), plan), lean.ErrMalformed, "a text longer than the event")
	require.ErrorIs(t, decode(insert(0b111, "\x00\x01\x00\x00\x00\x03abc"), plan), lean.ErrMalformed, "no last column")
	require.ErrorIs(t, decode(insert(0b000, "more"), plan), lean.ErrMalformed, "a row without columns would go on for ever")
	require.NoError(t, decode(insert(0b000, ""), plan))

	other := parse(t, replication.WRITE_ROWS_EVENTv2, tableMap(small[:2]), rows(2, []byte{0b11}, []byte("\x00\x01\x00\x00\x00\x00")))
	require.ErrorIs(t, decode(other, plan), lean.ErrMismatch)
	beyond := whole
	beyond.pos = len(beyond.data) + 1
	require.ErrorIs(t, decode(beyond, plan), lean.ErrMalformed)
	partial := parse(t, replication.PARTIAL_UPDATE_ROWS_EVENT, tableMap(small), rows(3, []byte{0b111, 0b111}, nil))
	require.ErrorIs(t, decode(partial, plan), lean.ErrUnsupported)
}

// TestHeaderOfGarbage: where go-mysql panics, Header returns an error.
func TestHeaderOfGarbage(t *testing.T) {
	t.Parallel()
	_, err := lean.Header(&replication.RowsEvent{}, nil)
	require.Error(t, err)
	_, err = lean.Header(&replication.RowsEvent{Version: 2}, []byte{1, 0, 0xff})
	require.ErrorIs(t, err, lean.ErrMalformed)
}

func TestCompressedGarbage(t *testing.T) {
	t.Parallel()
	for _, body := range []string{"", "\x80", "\x84\xff\xff\xff\xffx", "\x90\x01x", "\x81\x05not zlib", "\x87\x01\x01\x01\x01\x01\x01\x01"} {
		p := parse(t, replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1, tableMap(small),
			append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 3, 0b111}, body...))
		calls := 0
		data, pos, err := lean.Rows(replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1, p.data, p.pos)
		if err == nil {
			err = p.plan(t, smallWanted...).Decode(p.event, data, pos, func(_, _ lean.Image) error { calls++; return nil })
		}
		if body != "" {
			require.ErrorIs(t, err, lean.ErrMalformed, "%q", body)
		}
		require.Zero(t, calls)
	}
}

func TestPlansRefuse(t *testing.T) {
	t.Parallel()
	text := lean.Column{Index: 0, Charset: "utf8mb4"}
	for name, c := range map[string]struct {
		table  []column
		wanted lean.Column
		want   error
	}{
		"an unknown type that nobody wants": {[]column{{tp: 100}}, lean.Column{Index: -1}, lean.ErrUnsupported},
		"a compressed column":               {[]column{{tp: 140}}, lean.Column{Index: -1}, lean.ErrUnsupported},
		"a time with too many digits":       {[]column{{mysql.MYSQL_TYPE_TIME2, []byte{7}}}, lean.Column{Index: -1}, lean.ErrMalformed},
		"a decimal of no digits":            {[]column{{mysql.MYSQL_TYPE_NEWDECIMAL, []byte{0, 0}}}, lean.Column{Index: -1}, lean.ErrMalformed},
		"a decimal of too many decimals":    {[]column{{mysql.MYSQL_TYPE_NEWDECIMAL, []byte{2, 3}}}, lean.Column{Index: -1}, lean.ErrMalformed},
		"a bit field of nine bytes":         {[]column{{mysql.MYSQL_TYPE_BIT, []byte{0, 9}}}, lean.Column{Index: -1}, lean.ErrMalformed},
		"a blob with five bytes of length":  {[]column{{mysql.MYSQL_TYPE_BLOB, []byte{5}}}, lean.Column{Index: -1}, lean.ErrMalformed},
		"a wanted float":                    {[]column{{mysql.MYSQL_TYPE_FLOAT, []byte{4}}}, text, lean.ErrUnsupported},
		"a wanted enum":                     {[]column{{mysql.MYSQL_TYPE_STRING, []byte{mysql.MYSQL_TYPE_ENUM, 1}}}, text, lean.ErrUnsupported},
		"an unknown charset":                {small, lean.Column{Index: 1, Charset: "klingon"}, lean.ErrUnsupported},
		"a charset that nobody tells":       {small, lean.Column{Index: 1}, lean.ErrUnsupported},
		"a column that is not there":        {small, lean.Column{Index: 3}, lean.ErrMalformed},
		"an index below the first":          {small, lean.Column{Index: -2}, lean.ErrMalformed},
		"MariaDB's UUID":                    {small, lean.Column{Index: 1, Charset: "binary", DataType: "uuid"}, lean.ErrUnsupported},
	} {
		p := parse(t, replication.WRITE_ROWS_EVENTv2, tableMap(c.table), rows(len(c.table), make([]byte, (len(c.table)+7)/8), nil))
		_, err := lean.NewPlan(p.event.Table, []lean.Column{c.wanted})
		require.ErrorIs(t, err, c.want, name)
	}
	_, err := lean.NewPlan(&replication.TableMapEvent{ColumnCount: 3}, nil)
	require.ErrorIs(t, err, lean.ErrMalformed)
}

// TestMetadataOverrulesTheCatalog: the TABLE_MAP tells signedness and charset as they were when the row was written.
func TestMetadataOverrulesTheCatalog(t *testing.T) {
	t.Parallel()
	// Signedness: the first numeric column is unsigned, the second is not. Collation: latin1_swedish_ci.
	told := tableMap(small, 1, 1, 0b10000000, 2, 1, 8)
	p := parse(t, replication.WRITE_ROWS_EVENTv2, told, rows(3, []byte{0b111}, []byte("\x00\xff\xff\xff\xff\x01\xe9\xff")))
	plan := p.plan(t, lean.Column{Index: 0}, lean.Column{Index: 1, Charset: "koi8r"}, lean.Column{Index: 2, Unsigned: true})
	require.NoError(t, plan.Decode(p.event, p.data, p.pos, func(_, after lean.Image) error {
		require.Equal(t, uint64(1<<32-1), after[0].Uint)
		require.Equal(t, "é", string(after[1].Bytes))
		require.Equal(t, int64(-1), after[2].Int)
		return nil
	}))
	require.True(t, plan.Fits(p.event.Table))
	for _, other := range [][]byte{
		tableMap(small), tableMap(small, 1, 1, 0b11000000, 2, 1, 8), tableMap(small, 1, 1, 0b10000000, 2, 1, 33), tableMap(small[:2]),
		tableMap([]column{small[0], {mysql.MYSQL_TYPE_VARCHAR, []byte{81, 0}}, small[2]}, 1, 1, 0b10000000, 2, 1, 8),
	} {
		require.False(t, plan.Fits(parse(t, replication.WRITE_ROWS_EVENTv2, other, rows(int(other[14]), []byte{0}, nil)).event.Table))
	}
}

// TestLongCHAR: a CHAR of more than 255 bytes hides two bits of its length in the type.
func TestLongCHAR(t *testing.T) {
	t.Parallel()
	content := strings.Repeat("é", 300)
	// CHAR(255) in utf8mb4: 1020 bytes.
	table := []column{{mysql.MYSQL_TYPE_STRING, []byte{0xce, 0xfc}}}
	p := parse(t, replication.WRITE_ROWS_EVENTv2, tableMap(table), rows(1, []byte{1}, []byte("\x00\x58\x02"+content)))
	require.NoError(t, p.plan(t, lean.Column{Charset: "utf8mb4"}).Decode(p.event, p.data, p.pos, func(_, after lean.Image) error {
		require.Equal(t, content, string(after[0].Bytes))
		return nil
	}))
}
