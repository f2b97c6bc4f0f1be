//go:build !unit

package stories

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sync/errgroup"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestEventBeforeTheRowIsVisible: transactions insert a row and update it at once, from eight writers. Each is in the
// binlog before a SELECT shows it; none is taken for deleted.
func TestEventBeforeTheRowIsVisible(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Silent: true})
		s.Start()
		writers, ctx := errgroup.WithContext(t.Context())
		for w := range 8 {
			writers.Go(func() error { return insertAndUpdate(ctx, s, w, 200) })
		}
		require.NoError(t, writers.Wait())
		v := s.Exact(20*time.Second, oracle.Options{})
		s.ByStream(v)
		assert.Equal(t, map[int]int{1: 1600}, s.Statuses())
	})
}

// insertAndUpdate writes n rows, each inserted with another content than the one that it has when it is committed.
func insertAndUpdate(ctx context.Context, s *harness.Scene, writer, n int) error {
	for i := range n {
		l := harness.Letter{ID: fmt.Sprintf("w%d-%d", writer, i), Key: fmt.Sprintf("w%d", writer), Content: `{"final":true}`}
		tx, err := s.DB.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // nothing once it is committed
		_, err = tx.ExecContext(ctx, "INSERT INTO "+s.Tables[0]+` (msg_id, topic, msg_content, status, create_time, update_time, msg_key)
			VALUES (?, ?, 'first', 0, NOW(), NOW(), ?)`, l.ID, s.Topics[0], l.Key)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE "+s.Tables[0]+" SET msg_content = ? WHERE msg_id = ?", l.Content, l.ID); err != nil {
			return err
		}
		sent := time.Now()
		if err := tx.Commit(); err != nil {
			return err
		}
		s.Enter(oracle.Committed, sent, l)
	}
	return nil
}

// TestLowIDsCommitLate: a transaction holds an id and commits after the sweeper has sent many higher ones. There is no
// stream.
func TestLowIDsCommitLate(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t)})
		s.Set("source.mode", "sweep")
		s.Start()
		late, gone := harness.Letter{ID: "late"}, harness.Letter{ID: "gone"}
		open, other := s.Session("BEGIN"), s.Session("BEGIN")
		s.Insert(open, late)
		s.Insert(other, gone)
		s.Post(s.DB, harness.Numbered("high", 100)...)
		s.Seen(100, 15*time.Second)
		eventually(t, 15*time.Second, "marked", func() bool { return s.Statuses()[1] == 100 })
		s.Exec(other, "ROLLBACK")
		s.Enter(oracle.RolledBack, time.Time{}, gone)
		s.Exec(open, "COMMIT")
		s.Enter(oracle.Committed, time.Now(), late)
		s.Exact(15*time.Second, oracle.Options{})
	})
}

// TestThreeRelaysOneSweep: three relays and 500 failed rows that are due at once; each goes out once. A row that always
// fails is tried by one relay only.
func TestThreeRelaysOneSweep(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Missing: 1})
		s.Set("retry.backoff", []string{"2s"}, "retry.jitter", 0)
		letters := harness.Numbered("due", 500)
		for i := range letters {
			letters[i].Key, letters[i].Topic = "", s.Topics[i%2]
		}
		s.PostTogether(letters...)
		s.Insert(s.DB, harness.Letter{ID: "fails", Topic: s.Missing[0]})
		s.Exec(s.DB, "UPDATE "+s.Tables[0]+" SET status = 2, retry_count = 1, next_retry_time = NOW() - INTERVAL 1 SECOND")
		begun := time.Now()
		relays := []*harness.Relay{s.Launch(), s.Launch(), s.Launch()}
		s.Seen(500, 20*time.Second)
		pass(t.Context(), 5*time.Second)
		tries := s.Number("SELECT retry_count FROM " + s.Tables[0] + " WHERE msg_id = 'fails'")
		most := 2 + int((time.Since(begun)+time.Second)/(2*time.Second)) // the first interval is up to a second shorter: times are whole seconds
		assert.LessOrEqual(t, tries, most, "one try in an interval")
		assert.Greater(t, tries, 1)
		s.Exec(s.DB, "DELETE FROM "+s.Tables[0]+" WHERE msg_id = 'fails'")
		s.Exact(15*time.Second, oracle.Options{Retries: true})
		for _, relay := range relays {
			relay.Kill() // at once, or they would hand the lead on
		}
	})
}

// TestPoisonRowsFillTheBatch: the oldest rows are more than a batch and can't go. The ones behind them do, soon, and the
// poison ends in its time.
func TestPoisonRowsFillTheBatch(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Missing: 3})
		s.Set("sweep.batch", 100, "retry.backoff", []string{"200ms"}, "retry.max_retries", 2)
		silent := s.Session("SET SESSION sql_log_bin = 0")
		for i := range 150 {
			s.Post(silent, harness.Letter{ID: fmt.Sprintf("poison-%d", i), Topic: s.Missing[i%3], Unlogged: true})
		}
		for i := range 50 {
			s.Post(silent, harness.Letter{ID: fmt.Sprintf("good-%d", i), Unlogged: true})
		}
		s.Start()
		begun := time.Now()
		s.Seen(50, 10*time.Second)
		t.Logf("the good rows took %s", time.Since(begun).Round(10*time.Millisecond))
		assert.LessOrEqual(t, s.Number("SELECT MAX(retry_count) FROM "+s.Tables[0]), 3)
		eventually(t, 10*time.Second, "the oldest poison dead", func() bool { return s.Statuses()[4] > 0 })
		assert.Equal(t, 50, s.Statuses()[1])
		s.Quiet()
		assert.Equal(t, 50, s.Log.Len())
	})
}

// TestConsumerReportsBeforeTheMark: a consumer that reports back at once leaves the relay nothing to mark: no row is
// changed by its UPDATE. That is neither an error nor a reason to send again.
func TestConsumerReportsBeforeTheMark(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t)})
		s.Set("limits.mark_delay", "1s") // so that the consumer is the faster one
		relay := s.Start()
		s.Post(s.DB, harness.Numbered("m", 50)...)
		s.Seen(50, 15*time.Second)
		s.Exec(s.DB, "UPDATE "+s.Tables[0]+" SET status = 3")
		s.CaughtUp(15 * time.Second)
		assert.Equal(t, map[int]int{3: 50}, s.Statuses())
		s.Exact(10*time.Second, oracle.Options{})
		assert.NotContains(t, relay.Log(), `"level":"error"`)
	})
}

// TestSweepingBlocksNoWriter: Kafka stands still while a batch is claimed. The relay holds no transaction meanwhile, and
// fifty writers do not notice.
func TestSweepingBlocksNoWriter(t *testing.T) {
	t.Parallel()
	kafka := rig.Kafka(t, rig.Own())
	for name, sql := range map[string]*rig.Server{"MySQL": rig.MySQL(t), "MariaDB": rig.MariaDB(t)} {
		s := harness.NewScene(t, harness.Cast{SQL: sql, Kafka: kafka})
		s.Start()
		s.Post(s.DB, harness.Letter{ID: "opens"})
		s.Seen(1, 15*time.Second)
		silent := s.Session("SET SESSION sql_log_bin = 0")
		kafka.Pause(t)
		for i := range 500 {
			s.Post(silent, harness.Letter{ID: fmt.Sprintf("swept-%d", i), Unlogged: true})
		}
		eventually(t, 15*time.Second, "a batch claimed", func() bool {
			return s.Number("SELECT COUNT(*) FROM "+s.Tables[0]+" WHERE status = 0 AND next_retry_time > NOW()") > 0
		})
		slowest := insertAll(t, s, 50)
		t.Logf("%s: the slowest of 50 writers took %s", name, slowest)
		assert.Less(t, slowest, 2*time.Second)
		for _, session := range rig.Sessions(t, s.DB) {
			if session.User != s.User {
				continue
			}
			old := fmt.Sprintf("trx_mysql_thread_id = %d AND trx_started < NOW() - INTERVAL 1 SECOND", session.ID)
			assert.Zero(t, rig.Transactions(t, s.DB, old), "no transaction of the relay's is open")
		}
		kafka.Resume(t)
		s.Exact(60*time.Second, oracle.Options{Duplicates: true})
	}
}

// insertAll has writers insert at once and returns how long the slowest took.
func insertAll(t *testing.T, s *harness.Scene, writers int) time.Duration {
	t.Helper()
	took := make([]time.Duration, writers)
	all, ctx := errgroup.WithContext(t.Context())
	for w := range writers {
		all.Go(func() error {
			for i := range 5 {
				begun := time.Now()
				l := harness.Letter{ID: fmt.Sprintf("writer-%d-%d", w, i)}
				_, err := s.DB.ExecContext(ctx, "INSERT INTO "+s.Tables[0]+` (msg_id, topic, msg_content, status, create_time, update_time)
					VALUES (?, ?, ?, 0, NOW(), NOW())`, l.ID, s.Topics[0], `{"id":"`+l.ID+`"}`)
				if err != nil {
					return err
				}
				took[w] = max(took[w], time.Since(begun))
				s.Enter(oracle.Committed, begun, l)
			}
			return nil
		})
	}
	require.NoError(t, all.Wait())
	return slices.Max(took)
}
