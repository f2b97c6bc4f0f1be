package relay

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/sweeper"
	"example.com/outbox-relay/test/bubble"
)

// TestPumpTellsWhyRowsAreTheSweepers gives the pump each kind of transaction that leaves rows to the sweeper. Of
// eight rows that the sweeper takes up then, as many have the reason as were told of.
func TestPumpTellsWhyRowsAreTheSweepers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name    string
		txn     assemble.Transaction
		reason  string
		rows    int64 // that have it, of eight
		skipped float64
	}{
		{"xa", assemble.Transaction{Missed: map[string]int{"xa": 1}, XARows: 3}, "xa", 3, 1},
		{"xa of before", assemble.Transaction{Missed: map[string]int{"xa": 1}, XARows: assemble.XARowsUnknown}, "xa", 8, 1},
		{"statement", assemble.Transaction{Missed: map[string]int{"statement": 1}}, "statement", 8, 1},
		{"incident", assemble.Transaction{Missed: map[string]int{"incident": 1}}, "incident", 8, 1},
		{"columns", assemble.Transaction{Missed: map[string]int{"columns": 5}}, "columns", 5, 5},
		{"decode", assemble.Transaction{Missed: map[string]int{"decode": 2}}, "decode", 2, 2},
		{"large", assemble.Transaction{Missed: map[string]int{"large": 7}}, "large", 7, 7},
		{"update", assemble.Transaction{Revived: []outbox.Ref{{Table: rowOf(2, "", "").Table, ID: 2}}}, "update", 1, 1},
		{"many updates", assemble.Transaction{Revived: []outbox.Ref{{Table: rowOf(2, "", "").Table, ID: 2}}, RevivedMore: 2}, "update", 3, 3},
		{"ddl", assemble.Transaction{Altered: true}, "ddl", 8, 1},
		{"nothing", assemble.Transaction{}, "ddl", 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) {
				b := newPumpBench(t.Context(), t)
				b.pump.leaving.may = func() bool { return false } // the session goes on with unmapped rows
				b.start(t.Context())
				txn := assemble.NewTransaction(endAt(1), time.Now())
				txn.Missed, txn.XARows, txn.Revived, txn.RevivedMore, txn.Altered = tc.txn.Missed, tc.txn.XARows, tc.txn.Revived, tc.txn.RevivedMore, tc.txn.Altered
				b.reader.transactions <- txn
				b.stop(t)
				require.InDelta(t, tc.skipped, value(t, b.metrics.StreamSkipped.WithLabelValues(tc.reason)), 0)
				for id := range uint64(8) {
					b.reckoning.Take(rowOf(id, "orders", "k"))
				}
				totals := b.reckoning.Totals()
				require.Equal(t, tc.rows, totals.Reasons[tc.reason])
				require.Equal(t, 8-tc.rows, totals.Unexplained)
			})
		})
	}
}

// TestDeliveredIsWhatKafkaAcked counts messages of the stream once they are acked, not what was left to the sweeper.
func TestDeliveredIsWhatKafkaAcked(t *testing.T) {
	t.Parallel()
	b := newFlowBench()
	b.reckoning = sweeper.NewReckoning(b.metrics)
	items := sendAll(t, b, 4)
	b.result(kafka.Result{Token: items[0]})
	b.result(kafka.Result{Token: items[1]})
	b.result(kafka.Result{Token: items[2], Err: sarama.ErrTopicAuthorizationFailed})
	require.EqualValues(t, 2, b.reckoning.Totals().Delivered)
}
