package lean_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/canal/lean"
)

// outboxTable is the pattern's table, and what the relay wants of it: all but update_time.
var outboxTable = []column{
	{tp: mysql.MYSQL_TYPE_LONGLONG},
	{mysql.MYSQL_TYPE_VARCHAR, []byte{0, 1}},
	{mysql.MYSQL_TYPE_VARCHAR, []byte{0, 1}},
	{mysql.MYSQL_TYPE_BLOB, []byte{2}},
	{tp: mysql.MYSQL_TYPE_TINY},
	{tp: mysql.MYSQL_TYPE_LONG},
	{mysql.MYSQL_TYPE_DATETIME2, []byte{0}},
	{mysql.MYSQL_TYPE_DATETIME2, []byte{0}},
	{mysql.MYSQL_TYPE_DATETIME2, []byte{0}},
}

func outboxWanted() (columns []lean.Column) {
	for i := range 8 {
		columns = append(columns, lean.Column{Index: i, Charset: "utf8mb4"})
	}
	return columns
}

// outboxImage is a row of the pattern's table with a body of 200 bytes.
func outboxImage(id uint64, status byte) []byte {
	b := []byte{0b01000000, 0}
	b = binary.LittleEndian.AppendUint64(b, id)
	for _, s := range []string{fmt.Sprintf("msg-%032d", id), "order-created", `{"order_id": 12345, "text": "` + string(bytes.Repeat([]byte{'x'}, 170)) + `"}`} {
		b = binary.LittleEndian.AppendUint16(b, uint16(len(s)))
		b = append(b, s...)
	}
	b = append(b, status, 0, 0, 0, 0)
	return append(b, 0x99, 0xb2, 0x79, 0x10, 0x83, 0x99, 0xb2, 0x79, 0x10, 0x83)
}

const benchRows = 30 // about what fits in one event

// BenchmarkInserts decodes the relay's columns of inserted rows; see the ratio of the two.
func BenchmarkInserts(b *testing.B) {
	var images []byte
	for id := range uint64(benchRows) {
		images = append(images, outboxImage(id, 0)...)
	}
	p := parse(b, replication.WRITE_ROWS_EVENTv2, tableMap(outboxTable), rows(9, []byte{0xff, 1}, images))
	compareSpeed(b, p, nil)
}

// BenchmarkMarks passes over the relay's own updates, by their status.
func BenchmarkMarks(b *testing.B) {
	var images []byte
	for id := range uint64(benchRows) {
		images = append(append(images, outboxImage(id, 0)...), outboxImage(id, 1)...)
	}
	p := parse(b, replication.UPDATE_ROWS_EVENTv2, tableMap(outboxTable), rows(9, []byte{0xff, 1, 0xff, 1}, images))
	compareSpeed(b, p, func(_, after lean.Image) bool { return after[4].Int == 0 })
}

func compareSpeed(b *testing.B, p parsed, keep func(before, after lean.Image) bool) {
	plan := p.plan(b, outboxWanted()...)
	run := func(b *testing.B, decode func() error) float64 {
		b.ReportAllocs()
		for b.Loop() {
			if err := decode(); err != nil {
				b.Fatal(err)
			}
		}
		perRow := float64(b.Elapsed().Nanoseconds()) / float64(b.N) / benchRows
		b.ReportMetric(perRow, "ns/row")
		return perRow
	}
	var ours, stock float64
	b.Run("lean", func(b *testing.B) {
		ours = run(b, func() error {
			return plan.DecodeSome(p.event, p.data, p.pos, keep, func(_, _ lean.Image) error { return nil })
		})
	})
	b.Run("stock", func(b *testing.B) {
		stock = run(b, func() error { return p.event.DecodeData(p.pos, p.data) })
		if ours > 0 {
			b.ReportMetric(stock/ours, "times-lean")
		}
	})
}
