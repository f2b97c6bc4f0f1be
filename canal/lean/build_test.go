package lean_test

import (
	"encoding/binary"
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/lean"
)

// column describes a column of a table made up by a test: the type and the metadata as in a TABLE_MAP.
type column struct {
	tp   byte
	meta []byte
}

// rawEvent puts a header in front of an event's body, and the place of a checksum behind it.
func rawEvent(tp replication.EventType, body []byte) []byte {
	event := make([]byte, replication.EventHeaderSize, replication.EventHeaderSize+len(body)+replication.BinlogChecksumLength)
	event[4] = byte(tp)
	binary.LittleEndian.PutUint32(event[9:], uint32(cap(event)))
	event = append(event, body...)
	return event[:cap(event)]
}

// tableMap makes the body of a TABLE_MAP for table 1, with optional metadata as in the binlog.
func tableMap(columns []column, optional ...byte) []byte {
	body := append([]byte{1, 0, 0, 0, 0, 0, 0, 0}, "\x01d\x00\x01t\x00"...)
	body = append(body, byte(len(columns)))
	var metas []byte
	for _, c := range columns {
		body = append(body, c.tp)
		metas = append(metas, c.meta...)
	}
	body = append(append(body, byte(len(metas))), metas...)
	return append(append(body, make([]byte, (len(columns)+7)/8)...), optional...)
}

// rows makes the body of a rows event of version 2 for table 1.
func rows(columns int, bitmaps, images []byte) []byte {
	body := append([]byte{1, 0, 0, 0, 0, 0, 0, 0, 2, 0}, byte(columns))
	return append(append(body, bitmaps...), images...)
}

// parsed is a rows event ready to be decoded.
type parsed struct {
	event *replication.RowsEvent
	data  []byte
	pos   int
}

func (p parsed) plan(t testing.TB, columns ...lean.Column) *lean.Plan {
	t.Helper()
	plan, err := lean.NewPlan(p.event.Table, columns)
	require.NoError(t, err)
	return plan
}

// parse runs events through go-mysql's parser as a BinlogSyncer does. They must be fine but for the rows.
func parse(t testing.TB, tp replication.EventType, tableMap, rows []byte) (p parsed) {
	t.Helper()
	parser := replication.NewBinlogParser()
	parser.SetRowsEventDecodeFunc(func(e *replication.RowsEvent, data []byte) error {
		pos, err := lean.Header(e, data)
		p = parsed{e, data, pos}
		return err
	})
	flavor := "mysql"
	if tp >= replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1 {
		flavor = "mariadb"
	}
	for _, event := range [][]byte{formatDescription(t, flavor), rawEvent(replication.TABLE_MAP_EVENT, tableMap), rawEvent(tp, rows)} {
		_, err := parser.Parse(event)
		require.NoError(t, err)
	}
	return p
}

// formatDescription returns the event that a server writes at the head of its binlog.
func formatDescription(t testing.TB, flavor string) []byte {
	t.Helper()
	for _, r := range recordings(t) {
		if r.Flavor == flavor {
			return r.Events[0]
		}
	}
	t.Fatalf("no recording of %s", flavor)
	return nil
}
