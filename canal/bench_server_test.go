//go:build !unit

package canal_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/test/rig"
)

// fill writes n rows in transactions of size rows, each about 200 bytes of content.
func (b *bench) fill(n, size int) {
	b.t.Helper()
	b.exec("CREATE TABLE IF NOT EXISTS digits (d INT)", "DELETE FROM digits",
		"INSERT INTO digits VALUES (0), (1), (2), (3), (4), (5), (6), (7), (8), (9)")
	for from := 0; from < n; from += size {
		b.exec(fmt.Sprintf("INSERT INTO local_message (msg_id, topic, msg_content, status, create_time, update_time)"+
			" SELECT CONCAT('m', %d + n), 'orders', CONCAT('{\"order_id\":', n, ',\"text\":\"', REPEAT('x', 180), '\"}'), 0, NOW(), NOW() FROM"+
			" (SELECT a.d + 10*b.d + 100*c.d + 1000*d.d + 10000*e.d n FROM digits a, digits b, digits c, digits d, digits e) x WHERE n < %d", from, size))
	}
}

// BenchmarkRead reads rows that were committed before, 500 in a transaction, as a relay does that was down.
func BenchmarkRead(b *testing.B) {
	for name, server := range map[string]func(testing.TB, ...rig.Option) *rig.Server{"mysql": rig.MySQL, "mariadb": rig.MariaDB} {
		b.Run(name, func(b *testing.B) {
			const rows = 200_000
			be := newBench(b, server(b))
			be.stream()
			from := be.cursor.Position()
			be.fill(rows, 500)
			// The first rows of all are needed to trust the columns where the binlog does not name them.
			be.streamFrom(from)
			be.next()
			b.ReportAllocs()
			b.ResetTimer()
			for range b.N {
				be.streamFrom(from)
				for n := 0; n < rows; {
					tx, err := be.reader.Next(b.Context())
					require.NoError(b, err)
					for row, err := range tx.Rows() {
						if err != nil || row.MsgID == "" {
							b.Fatal(err)
						}
						n++
					}
					require.NoError(b, tx.Close())
				}
			}
			b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
		})
	}
}

// TestMemoryStaysBounded reads a transaction of many rows: in another table it must cost nothing, in ours no more than
// the buffer.
func TestMemoryStaysBounded(t *testing.T) {
	server := rig.MySQL(t)
	b := newBench(t, server)
	b.cfg.BufferBytes = 1 << 20
	b.exec(fmt.Sprintf(schema, "other"))
	b.stream()
	b.big("m", 100_000)
	b.exec("INSERT INTO other SELECT * FROM local_message")
	b.session("SET SESSION binlog_transaction_compression = ON", "UPDATE other SET topic = REPEAT('y', 60)")

	var peak uint64
	stop, done := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(done)
		tick := time.NewTicker(5 * time.Millisecond)
		defer tick.Stop()
		for {
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			peak = max(peak, m.HeapInuse)
			select {
			case <-stop:
				return
			case <-tick.C:
			}
		}
	}()
	var rows int
	var tx *assemble.Transaction
	for rows == 0 {
		tx = b.next()
		rows += tx.Len()
	}
	n := 0
	for _, err := range tx.Rows() {
		require.NoError(t, err)
		n++
	}
	require.Equal(t, 100_000, n)
	require.Empty(t, b.read().rows)
	close(stop)
	<-done
	t.Logf("peak of the heap: %d MiB", peak>>20)
	require.Less(t, peak, uint64(64<<20))
}

// BenchmarkLatency commits one row after the other, and waits for each: the time from the call that commits until Next
// has returned the row, and the part of it after the commit was acknowledged.
func BenchmarkLatency(b *testing.B) {
	for name, server := range map[string]func(testing.TB, ...rig.Option) *rig.Server{"mysql": rig.MySQL, "mariadb": rig.MariaDB} {
		b.Run(name, func(b *testing.B) {
			be := newBench(b, server(b))
			be.stream()
			be.insert("first")
			be.readTo("first")
			came := make(chan time.Time, 1)
			go func() {
				for {
					tx, err := be.reader.Next(b.Context())
					if err != nil {
						return
					}
					if tx.Len() > 0 {
						came <- time.Now()
					}
					_ = tx.Close() // nothing is spilled
				}
			}()
			after := make([]time.Duration, 0, b.N)
			b.ResetTimer()
			for i := range b.N {
				be.insert(fmt.Sprintf("l%d", i))
				acked := time.Now()
				after = append(after, max(0, (<-came).Sub(acked)))
			}
			b.StopTimer()
			slices.Sort(after)
			b.ReportMetric(float64(after[len(after)/2].Microseconds()), "p50-us-after-ack")
			b.ReportMetric(float64(after[len(after)*99/100].Microseconds()), "p99-us-after-ack")
		})
	}
}
