package relay

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/bubble"
)

func newRecoveries() (*recoveries, *logBuffer) {
	log := &logBuffer{}
	return &recoveries{metrics: newMetrics(), log: log.logger()}, log
}

func startOf(kind string) canal.Start {
	return canal.Start{Recovery: kind, Detail: "why", Usable: kind == words.RecoveryResumed, Position: position.Position{File: "binlog.000009", Pos: 154}}
}

// TestRecoveryTellsItsCost: once it has ended, in one log line with what to do, and at any time in status, readiness
// and metrics.
func TestRecoveryTellsItsCost(t *testing.T) {
	t.Parallel()
	r, log := newRecoveries()
	one := r.started(startOf(words.RecoveryPurged), "binlog.000001:4", 2)
	one.left(30)
	one.finish()
	require.Contains(t, r.check().Detail, "purged (running), not read: binlog.000001:4 to binlog.000009:154")
	require.Zero(t, log.count("recovered"))
	one.looked([]replayVerdict{replaySettled, replaySettled, replayInKafka, replaySweepers, replayUnknown})
	one.finish()
	require.Equal(t, 1, log.count(`"read_again":5,"already_sent":2,"found_in_kafka":1,"left_to_sweeper":31`))
	require.Equal(t, 1, log.count(`"range_skipped":true`))
	require.Equal(t, 1, log.count("binlog_expire_logs_seconds"))
	require.Contains(t, r.check().Detail, "5 read again, 2 already sent, 1 found in Kafka, 31 left to the sweeper")
	all := r.all()
	require.Len(t, all, 1)
	require.False(t, all[0].Ended.IsZero())
	require.InDelta(t, 31, value(t, r.metrics.RecoveryRows.WithLabelValues("purged", words.RowsLeftToSweeper)), 0)
	require.InDelta(t, 1, value(t, r.metrics.Recoveries.WithLabelValues("purged")), 0)
	require.Positive(t, value(t, r.metrics.LastRecovery.WithLabelValues("purged")))
}

// TestPlainStartIsNoRecovery: it is not counted as one, and does not hide the last.
func TestPlainStartIsNoRecovery(t *testing.T) {
	t.Parallel()
	r, log := newRecoveries()
	r.started(startOf(words.RecoveryResumed), "binlog.000001:4", 1).finish()
	require.Contains(t, r.check().Detail, "resumed")
	require.Zero(t, log.count("rec"))
	r.started(startOf(words.RecoveryInvalid), "binlog.000001:4", 1) // its session fails
	again := r.started(startOf(words.RecoveryResumed), "binlog.000009:154", 2)
	again.looked([]replayVerdict{replaySettled})
	again.finish()
	again.finish()
	require.Equal(t, 1, log.count("replay window passed"))
	require.Contains(t, r.check().Detail, "invalid")
	require.NotContains(t, r.check().Detail, "running")
	require.Len(t, r.all(), 2)
	require.InDelta(t, 0, value(t, r.metrics.Recoveries.WithLabelValues("resumed")), 0)
}

// TestRecoveriesWhileItRuns: columns that can't be told, a wait for them, a table that is gone.
func TestRecoveriesWhileItRuns(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		r, log := newRecoveries()
		for range 3 {
			r.missed(&assemble.Transaction{Missed: map[string]int{words.MissedColumns: 4, words.MissedXA: 1}})
		}
		r.missed(&assemble.Transaction{Waited: 3 * time.Second})
		gone := r.gone(store.ErrGone)
		advance(t, time.Minute)
		gone.held(7)
		gone.finish()
		all := r.all()
		require.Len(t, all, 3)
		require.Equal(t, []string{words.RecoveryTableGone, words.RecoveryMetadata, words.RecoveryColumns}, []string{all[0].Kind, all[1].Kind, all[2].Kind})
		require.Equal(t, time.Minute, all[0].Ended.Sub(all[0].Began))
		require.EqualValues(t, 7, all[0].Held)
		require.Equal(t, 3*time.Second, all[1].Ended.Sub(all[1].Began))
		require.EqualValues(t, 12, all[2].LeftToSweeper)
		require.Equal(t, 3, log.count(`"recovered"`))
		require.InDelta(t, 1, value(t, r.metrics.Recoveries.WithLabelValues(words.RecoveryColumns)), 0, "what comes together is one")
	})
}

// TestRowsThatAreLeftEndTheSession: but not within the window of a session that has recorded all, nor again and again.
func TestRowsThatAreLeftEndTheSession(t *testing.T) {
	bubble.Test(t, func(t *testing.T) {
		l := &leadership{}
		txn := &assemble.Transaction{Missed: map[string]int{words.MissedColumns: 2}}
		p := &pump{replay: &replay{}, leaving: leaving{may: l.mayLeave, everything: true}}
		require.False(t, p.leaves(txn), "it is recorded")
		p.replay.over = true
		require.False(t, p.leaves(&assemble.Transaction{Missed: map[string]int{words.MissedXA: 1, words.MissedGone: 1}}))
		require.True(t, p.leaves(txn))
		require.False(t, p.leaves(txn))
		advance(t, leftPause)
		require.True(t, (&pump{replay: &replay{}, leaving: leaving{may: l.mayLeave}}).leaves(txn))
		require.Equal(t, "columns", restartReason(errLeft))
	})
}
