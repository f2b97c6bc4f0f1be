//go:build !unit

package cli_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/rig"
)

type unconsumed struct {
	Messages []struct {
		MsgID   string   `json:"msg_id"`
		Reports []string `json:"reported_by"`
		Missing []string
	}
	Complete bool
}

func (u unconsumed) names() []string {
	names := []string{}
	for _, m := range u.Messages {
		names = append(names, m.MsgID)
	}
	return names
}

func TestMessagesUnconsumed(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]*rig.Server{"mysql": rig.MySQL(t), "mariadb": rig.MariaDB(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScene(t, server, nil)
			s.with("acks.enabled", true, "acks.groups", map[string]any{"orders": []string{"points", "logistics"}, "bills": []string{"billing"}})
			sent := "status=1, update_time=NOW()-INTERVAL 2 HOUR"
			s.insertSent("old", "orders", sent)
			s.insertSent("half", "orders", sent)
			s.insertSent("bill", "bills", sent)
			s.insertSent("loose", "others", sent)
			s.insertSent("new", "orders", "status=1")
			s.insertSent("done", "orders", "status=3, update_time=NOW()-INTERVAL 2 HOUR")
			s.insertSent("pending", "orders", "status=0, update_time=NOW()-INTERVAL 2 HOUR")
			var u unconsumed
			s.json(&u, "messages", "list", "--unconsumed-for", "1h") // no table of reports yet
			assert.Equal(t, []string{"old", "half", "bill", "loose"}, u.names())
			assert.True(t, u.Complete)

			assert.Contains(t, s.ok("init", "--print-sql"), "CREATE TABLE IF NOT EXISTS `"+s.database+"`.`local_message_ack`")
			s.exec("CREATE TABLE " + s.table + "_ack (msg_id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL, consumer_group VARCHAR(255) NOT NULL," +
				" reported_at DATETIME NOT NULL, PRIMARY KEY (msg_id, consumer_group))")
			s.exec("INSERT INTO " + s.table + "_ack VALUES ('half','points',NOW())")
			s.json(&u, "messages", "list", "--unconsumed-for", "1h", "--topic", "orders")
			require.Equal(t, []string{"old", "half"}, u.names())
			assert.Empty(t, u.Messages[0].Reports)
			assert.Equal(t, []string{"points", "logistics"}, u.Messages[0].Missing)
			assert.Equal(t, []string{"points"}, u.Messages[1].Reports)
			assert.Equal(t, []string{"logistics"}, u.Messages[1].Missing)
			text := s.ok("messages", "list", "--unconsumed-for", "1h", "--limit", "1")
			assert.Contains(t, text, "there may be more")
			assert.Contains(t, s.fails(2, "messages", "list", "--unconsumed-for", "1h", "--status", "sent"), "--topic and --limit only")

			assert.Contains(t, s.ok("messages", "show", "half"), "Reported by points; not yet by logistics.")
			assert.Contains(t, s.ok("messages", "show", "old"), "None of the groups that have to report it has: points, logistics.")
			assert.Contains(t, s.ok("messages", "show", "bill"), "Group billing has to report it and has not.")
			assert.Contains(t, s.ok("messages", "show", "done"), "All groups that have to report it have: points, logistics.")
		})
	}
}

// insertSent is insert with an update_time of its own.
func (s *scene) insertSent(msgID, topic, columns string) {
	s.t.Helper()
	s.exec("INSERT INTO "+s.table+" SET msg_id=?, topic=?, msg_content='{}', create_time=NOW(), update_time=NOW(), status=0", msgID, topic)
	s.exec("UPDATE "+s.table+" SET "+columns+" WHERE msg_id=?", msgID)
}

func TestDoctorOnReports(t *testing.T) {
	t.Parallel()
	broker := rig.Kafka(t)
	s := newScene(t, rig.MySQL(t), broker)
	topic := broker.Topic(t, 2)
	s.with("source.mode", "sweep", "acks.enabled", true, "acks.topic", topic, "acks.groups", map[string]any{"orders": []string{"points", "logistics"}})
	d := s.doctor()
	table := d.find("primary", "reports table "+s.table+"_ack")
	assert.Equal(t, "failure", table.Level)
	assert.Contains(t, table.Repair, "CREATE TABLE")
	assert.Equal(t, "ok", d.find("kafka", "topic of reports "+topic).Level)
	s.exec("CREATE TABLE " + s.table + "_ack (msg_id VARCHAR(64) NOT NULL, consumer_group VARCHAR(255) NOT NULL, reported_at DATETIME NOT NULL, PRIMARY KEY (msg_id, consumer_group)) DEFAULT CHARSET=utf8mb4")
	s.with("acks.topic", topic+"-missing")
	d = s.doctor()
	assert.Equal(t, "ok", d.find("primary", "reports table "+s.table+"_ack").Level)
	missing := d.find("kafka", "topic of reports "+topic+"-missing")
	assert.Equal(t, "failure", missing.Level)
	assert.Contains(t, missing.Repair, "--create --topic")
}
