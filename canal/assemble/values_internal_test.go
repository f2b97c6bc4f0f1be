package assemble

import (
	"database/sql"
	"os"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/outbox-relay/canal/lean"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

func TestSpillKeepsRows(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		s, err := newSpillFile(dir)
		require.NoError(rt, err)
		defer func() { require.NoError(rt, s.close()) }()
		text, data := rapid.String(), rapid.SliceOf(rapid.Byte())
		rows := rapid.SliceOf(rapid.Custom(func(rt *rapid.T) outbox.Row {
			row := outbox.Row{
				Table: outbox.Table{Database: "d", Name: rapid.SampledFrom([]string{"t", "u"}).Draw(rt, "table")},
				ID:    rapid.Uint64().Draw(rt, "id"), MsgID: text.Draw(rt, "m"), Topic: text.Draw(rt, "t"),
				Content: data.Draw(rt, "c"), Status: outbox.Status(rapid.IntRange(0, 6).Draw(rt, "s")),
				RetryCount: rapid.Int().Draw(rt, "r"), NextRetry: text.Draw(rt, "n"), Created: text.Draw(rt, "cr"), TraceParent: text.Draw(rt, "tp"),
			}
			if rapid.Bool().Draw(rt, "key") {
				row.Key, row.Headers = data.Draw(rt, "k"), data.Draw(rt, "h")
			}
			return row
		})).Draw(rt, "rows")
		cut := rapid.IntRange(0, len(rows)).Draw(rt, "cut")
		var mark spillMark
		for i := range rows {
			if i == cut {
				mark = s.mark()
			}
			require.NoError(rt, s.append(&rows[i]))
		}
		want := rows
		if cut < len(rows) {
			require.NoError(rt, s.truncate(mark))
			want = rows[:cut+1]
			require.NoError(rt, s.append(&rows[cut]))
		}
		for range 2 {
			got := []outbox.Row{}
			require.NoError(rt, s.each(func(row *outbox.Row) bool { got = append(got, *row); return true }))
			require.Len(rt, got, len(want))
			for i := range got {
				require.Equal(rt, want[i].Content == nil, got[i].Content == nil)
				require.Equal(rt, want[i], got[i])
			}
		}
	})
	left, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, left, "the files have no names")
}

func TestSpillThatFails(t *testing.T) {
	b := &rowBuffer{limit: 1000, dir: "/does/not/exist"}
	for i := range 10 {
		b.insert(&outbox.Row{ID: uint64(i), Content: make([]byte, 100)})
	}
	require.Equal(t, 10, b.lost)
	require.ErrorIs(t, b.failed, os.ErrNotExist)
	b.rollback(bufferMark{rows: 1})
	require.Equal(t, 1, b.lost, "what was before the savepoint is lost as well")
	require.NoError(t, b.close())

	s, err := newSpillFile(t.TempDir())
	require.NoError(t, err)
	require.NoError(t, s.append(&outbox.Row{MsgID: "a"}))
	require.NoError(t, s.w.Flush())
	_, err = s.file.WriteAt([]byte{200}, 4)
	require.NoError(t, err)
	require.ErrorIs(t, s.each(func(*outbox.Row) bool { return true }), errRecord)
	require.NoError(t, s.close())
	require.Error(t, s.each(func(*outbox.Row) bool { return true }))
}

func TestDefaultsOfColumns(t *testing.T) {
	value := func(c mysql.Column, text string, has bool, extra string) (lean.Value, bool) {
		c.Default, c.Extra = sql.NullString{String: text, Valid: has}, extra
		return valueOf(&c)
	}
	text := mysql.Column{Type: "varchar", Charset: "utf8mb4"}
	number := mysql.Column{Type: "tinyint"}
	for name, test := range map[string]struct {
		c     mysql.Column
		text  string
		has   bool
		extra string
		want  lean.Value
		ok    bool
	}{
		"mysql number":        {number, "3", true, "", lean.Value{State: lean.Present, Kind: lean.Int, Int: 3}, true},
		"mysql text":          {text, "abc", true, "", lean.Value{State: lean.Present, Bytes: []byte("abc")}, true},
		"mysql expression":    {text, "uuid()", true, "default_generated", lean.Value{}, false},
		"mariadb text":        {text, "'it''s'", true, "", lean.Value{State: lean.Present, Bytes: []byte("it's")}, true},
		"mariadb null":        {mysql.Column{Type: "int", Nullable: true}, "NULL", true, "", lean.Value{State: lean.Null}, true},
		"mariadb expression":  {text, "uuid()", true, "", lean.Value{}, false},
		"none, must not null": {number, "", false, "", lean.Value{State: lean.Present, Kind: lean.Int}, true},
		"none, text":          {text, "", false, "", lean.Value{State: lean.Present, Bytes: []byte{}}, true},
		"none, may be null":   {mysql.Column{Type: "datetime", Nullable: true}, "", false, "", lean.Value{State: lean.Null}, true},
		"none, time":          {mysql.Column{Type: "datetime", FullType: "datetime(3)"}, "", false, "", lean.Value{State: lean.Present, Bytes: []byte("0000-00-00 00:00:00.000")}, true},
		"none, other":         {mysql.Column{Type: "point"}, "", false, "", lean.Value{}, false},
		"now":                 {mysql.Column{Type: "datetime"}, "CURRENT_TIMESTAMP", true, "", lean.Value{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, ok := value(test.c, test.text, test.has, test.extra)
			require.Equal(t, test.ok, ok)
			require.Equal(t, test.want, got)
		})
	}
}
