//go:build !unit

package cli_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/cmd/cli"
	"example.com/outbox-relay/test/rig"
)

type message struct {
	ID, Topic, Status string
	MsgID             string `json:"msg_id"`
	LastError         string `json:"last_error"`
	Content, Headers  *string
	Route             *struct{ Topic, Key string }
	Refusal           string
	Stands            []string
}

type messages struct {
	Messages []message
	Cursor   string
}

func (m messages) names() []string {
	names := []string{}
	for _, one := range m.Messages {
		names = append(names, one.MsgID)
	}
	return names
}

// desk is a table with a bit of everything.
func desk(t *testing.T, server *rig.Server) *scene {
	t.Helper()
	s := newScene(t, server, nil)
	s.insert("pending", "orders", "")
	s.insert("delayed", "orders", "next_retry_time=NOW()+INTERVAL 1 HOUR")
	s.insert("failed", "bills", "status=2, retry_count=3, next_retry_time=NOW()+INTERVAL 5 MINUTE, last_error='unknown topic'")
	s.insert("behind", "bills", "next_retry_time=NOW()")
	s.insert("dead", "bad topic", "status=4, retry_count=17, last_error='topic is impossible', msg_key='customer 7', headers=?", `{"secret":"header value"}`)
	s.insert("old", "orders", "status=4, create_time=NOW()-INTERVAL 30 DAY")
	s.insert("sent", "orders", "status=1")
	s.insert("consumed", "orders", "status=3")
	s.insert("discarded", "orders", "status=5")
	s.insert("foreign", "orders", "status=77")
	s.insert("4711", "orders", "status=4")
	return s
}

func TestMessagesShowsWhereABodyIsStaged(t *testing.T) {
	t.Parallel()
	s := newScene(t, rig.MySQL(t), nil)
	_, err := s.db.ExecContext(t.Context(), "ALTER TABLE "+s.table+" ADD COLUMN body_ref VARCHAR(320) NULL")
	require.NoError(t, err)
	s.insert("staged", "orders", "msg_content='', body_ref='bodies/2/17'")
	out := s.ok("messages", "show", "staged")
	assert.Contains(t, out, "bodies/2/17")
	assert.Contains(t, out, "topic orders")
	assert.NotContains(t, out, "content is empty")
}

func TestMessagesList(t *testing.T) {
	flavors(t, func(t *testing.T, server *rig.Server) {
		s := desk(t, server)
		for args, want := range map[string][]string{
			"":                               {"4711", "foreign", "discarded", "consumed", "sent", "old", "dead", "behind", "failed", "delayed", "pending"},
			"--status dead":                  {"4711", "old", "dead"},
			"--status failed,dead":           {"4711", "old", "dead", "failed"},
			"--status sent --status dead":    {"4711", "sent", "old", "dead"},
			"--topic bills":                  {"behind", "failed"},
			"--key customer_7":               {},
			"--older-than 24h":               {"old"},
			"--newer-than 24h --status dead": {"4711", "dead"},
			"--error impossible":             {"dead"},
			"pending sent":                   {"sent", "pending"},
			"pending 1":                      {"pending", "pending"},
			"--msg-id 4711":                  {"4711"},
			"--limit 2":                      {"4711", "foreign"},
		} {
			var got messages
			s.json(&got, append([]string{"messages", "list"}, strings.Fields(args)...)...)
			assert.Equal(t, want, got.names(), args)
			if args == "--limit 2" {
				require.NotEmpty(t, got.Cursor)
				var next messages
				s.json(&next, "messages", "list", "--limit", "2", "--cursor", got.Cursor)
				assert.Equal(t, []string{"discarded", "consumed"}, next.names())
			}
		}
		assert.Contains(t, s.ok("messages", "list", "--status", "dead"), "topic is impossible")
		assert.Equal(t, "no messages\n", s.ok("messages", "list", "--topic", "none"))
		assert.Contains(t, s.fails(cli.ExitUsage, "messages", "list", "--table", "app.none"), "no such table")
		assert.Contains(t, s.fails(cli.ExitUsage, "messages", "list", "--cursor", "x"), "cursor")
	})
}

// Show tells the whole story; contents and headers only on demand.
func TestMessagesShow(t *testing.T) {
	t.Parallel()
	s := desk(t, rig.MySQL(t))
	for name, want := range map[string]string{
		"pending":   "It waits for the stream",
		"delayed":   "It is not due yet",
		"failed":    "It was refused 3 times",
		"behind":    "An older message of its topic has failed",
		"dead":      "a person has to decide",
		"sent":      "acked by Kafka",
		"consumed":  "a consumer has reported back",
		"discarded": "--resend --yes",
		"foreign":   "none of source.statuses",
		"4711":      "dead letter",
	} {
		out := s.ok("messages", "show", name)
		assert.Contains(t, out, want, name)
		assert.NotContains(t, out, `{"a":1}`, name)
		assert.NotContains(t, out, "header value", name)
	}
	assert.Contains(t, s.ok("messages", "show", "pending"), "No relay leads the source")

	var got messages
	s.json(&got, "messages", "show", "dead", "--content")
	require.Len(t, got.Messages, 1)
	assert.Equal(t, `{"a":1}`, *got.Messages[0].Content)
	assert.JSONEq(t, `{"secret":"header value"}`, *got.Messages[0].Headers)
	assert.Contains(t, got.Messages[0].Refusal, "impossible")
	assert.Nil(t, got.Messages[0].Route)
	got = messages{}
	s.json(&got, "messages", "show", "pending")
	require.NotNil(t, got.Messages[0].Route)
	assert.Equal(t, "orders", got.Messages[0].Route.Topic)
	assert.Equal(t, "pending", got.Messages[0].Route.Key)
	assert.Contains(t, s.fails(cli.ExitFailed, "messages", "show", "nobody"), "no message has the id or msg_id")

	s.with("router.routes", []any{map[string]any{"match": "ord*", "topic": "prod.{topic}", "key": "/a"}})
	got = messages{}
	s.json(&got, "messages", "show", "1")
	assert.Equal(t, "prod.orders", got.Messages[0].Route.Topic)
	assert.Equal(t, "1", got.Messages[0].Route.Key)
}

type deskResult struct {
	Applied  bool
	Messages int
	Sample   []message
}

func TestMessagesRetryAndDiscard(t *testing.T) {
	flavors(t, func(t *testing.T, server *rig.Server) {
		s := desk(t, server)
		var r deskResult
		s.json(&r, "messages", "retry")
		assert.Equal(t, deskResult{Messages: 4, Sample: r.Sample}, r)
		assert.Len(t, r.Sample, 4)
		status, _ := s.status("dead")
		assert.Equal(t, 4, status, "a dry run changes nothing")

		r = deskResult{}
		s.json(&r, "messages", "retry", "dead", "--yes")
		assert.True(t, r.Applied)
		assert.Equal(t, 1, r.Messages)
		status, due := s.status("dead")
		assert.Equal(t, 2, status)
		assert.True(t, due)

		assert.Contains(t, s.fails(cli.ExitUsage, "messages", "retry", "sent", "--status", "sent", "--yes"), "--resend")
		s.json(&r, "messages", "retry", "sent", "--status", "sent", "--resend", "--yes")
		assert.Equal(t, 1, r.Messages)
		status, _ = s.status("sent")
		assert.Equal(t, 2, status)

		assert.Contains(t, s.fails(cli.ExitUsage, "messages", "discard", "--status", "pending", "--yes"), "only failed and dead")
		s.json(&r, "messages", "discard", "--status", "dead", "--older-than", "720h", "--yes")
		assert.Equal(t, 1, r.Messages)
		status, _ = s.status("old")
		assert.Equal(t, 5, status)

		s.json(&r, "messages", "discard", "--all", "--limit", "1", "--yes")
		assert.Equal(t, 1, r.Messages)
		assert.Contains(t, s.ok("messages", "discard", "--all", "--yes"), "discarded")
		var left messages
		s.json(&left, "messages", "list", "--status", "failed,dead")
		assert.Empty(t, left.Messages)
	})
}

// More than fits a batch is changed whole, and counted before.
func TestMessagesRetryMany(t *testing.T) {
	t.Parallel()
	s := newScene(t, rig.MySQL(t), nil)
	const n = 2500
	s.exec("SET SESSION cte_max_recursion_depth=10000; INSERT INTO " + s.table +
		" (msg_id,topic,msg_content,status,create_time,update_time) WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<" + strconv.Itoa(n) +
		") SELECT CONCAT('m',i),'t','{}',4,NOW(),NOW() FROM n")
	out := s.ok("messages", "retry", "--topic", "t")
	assert.Contains(t, out, "2,500 messages would be sent again")
	assert.Contains(t, out, "and 2,490 more")
	assert.Contains(t, s.ok("messages", "retry", "--topic", "t", "--yes"), "2,500 messages will be sent again")
	var stats struct {
		Tables []struct{ Counts map[string]int }
	}
	s.json(&stats, "messages", "stats")
	assert.Equal(t, n, stats.Tables[0].Counts["failed"])
	assert.Contains(t, s.ok("messages", "stats"), "MOST RETRIES")
}
