//go:build !unit

package cli_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/cmd/cli"
	"example.com/outbox-relay/internal/demo/consume"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

type archived struct {
	DryRun bool `json:"dry_run"`
	Moved  int
	Tables []struct {
		Table string
		Moved int
	}
}

// attic is a table with old consumed messages beside others, and a user who may make its history.
func attic(t *testing.T, server *rig.Server, kafka *rig.KafkaServer, topic string) *scene {
	t.Helper()
	s := newScene(t, server, kafka)
	s.exec(fmt.Sprintf("GRANT CREATE, ALTER ON `%s`.* TO '%s'@'%%'", s.database, s.settings["source.primary.user"]))
	for i := range 3 {
		s.insert(fmt.Sprint("old-", i), topic, "status=3, headers=?", `{"a":"b"}`)
	}
	s.insert("sent", topic, "status=1")
	s.insert("dead", topic, "status=4")
	s.insert("discarded", topic, "status=5")
	s.exec("UPDATE " + s.table + " SET create_time=NOW()-INTERVAL 30 DAY, update_time=NOW()-INTERVAL 29 DAY")
	s.insert("young", topic, "status=3")
	return s
}

func (s *scene) count(query string) (n int) {
	s.t.Helper()
	require.NoError(s.t, s.db.QueryRowContext(s.t.Context(), "SELECT COUNT(*) FROM "+query).Scan(&n), query)
	return n
}

// A dry run counts and leaves everything; the archive moves what is consumed and old, and nothing else, and says so.
func TestArchive(t *testing.T) {
	flavors(t, func(t *testing.T, server *rig.Server) {
		s := attic(t, server, nil, "orders")
		assert.Contains(t, s.fails(cli.ExitUsage, "archive"), "archive.enabled")
		var r archived
		s.json(&r, "archive", "--dry-run")
		assert.True(t, r.DryRun)
		assert.Equal(t, 3, r.Moved)
		assert.Regexp(t, `would move +3 rows`, s.ok("archive", "--dry-run"))
		assert.Equal(t, 7, s.count(s.table))
		assert.Zero(t, s.count("information_schema.tables WHERE table_schema='"+s.database+"' AND table_name LIKE '%history'"))

		s.with("archive.enabled", true)
		r = archived{}
		s.json(&r, "archive")
		assert.False(t, r.DryRun)
		assert.Equal(t, 3, r.Moved)
		require.Len(t, r.Tables, 1)
		assert.Equal(t, s.table, r.Tables[0].Table)
		assert.Equal(t, 4, s.count(s.table+" WHERE msg_id IN ('sent','dead','discarded','young')"))
		assert.Equal(t, 4, s.count(s.table))
		assert.Equal(t, 3, s.count(s.table+"_history WHERE msg_id LIKE 'old-%' AND archived_at>=NOW()-INTERVAL 1 HOUR"))
		assert.Regexp(t, `moved +0 rows`, s.ok("archive"), "again")
	})
}

// An archived message is shown, and comes back when somebody says yes: it goes out with a header that tells so.
func TestResendFromHistory(t *testing.T) {
	flavors(t, func(t *testing.T, server *rig.Server) {
		kafka := rig.Kafka(t)
		topic := kafka.Topic(t, 1)
		s := attic(t, server, kafka, topic)
		s.with("archive.enabled", true)
		s.ok("archive")
		out := s.ok("messages", "show", "old-1")
		assert.Contains(t, out, "a consumer has reported back")
		assert.Contains(t, out, "outbox-relay messages resend --from-history old-1 --yes")
		assert.NotContains(t, out, `{"a":1}`)
		assert.Contains(t, s.ok("messages", "show", "old-1", "--content"), `{"a":1}`)

		var r deskResult
		assert.Contains(t, s.fails(cli.ExitUsage, "messages", "resend", "old-1"), "--from-history")
		o := s.run("messages", "resend", "--from-history", "old-1")
		require.Equal(t, cli.ExitOK, o.code, o.err)
		assert.Contains(t, o.out, "1 message would be sent again")
		assert.Contains(t, o.err, "run it again with --yes")
		assert.Zero(t, s.count(s.table+" WHERE msg_id='old-1'"))
		assert.Equal(t, 3, s.count(s.table+"_history"))
		assert.Contains(t, s.fails(cli.ExitFailed, "messages", "resend", "--from-history", "young", "--yes"), "no archived message")

		s.json(&r, "messages", "resend", "--from-history", "old-1", "--yes", "--reason", "ticket 4711")
		assert.True(t, r.Applied)
		assert.Equal(t, 1, s.count(s.table+" WHERE msg_id='old-1' AND status=0 AND last_error LIKE '%ticket 4711'"))
		assert.Zero(t, s.count(s.table+"_history WHERE msg_id='old-1'"))
		s.ok("sweep")
		status, _ := s.status("old-1")
		assert.Equal(t, 1, status)
		records := consumed(t, kafka, topic, 1)
		require.Len(t, records, 1)
		assert.Equal(t, "old-1", records[0].MsgID)
		assert.Equal(t, "1", records[0].Headers["outbox_resend"])
		assert.Equal(t, "b", records[0].Headers["a"])
	})
}

// consumed reads a topic until so many records have come.
func consumed(t *testing.T, kafka *rig.KafkaServer, topic string, n int) []oracle.Record {
	t.Helper()
	log := oracle.NewLog()
	consumer, err := consume.Open(consume.Config{Brokers: kafka.Brokers, Topics: []string{topic}}, log)
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1) // size 1: the consumer must be able to leave
	go func() { ended <- consumer.Run(ctx) }()
	harness.Eventually(t, 30*time.Second, "records consumed", func() (bool, string) { return log.Distinct() >= n, "" })
	cancel()
	require.NoError(t, <-ended)
	return log.Records()
}
