//go:build !unit

package stories

import (
	"bytes"
	"fmt"
	"io"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/test/harness"
)

// TestPreparedThenRolledBack: the binlog has the rows of a transaction that was prepared and then rolled back. Those of
// one that is committed are the sweeper's.
func TestPreparedThenRolledBack(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t)})
		relay := s.Start()
		gone, kept := harness.Letter{ID: "rolled-back"}, harness.Letter{ID: "committed", Unlogged: true}
		for i, l := range []harness.Letter{gone, kept} {
			xid := fmt.Sprintf("'%s-%d'", s.Source, i)
			session := s.Session("XA START " + xid)
			s.Insert(session, l)
			s.Exec(session, "XA END "+xid)
			s.Exec(session, "XA PREPARE "+xid)
			s.Post(s.DB, harness.Letter{ID: fmt.Sprintf("while-prepared-%d", i)})
			s.Seen(2*i+1, 15*time.Second)
			if l == gone {
				s.Exec(session, "XA ROLLBACK "+xid)
				s.Enter(oracle.RolledBack, time.Time{}, l)
			} else {
				s.Exec(session, "XA COMMIT "+xid)
				s.Enter(oracle.Committed, time.Now(), l)
			}
			s.Post(s.DB, harness.Letter{ID: fmt.Sprintf("after-%d", i)})
			s.Seen(2*i+2, 15*time.Second)
		}
		v := s.Exact(20*time.Second, oracle.Options{})
		assert.Equal(t, 1, v.Swept)
		assert.Positive(t, metric(relay, "stream_missed_total"))
	})
}

// TestSavepointsUnderKills: what is behind a savepoint that was rolled back to is never sent, wherever the relay dies.
func TestSavepointsUnderKills(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Silent: true})
		relay := s.Start()
		s.CaughtUp(15 * time.Second) // a relay that dies before it has saved a position leaves everything to the sweeper
		next := 20 + rand.IntN(50)
		for i := range 200 {
			names := [3]harness.Letter{}
			for j := range names {
				names[j] = harness.Letter{ID: fmt.Sprintf("sp%d-%03d", j+1, i), Key: "k"}
			}
			tx, err := s.DB.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			s.Insert(tx, names[0])
			s.Exec(tx, "SAVEPOINT s1")
			s.Insert(tx, names[1])
			s.Exec(tx, "ROLLBACK TO SAVEPOINT s1")
			s.Insert(tx, names[2])
			sent := time.Now()
			require.NoError(t, tx.Commit())
			s.Enter(oracle.Committed, sent, names[0], names[2])
			s.Enter(oracle.RolledBack, sent, names[1])
			if i == next {
				relay.Kill()
				s.Look()
				relay = s.Start()
				next += 20 + rand.IntN(50)
			}
		}
		v := s.Exact(30*time.Second, oracle.Options{Duplicates: true})
		s.ByStream(v)
	})
}

// TestUpsertsCarryTheLatestContent: a row that becomes pending again by an upsert gets out with its latest content.
func TestUpsertsCarryTheLatestContent(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t)})
		s.Start()
		upsert := "INSERT INTO " + s.Tables[0] + ` (msg_id, topic, msg_content, status, create_time, update_time)
			VALUES (?, ?, ?, 0, NOW(), NOW()) ON DUPLICATE KEY UPDATE topic = VALUES(topic), msg_content = VALUES(msg_content), status = 0`
		s.Post(s.DB, harness.Letter{ID: "ignored"}, harness.Letter{ID: "plain"})
		s.Exec(s.DB, upsert, "new", s.Topics[0], `{"id":"new"}`)
		s.Enter(oracle.Committed, time.Now(), harness.Letter{ID: "new"})
		// An update is not the stream's business, so no checkpoint covers it (which the ledger calls unlogged).
		// Two messages that are held back by their due time, so that each is sent once and as it stands at last.
		for _, id := range []string{"updated", "replaced"} {
			s.Insert(s.DB, harness.Letter{ID: id, Content: `{"old":1}`, Due: time.Now().Add(time.Hour)})
		}
		s.Exec(s.DB, upsert+", next_retry_time = NULL", "updated", s.Topics[1], `{"new":1}`)
		s.Exec(s.DB, "REPLACE INTO "+s.Tables[0]+` (msg_id, topic, msg_content, status, create_time, update_time)
			VALUES ('replaced', ?, '{"new":2}', 0, NOW(), NOW())`, s.Topics[1])
		s.Enter(oracle.Committed, time.Now(),
			harness.Letter{ID: "updated", Topic: s.Topics[1], Content: `{"new":1}`, Unlogged: true},
			harness.Letter{ID: "replaced", Topic: s.Topics[1], Content: `{"new":2}`, Unlogged: true})
		s.Exec(s.DB, "INSERT IGNORE INTO "+s.Tables[0]+` (msg_id, topic, msg_content, status, create_time, update_time)
			VALUES ('ignored', ?, 'other', 0, NOW(), NOW())`, s.Topics[1])
		s.Exact(20*time.Second, oracle.Options{})
	})
}

// TestManyRowsInOneEvent: killed while the rows of one event are on their way, the relay sends the rest of them.
func TestManyRowsInOneEvent(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Silent: true, Topics: 1})
		s.Set("limits.in_flight", 100, "limits.unmarked", 100, "limits.mark_batch", 50)
		relay := s.Start()
		s.CaughtUp(15 * time.Second)
		relay.Kill()
		columns := " (msg_id, topic, msg_content, status, create_time, update_time, msg_key) "

		tuples := harness.Numbered("tuple", 500)
		var values bytes.Buffer
		for i, l := range tuples {
			fmt.Fprintf(&values, "%c('%s', '%s', '{\"id\":\"%s\"}', 0, NOW(), NOW(), 'k')", " ,"[min(i, 1)], l.ID, s.Topics[0], l.ID)
		}
		s.Exec(s.DB, "INSERT INTO "+s.Tables[0]+columns+"VALUES "+values.String())
		s.Enter(oracle.Committed, time.Now(), tuples...)
		diesInside(t, s, "tuple-0250", 200)

		selected := harness.Numbered("select", 500)
		s.Exec(s.DB, "INSERT INTO "+s.Tables[0]+columns+"SELECT REPLACE(msg_id, 'tuple', 'select'), topic,"+
			" REPLACE(msg_content, 'tuple', 'select'), 0, NOW(), NOW(), msg_key FROM "+s.Tables[0]+" ORDER BY id")
		s.Enter(oracle.Committed, time.Now(), selected...)
		diesInside(t, s, "select-0250", 700)

		loaded := harness.Numbered("load", 1000)
		var file bytes.Buffer
		for _, l := range loaded {
			fmt.Fprintf(&file, "%s\t%s\t{\"id\":\"%s\"}\t0\t2026-01-02 03:04:05\t2026-01-02 03:04:05\tk\n", l.ID, s.Topics[0], l.ID)
		}
		mysql.RegisterReaderHandler(s.Source, func() io.Reader { return bytes.NewReader(file.Bytes()) })
		defer mysql.DeregisterReaderHandler(s.Source)
		s.Exec(s.DB, "LOAD DATA LOCAL INFILE 'Reader::"+s.Source+"' INTO TABLE "+s.Tables[0]+columns)
		s.Enter(oracle.Committed, time.Now(), loaded...)
		diesInside(t, s, "load-0500", 1400)
		s.Start()
		v := s.Exact(30*time.Second, oracle.Options{Duplicates: true})
		s.ByStream(v)
	})
}

// diesInside runs a relay that can't mark one row, so that it comes to a stand inside a transaction when its windows are
// full, and kills it once so many messages are out.
func diesInside(t *testing.T, s *harness.Scene, locked string, seen int) {
	t.Helper()
	session := s.Session("BEGIN", "SELECT id FROM "+s.Tables[0]+" WHERE msg_id = '"+locked+"' FOR UPDATE")
	relay := s.Start()
	s.Seen(seen, 20*time.Second)
	relay.Kill()
	s.Exec(session, "ROLLBACK")
	s.Look()
}

// TestNeverBinlogged: the stream can't know of such rows and must not pretend to; the sweeper sends them.
func TestNeverBinlogged(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		s := harness.NewScene(t, harness.Cast{SQL: start(t), Silent: true})
		relay := s.Start()
		s.CaughtUp(15 * time.Second) // what is pending at a start without a position is the sweeper's, logged or not
		silent := s.Session("SET SESSION sql_log_bin = 0")
		for i := range 10 {
			s.Post(silent, harness.Letter{ID: fmt.Sprintf("unlogged-%d", i), Unlogged: true})
			s.Post(s.DB, harness.Letter{ID: fmt.Sprintf("logged-%d", i)})
		}
		eventually(t, 15*time.Second, "the logged rows sent", func() bool { return s.Statuses()[1] == 10 })
		s.Quiet()
		assert.Equal(t, map[int]int{0: 10, 1: 10}, s.Statuses(), "without the sweeper they stay as they are")
		code, _ := relay.Stop()
		assert.Zero(t, code)
		s.Sweeping()
		relay = s.Start()
		v := s.Exact(15*time.Second, oracle.Options{})
		assert.Equal(t, 10, v.Swept)
		requireReasons(t, relay, map[string]int{words.MissedStart: 10}) // what another process has not known is no alarm
	})
}
