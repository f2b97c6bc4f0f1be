package assemble

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
)

// BenchmarkHandle handles a transaction of 500 rows, 50 in an event, and reads its rows.
func BenchmarkHandle(b *testing.B) {
	tp := newTape(b, position.MySQL)
	tp.d.asm.limit = 16 << 20
	tp.raw = new(bytes.Buffer)
	tp.gtid()
	tp.query("BEGIN")
	for i := range uint64(10) {
		var rows []message
		for j := range uint64(50) {
			rows = append(rows, m(i*50+j+1, 0))
		}
		tp.insert(rows...)
	}
	tp.xid()
	var events []*replication.BinlogEvent
	for raw := tp.raw.Bytes(); len(raw) > 0; {
		size := binary.LittleEndian.Uint32(raw[9:])
		ev := &replication.BinlogEvent{RawData: raw[:size], Header: new(replication.EventHeader)}
		require.NoError(b, ev.Header.Decode(ev.RawData))
		events = append(events, ev)
		raw = raw[size:]
	}
	b.ReportAllocs()
	for b.Loop() {
		n := 0
		for _, ev := range events {
			tx, err := tp.d.Handle(b.Context(), ev)
			if err != nil {
				b.Fatal(err)
			}
			if tx == nil {
				continue
			}
			for _, err := range tx.Rows() {
				if err != nil {
					b.Fatal(err)
				}
				n++
			}
			require.NoError(b, tx.Close())
		}
		if n != 500 {
			b.Fatal(n)
		}
	}
}
