//go:build !unit

package stories

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/test/harness"
)

// kickedWithin is how long a row that only the sweeper can see may take once the stream has told of it. The promise is two
// seconds (make bench holds that); here it is what no interval explains and no loaded machine breaks.
const kickedWithin = 20 * time.Second

// unseen is a scene whose sweeper sleeps for long, so that only a kick explains a delivery, with a relay that has nothing to
// do: its topics are open and its start is over.
type unseen struct {
	*harness.Scene
	t      *testing.T
	relay  *harness.Relay
	within time.Duration
	seen   int
	want   map[string]int // rows recovered, by reason
}

func newUnseen(t *testing.T, c harness.Cast, within time.Duration, prepare func(*harness.Scene)) *unseen {
	t.Helper()
	s := harness.NewScene(t, c)
	s.Set("sweep.interval", "10m", "sweep.grace", "5s")
	if prepare != nil {
		prepare(s)
	}
	u := &unseen{Scene: s, t: t, within: within, relay: s.Start(), want: map[string]int{}}
	for i, topic := range s.Topics {
		s.Post(s.DB, harness.Letter{ID: fmt.Sprintf("opens-%d", i), Topic: topic})
	}
	u.seen = len(s.Topics)
	s.Seen(u.seen, 15*time.Second)
	s.CaughtUp(15 * time.Second)
	return u
}

// hidden inserts a row in another status, which is none of the relay's business yet.
func (u *unseen) hidden(db harness.Execer, id, columns, values string) harness.Letter {
	u.t.Helper()
	l := harness.Letter{ID: id, Topic: u.Topics[0], Content: fmt.Sprintf(`{"id":%q}`, id), Unlogged: true}
	u.Exec(db, "INSERT INTO "+u.Tables[0]+" (msg_id, topic, msg_content, create_time, update_time, "+columns+") VALUES (?, ?, ?, NOW(), NOW(), "+values+")",
		l.ID, l.Topic, l.Content)
	return l
}

// kicked does what makes rows due, and waits until they are delivered, which nothing but a kick brings about in time.
func (u *unseen) kicked(reason string, do func(), letters ...harness.Letter) {
	u.t.Helper()
	do()
	begun := time.Now()
	u.Enter(oracle.Committed, begun, letters...)
	u.want[reason] += len(letters)
	u.seen += len(letters)
	u.Seen(u.seen, u.within)
	u.t.Logf("%s: %d delivered %s after the commit", reason, len(letters), time.Since(begun).Round(time.Millisecond))
}

// verdict judges: everything delivered once, and the reasons counted as they are known.
func (u *unseen) verdict(opts oracle.Options) {
	u.t.Helper()
	total := 0
	for _, n := range u.want {
		total += n
	}
	v := u.Exact(20*time.Second, opts)
	assert.Equal(u.t, total, v.Swept)
	u.reasons(u.relay, u.want)
}

// reasons compares what a relay has counted, in its metrics and in its status.
func (u *unseen) reasons(relay *harness.Relay, want map[string]int) {
	u.t.Helper()
	requireReasons(u.t, relay, want)
}

func requireReasons(t *testing.T, relay *harness.Relay, want map[string]int) {
	t.Helper()
	got, total := map[string]int{}, 0
	for _, reason := range words.Missed() {
		if n := int(metric(relay, "stream_missed_total", "reason", reason)); n != 0 {
			got[reason] = n
		}
	}
	for _, n := range want {
		total += n
	}
	assert.Equal(t, want, got)
	_, body := relay.Fetch("/api/v1/status")
	compact := strings.Join(strings.Fields(body), "")
	assert.Contains(t, compact, fmt.Sprintf(`"sweeper_recovered":%d,"unexplained":%d`, total, want[words.MissedUnexplained]))
}

// TestHandSetRowsAreDeliveredAtOnce: whoever makes a row due by an UPDATE does not wait for the sweeper's interval.
func TestHandSetRowsAreDeliveredAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) { handSetRows(t, start, kickedWithin) })
}

func handSetRows(t *testing.T, start starter, within time.Duration) {
	t.Helper()
	u := newUnseen(t, harness.Cast{SQL: start(t)}, within, nil)
	update := func(statement string) func() {
		return func() { u.Exec(u.DB, "UPDATE "+u.Tables[0]+" SET "+statement) }
	}
	const later = "NOW() + INTERVAL 1 HOUR"
	one := u.hidden(u.DB, "sent-0", "status", "1")
	u.kicked("update", update("status = 0 WHERE msg_id = 'sent-0'"), one)
	var many []harness.Letter
	for i := range 20 {
		many = append(many, u.hidden(u.DB, fmt.Sprintf("many-%02d", i), "status", fmt.Sprint(1+2*(i%2))))
	}
	u.kicked("update", update("status = 0 WHERE msg_id LIKE 'many-%'"), many...)

	failed := u.hidden(u.DB, "failed-null", "status, retry_count, next_retry_time", "2, 5, "+later)
	u.kicked("update", update("status = 0, next_retry_time = NULL WHERE msg_id = 'failed-null'"), failed)
	due := u.hidden(u.DB, "failed-due", "status, retry_count, next_retry_time", "2, 5, "+later)
	u.kicked("update", update("status = 0, next_retry_time = NOW() - INTERVAL 1 MINUTE WHERE msg_id = 'failed-due'"), due)
	again := u.hidden(u.DB, "failed-again", "status, retry_count, next_retry_time", "2, 5, "+later)
	u.kicked("update", update("next_retry_time = NULL WHERE msg_id = 'failed-again'"), again)
	dead := u.hidden(u.DB, "dead", "status, retry_count", "4, 17")
	u.kicked("update", update("status = 2 WHERE msg_id = 'dead'"), dead)
	consumed := u.hidden(u.DB, "consumed", "status", "3")
	u.kicked("update", update("status = 2, next_retry_time = NOW() WHERE msg_id = 'consumed'"), consumed)
	minimal := u.Session("SET SESSION binlog_row_image = MINIMAL")
	small := u.hidden(u.DB, "minimal", "status", "1")
	u.kicked("update", func() { u.Exec(minimal, "UPDATE "+u.Tables[0]+" SET status = 0 WHERE msg_id = 'minimal'") }, small)
	u.verdict(oracle.Options{Retries: true}) // as they were written
}

// TestUpsertsAreDeliveredAtOnce: an ON DUPLICATE KEY UPDATE that meets a row, and a REPLACE of one.
func TestUpsertsAreDeliveredAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		u := newUnseen(t, harness.Cast{SQL: start(t)}, kickedWithin, nil)
		columns := " INTO " + u.Tables[0] + " (msg_id, topic, msg_content, status, create_time, update_time) VALUES (?, ?, ?, 0, NOW(), NOW())"
		hit := u.hidden(u.DB, "upserted", "status", "1")
		u.kicked("update", func() {
			u.Exec(u.DB, "INSERT"+columns+" ON DUPLICATE KEY UPDATE status = 0", hit.ID, hit.Topic, "other")
		}, hit)
		// A REPLACE is logged as a row deleted and one inserted, which the stream brings, or as an UPDATE.
		replaced := u.hidden(u.DB, "replaced", "status", "3")
		replaced.Content = `{"new":1}`
		u.Exec(u.DB, "REPLACE"+columns, replaced.ID, replaced.Topic, replaced.Content)
		u.Enter(oracle.Committed, time.Now(), replaced)
		u.seen++
		u.Seen(u.seen, kickedWithin)
		v := u.Exact(20*time.Second, oracle.Options{})
		assert.Contains(t, []int{1, 2}, v.Swept)
		requireReasons(t, u.relay, map[string]int{"update": v.Swept})
	})
}

// TestDelayedRowsAreFoundBehindAClosedTopic that has so many rows that looking past them takes longer than it is until the next sweep is
// asked for.
func TestDelayedRowsAreFoundBehindAClosedTopic(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		u := newUnseen(t, harness.Cast{SQL: start(t), Missing: 1}, kickedWithin, nil)
		u.Post(u.DB, harness.Letter{ID: "closes", Topic: u.Missing[0]})
		session := u.Session("SET SESSION sql_log_bin = 0, unique_checks = 0")
		digits := "(SELECT 0 d"
		for d := 1; d < 10; d++ {
			digits += fmt.Sprintf(" UNION ALL SELECT %d", d)
		}
		digits += ")"
		u.Exec(session, fmt.Sprintf(`INSERT INTO %s (msg_id, topic, msg_content, status, next_retry_time, create_time, update_time)
			SELECT CONCAT('fill-', a.d, b.d, c.d, e.d, f.d, g.d), ?, '{}', 0, NOW() - INTERVAL 1 HOUR, NOW(), NOW()
			FROM %[2]s a, %[2]s b, %[2]s c, %[2]s e, %[2]s f, %[2]s g WHERE a.d < 1`, u.Tables[0], digits), u.Missing[0])
		due := time.Now().Add(3 * time.Second)
		u.Post(u.DB, harness.Letter{ID: "delayed", Due: due})
		tick := time.NewTicker(150 * time.Millisecond)
		defer tick.Stop()
		for i := 0; time.Since(due) < time.Minute && u.Log.Seen("delayed") == 0; i++ {
			kicked := u.hidden(u.DB, fmt.Sprintf("kick-%03d", i), "status", "1")
			u.Exec(u.DB, "UPDATE "+u.Tables[0]+" SET status = 0 WHERE msg_id = ?", kicked.ID)
			u.Enter(oracle.Committed, time.Now(), kicked)
			<-tick.C
		}
		t.Logf("seen %s after its time", time.Since(due).Round(time.Millisecond))
		assert.Equal(t, 1, u.Log.Seen("delayed"))
		u.Exec(session, "DELETE FROM "+u.Tables[0]+" WHERE msg_id LIKE 'fill-%'")
		u.Cast.Kafka.CreateTopic(t, u.Missing[0], 1, nil)
		u.Exact(60*time.Second, oracle.Options{Retries: true, Tolerance: time.Minute})
	})
}

// TestSentRowSetBackIsSentOnceMore: the copy is what the person wanted, and it is one.
func TestSentRowSetBackIsSentOnceMore(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		u := newUnseen(t, harness.Cast{SQL: start(t)}, kickedWithin, nil)
		u.Post(u.DB, harness.Numbered("m", 10)...)
		u.Seen(u.seen+10, 15*time.Second)
		eventually(t, 15*time.Second, "all marked", func() bool { return u.Statuses()[1] == u.seen+10 })
		u.Exec(u.DB, "UPDATE "+u.Tables[0]+" SET status = 0 WHERE msg_id IN ('m-0003', 'm-0007')")
		eventually(t, kickedWithin, "sent once more", func() bool { return u.Log.Len() >= u.seen+12 })
		v := u.Exact(20*time.Second, oracle.Options{Duplicates: true})
		assert.Equal(t, u.seen+12, v.Records)
		assert.Equal(t, 2, u.Log.Seen("m-0003"))
		assert.Equal(t, 2, u.Log.Seen("m-0007"))
		requireReasons(t, u.relay, map[string]int{"update": 2})
	})
}

// TestStatementsAreDeliveredAtOnce: the binlog has the statement only.
func TestStatementsAreDeliveredAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		u := newUnseen(t, harness.Cast{SQL: start(t)}, kickedWithin, nil)
		session := u.Session("SET SESSION binlog_format = 'STATEMENT'")
		var letters []harness.Letter
		for i := range 3 {
			letters = append(letters, harness.Letter{ID: fmt.Sprintf("statement-%d", i), Unlogged: true})
		}
		u.kicked("statement", func() {
			u.Exec(session, "BEGIN")
			for _, l := range letters {
				u.Insert(session, l)
			}
			u.Exec(session, "COMMIT")
		}, letters...)
		u.verdict(oracle.Options{})
		assert.InDelta(t, 3, metric(u.relay, "stream_skipped_total", "reason", "statement"), 0)
	})
}

// TestExchangedPartitionIsDeliveredAtOnce: rows come into the table by a DDL statement.
func TestExchangedPartitionIsDeliveredAtOnce(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		const columns = ` (id BIGINT AUTO_INCREMENT PRIMARY KEY, msg_id VARCHAR(64) NOT NULL, topic VARCHAR(64) NOT NULL, msg_content TEXT NOT NULL,
			status TINYINT NOT NULL, retry_count INT DEFAULT 0, next_retry_time DATETIME, create_time DATETIME NOT NULL, update_time DATETIME NOT NULL,
			msg_key VARCHAR(64), headers TEXT, last_error TEXT, KEY idx_status_retry (status, next_retry_time))`
		var staging string
		u := newUnseen(t, harness.Cast{SQL: start(t)}, kickedWithin, func(s *harness.Scene) {
			staging = s.Database + ".staging"
			s.Exec(s.DB, "DROP TABLE "+s.Tables[0])
			s.Exec(s.DB, "CREATE TABLE "+s.Tables[0]+columns+" PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN (1000000), PARTITION p1 VALUES LESS THAN MAXVALUE)")
			s.Exec(s.DB, "ALTER TABLE "+s.Tables[0]+" AUTO_INCREMENT = 1000001")
			s.Exec(s.DB, "CREATE TABLE "+staging+columns)
		})
		var letters []harness.Letter
		for i := range 5 {
			l := harness.Letter{ID: fmt.Sprintf("exchanged-%d", i), Table: staging}
			u.Insert(u.DB, l)
			l.Table, l.Unlogged, l.Content = u.Tables[0], true, fmt.Sprintf(`{"id":%q}`, l.ID)
			letters = append(letters, l)
		}
		u.kicked("ddl", func() { u.Exec(u.DB, "ALTER TABLE "+u.Tables[0]+" EXCHANGE PARTITION p0 WITH TABLE "+staging) }, letters...)
		u.verdict(oracle.Options{})
	})
}

// TestUnexplainedIsWhatTheBinlogDoesNotHave: of the rows in the table, exactly those that were not logged are unexplained, also
// while updates and XA transactions that explain themselves go by.
func TestUnexplainedIsWhatTheBinlogDoesNotHave(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		u := newUnseen(t, harness.Cast{SQL: start(t)}, kickedWithin, func(s *harness.Scene) { s.Sweeping() })
		silent := u.Session("SET SESSION sql_log_bin = 0")
		for i := range 25 {
			u.Post(silent, harness.Letter{ID: fmt.Sprintf("unlogged-%d", i), Unlogged: true})
			u.Post(u.DB, harness.Letter{ID: fmt.Sprintf("logged-%d", i)})
			if i%5 == 0 {
				l := u.hidden(u.DB, fmt.Sprintf("updated-%d", i), "status", "1")
				u.Exec(u.DB, "UPDATE "+u.Tables[0]+" SET status = 0 WHERE msg_id = ?", l.ID)
				u.Enter(oracle.Committed, time.Now(), l)
			}
		}
		u.want = map[string]int{words.MissedUnexplained: 25, words.MissedUpdate: 5}
		u.verdict(oracle.Options{})
		assert.Zero(t, metric(u.relay, "sweep_sent_total"), "nothing of it is the sweeper's by design")
	})
}

// TestDesignedSweepsAreNotMissed: retries, rows of a topic that was missing, and delayed messages come at their time, however long
// the sweeper sleeps, and count apart.
func TestDesignedSweepsAreNotMissed(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		u := newUnseen(t, harness.Cast{SQL: start(t), Missing: 1}, kickedWithin, func(s *harness.Scene) {
			s.Set("retry.backoff", []string{"1s"}, "retry.jitter", 0, "sweep.interval", "24h", "sweep.grace", "1h")
		})
		letters := harness.Numbered("waits", 20)
		for i := range letters {
			letters[i].Topic = u.Missing[0]
		}
		u.Post(u.DB, letters...)
		u.Post(u.DB, harness.Letter{ID: "delayed", Due: time.Now().Add(10 * time.Second)})
		// On a busy machine the stream lags, and then the sweeper leaves its turns out.
		eventually(t, 90*time.Second, "tried three times", func() bool { return u.Number("SELECT MAX(retry_count) FROM "+u.Tables[0]) >= 3 })
		u.Cast.Kafka.CreateTopic(t, u.Missing[0], 1, nil)
		u.Exact(30*time.Second, oracle.Options{Retries: true, Tolerance: 5 * time.Second}) // no interval is as short
		requireReasons(t, u.relay, map[string]int{})
		assert.Positive(t, metric(u.relay, "sweep_sent_total", "reason", words.SweptDeferred))
		assert.Positive(t, metric(u.relay, "sweep_sent_total", "reason", words.SweptRetry))
		assert.InDelta(t, 1, metric(u.relay, "sweep_sent_total", "reason", words.SweptDelayed), 0)
	})
}
