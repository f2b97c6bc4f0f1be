package oracle_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/oracle"
)

func TestLogCountsDistinctMessages(t *testing.T) {
	t.Parallel()
	l := oracle.NewLog()
	l.Add(oracle.Record{MsgID: "a"}, oracle.Record{MsgID: "b"}, oracle.Record{MsgID: "a", Offset: 2})
	l.Add()
	assert.Equal(t, 3, l.Len())
	assert.Equal(t, 2, l.Distinct())
	assert.Equal(t, 2, l.Seen("a"))
	assert.Equal(t, 0, l.Seen("c"))
	assert.Equal(t, map[string]int{"a": 2, "b": 1}, l.IDs())
}

func TestLogWait(t *testing.T) {
	t.Parallel()
	l := oracle.NewLog()
	waited := make(chan error, 1) // size 1: the waiter must be able to leave
	go func() { waited <- l.Wait(t.Context(), 2) }()
	l.Add(oracle.Record{MsgID: "a"})
	l.Add(oracle.Record{MsgID: "a"})
	select {
	case err := <-waited:
		t.Fatalf("one message is not two: %v", err)
	default:
	}
	l.Add(oracle.Record{MsgID: "b"})
	require.NoError(t, <-waited)
}

func TestLogWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, oracle.NewLog().Wait(ctx, 1), context.DeadlineExceeded)
}

func TestLedgerRefusesAMessageTwice(t *testing.T) {
	t.Parallel()
	l := oracle.NewLedger()
	txn := oracle.Transaction{Messages: []oracle.Message{{MsgID: "a"}}}
	require.NoError(t, l.Add(txn))
	require.ErrorContains(t, l.Add(txn), "message a entered twice")
	assert.Equal(t, uint64(1), l.Seq())
}

func TestLatencyOf(t *testing.T) {
	t.Parallel()
	var ds []time.Duration
	for i := range 101 {
		ds = append(ds, time.Duration(100-i)*time.Millisecond)
	}
	assert.Equal(t, oracle.Latency{
		N: 101, P50: 50 * time.Millisecond, P90: 90 * time.Millisecond, P99: 99 * time.Millisecond, Max: 100 * time.Millisecond,
	}, oracle.LatencyOf(ds))
	assert.Zero(t, oracle.LatencyOf(nil))
}

func TestCommitsTellHowLongTransactionsTook(t *testing.T) {
	t.Parallel()
	l, at := oracle.NewLedger(), time.Unix(1000, 0)
	for i, outcome := range []oracle.Outcome{oracle.Committed, oracle.RolledBack, oracle.Committed, oracle.Unknown, oracle.Committed} {
		begun := at.Add(time.Duration(i) * time.Second)
		require.NoError(t, l.Add(oracle.Transaction{
			Messages: []oracle.Message{{MsgID: fmt.Sprint(i, "a")}, {MsgID: fmt.Sprint(i, "b")}}, Outcome: outcome,
			Begun: begun, Sent: begun.Add(time.Duration(i+1) * time.Millisecond), Done: begun.Add(time.Duration(i+2) * time.Millisecond),
		}))
	}
	whole, commit := l.Commits(at, at.Add(4*time.Second))
	assert.Equal(t, oracle.Latency{N: 2, P50: 2 * time.Millisecond, P90: 2 * time.Millisecond, P99: 2 * time.Millisecond, Max: 4 * time.Millisecond}, whole)
	assert.Equal(t, oracle.Latency{N: 2, P50: time.Millisecond, P90: time.Millisecond, P99: time.Millisecond, Max: time.Millisecond}, commit)
}
