//go:build !unit

package store

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

func names(messages []Message) []string {
	ids := make([]string, len(messages))
	for i := range messages {
		ids[i] = messages[i].MsgID
	}
	return ids
}

// counter is an outbox with a bit of everything.
func counter(t *testing.T, srv *rig.Server) *desk {
	t.Helper()
	d := newDesk(t, srv)
	d.Insert(t, "pending", 0, "NULL")
	d.InsertTopic(t, "failed", "bills", 2, "NOW()+INTERVAL 1 HOUR")
	d.Insert(t, "dead", 4, "NULL")
	d.Insert(t, "sent", 1, "NULL")
	d.Insert(t, "consumed", 3, "NULL")
	d.Insert(t, "discarded", 5, "NULL")
	d.Insert(t, "42", 0, "NULL")
	d.Exec(t, "UPDATE "+d.Name()+" SET last_error='100% of broker_1 away', msg_key='customer 7', retry_count=17 WHERE msg_id='dead'")
	d.Exec(t, "UPDATE "+d.Name()+" SET create_time=NOW()-INTERVAL 2 DAY WHERE msg_id='failed'")
	return d
}

func TestListChoosesByEverything(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := counter(t, srv)
		for name, tc := range map[string]struct {
			filter Filter
			want   []string
		}{
			"all, newest first": {Filter{}, []string{"42", "discarded", "consumed", "sent", "dead", "failed", "pending"}},
			"status":            {Filter{Statuses: []outbox.Status{outbox.Dead, outbox.Failed}}, []string{"dead", "failed"}},
			"common status":     {Filter{Statuses: []outbox.Status{outbox.Sent}}, []string{"sent"}},
			"topic":             {Filter{Topic: "bills"}, []string{"failed"}},
			"topic, exactly":    {Filter{Topic: "Bills"}, []string{}},
			"key":               {Filter{Key: "customer 7"}, []string{"dead"}},
			"old":               {Filter{OlderThan: 24 * time.Hour}, []string{"failed"}},
			"new":               {Filter{NewerThan: 24 * time.Hour, Statuses: []outbox.Status{outbox.Failed, outbox.Dead}}, []string{"dead"}},
			"error":             {Filter{Error: "% of broker_"}, []string{"dead"}},
			"error, literally":  {Filter{Error: "1%0"}, []string{}},
			"msg_id":            {Filter{MsgIDs: []string{"42", "sent", "😀"}}, []string{"42", "sent"}},
			"id":                {Filter{IDs: []uint64{1, 3}}, []string{"dead", "pending"}},
			"table":             {Filter{Table: "LOCAL_message", Limit: 1}, []string{"42"}},
		} {
			found, err := d.List(t.Context(), tc.filter)
			require.NoError(t, err, name)
			assert.Equal(t, tc.want, names(found), name)
		}
		_, err := d.List(t.Context(), Filter{Table: "other"})
		require.ErrorIs(t, err, ErrFilter)
	})
}

func TestListGoesOnAtTheCursor(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := counter(t, srv)
		d.Exec(t, "CREATE TABLE "+mysql.Identifier(d.Table.Database)+".local_message_2 LIKE "+d.Name())
		d.Exec(t, "INSERT INTO "+mysql.Identifier(d.Table.Database)+".local_message_2 SELECT * FROM "+d.Name()+" WHERE id<3")
		d.cfg.Tables = []string{d.Table.Database + "./local_message.*/"}
		s := open(t, d.cfg)
		var all []string
		cursor := ""
		for {
			page, err := s.List(t.Context(), Filter{Limit: 2, Cursor: cursor})
			require.NoError(t, err)
			if len(page) == 0 {
				break
			}
			all = append(all, names(page)...)
			cursor = page[len(page)-1].Cursor
		}
		assert.Equal(t, []string{"42", "discarded", "consumed", "sent", "dead", "failed", "pending", "failed", "pending"}, all)
		for _, wrong := range []string{"x", "a:b", ":"} {
			_, err := s.List(t.Context(), Filter{Cursor: wrong})
			require.ErrorIs(t, err, ErrFilter, wrong)
		}
	})
}

func TestShowTellsAMessagesStory(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := counter(t, srv)
		found, err := d.Show(t.Context(), "dead")
		require.NoError(t, err)
		require.Len(t, found, 1)
		m := found[0]
		assert.Equal(t, outbox.Dead, m.Status)
		assert.EqualValues(t, 4, m.Number)
		assert.Equal(t, 17, m.RetryCount)
		assert.Equal(t, "100% of broker_1 away", m.LastError)
		assert.Equal(t, `{"id":"dead"}`, string(m.Content)) //nolint:testifylint // the bytes count, not their meaning
		assert.EqualValues(t, len(m.Content), m.Bytes)
		assert.InDelta(t, 60, m.Age.Seconds(), 15)
		assert.Zero(t, m.Due)
		assert.NotEmpty(t, m.Updated)

		found, err = d.Show(t.Context(), "2")
		require.NoError(t, err)
		require.Equal(t, []string{"failed"}, names(found), "a number is an id")
		assert.InDelta(t, 3600, found[0].Due.Seconds(), 15)
		found, err = d.Show(t.Context(), "42")
		require.NoError(t, err)
		require.Equal(t, []string{"42"}, names(found), "and else a msg_id")
		found, err = d.Show(t.Context(), "nobody's")
		require.NoError(t, err)
		assert.Empty(t, found)
		listed, err := d.List(t.Context(), Filter{MsgIDs: []string{"dead"}})
		require.NoError(t, err)
		assert.Nil(t, listed[0].Content, "a list does not carry bodies")
		assert.Equal(t, m.Bytes, listed[0].Bytes)
	})
}

func TestShowOfAMsgIDThatTheColumnCannotHold(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDeskWith(t, srv, "CREATE TABLE %s"+outbox.Schema(outbox.Table{Name: "X"}, outbox.AllColumns())[len("CREATE TABLE `X`"):]+" DEFAULT CHARSET=latin1")
		d.Insert(t, "l1é", 0, "NULL")
		found, err := d.Show(t.Context(), "中文")
		require.NoError(t, err)
		assert.Empty(t, found)
		found, err = d.Show(t.Context(), "l1é")
		require.NoError(t, err)
		assert.Len(t, found, 1)
		changed, err := d.MarkSent(t.Context(), []outbox.Ref{found[0].Ref(), {Table: d.Table, ID: 7, MsgID: "中文"}})
		require.NoError(t, err)
		assert.EqualValues(t, 1, changed)
	})
}

func TestRetryRevivesWhatFailed(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := counter(t, srv)
		n, err := d.Retry(t.Context(), Filter{}, true)
		require.NoError(t, err)
		assert.EqualValues(t, 2, n)
		assert.Equal(t, 4, d.state(t, outbox.Ref{MsgID: "dead"}).Status, "a dry run changes nothing")
		n, err = d.Retry(t.Context(), Filter{}, false)
		require.NoError(t, err)
		assert.EqualValues(t, 2, n)
		assert.Equal(t, state{Status: 2, HasNext: true, LastError: "100% of broker_1 away"}, d.state(t, outbox.Ref{MsgID: "dead"}))
		assert.Equal(t, []string{"failed", "dead"}, msgIDs(d.candidates(t, Query{Failed: true})), "both are due now")
		for msgID, status := range map[string]int{"pending": 0, "sent": 1, "consumed": 3, "discarded": 5} {
			assert.Equal(t, status, d.state(t, outbox.Ref{MsgID: msgID}).Status)
		}
	})
}

func TestRetryOfWhatWasSentMustBeAskedFor(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := counter(t, srv)
		for _, status := range []outbox.Status{outbox.Sent, outbox.Consumed, outbox.Discarded} {
			_, err := d.Retry(t.Context(), Filter{Statuses: []outbox.Status{status}}, false)
			require.ErrorIs(t, err, ErrFilter)
			n, err := d.Retry(t.Context(), Filter{Statuses: []outbox.Status{status}, Resend: true}, false)
			require.NoError(t, err)
			assert.EqualValues(t, 1, n, status)
		}
		n, err := d.Retry(t.Context(), Filter{MsgIDs: []string{"pending"}}, false)
		require.NoError(t, err)
		assert.Zero(t, n, "what is not in the statuses asked for is left alone, also by name")
		_, err = d.Retry(t.Context(), Filter{Statuses: []outbox.Status{outbox.Foreign}}, true)
		require.ErrorIs(t, err, ErrFilter)
	})
}

func TestDiscardTakesOnlyWhatIsStuck(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := counter(t, srv)
		for _, status := range []outbox.Status{outbox.Pending, outbox.Sent, outbox.Consumed} {
			_, err := d.Discard(t.Context(), Filter{Statuses: []outbox.Status{status}}, false)
			require.ErrorIs(t, err, ErrFilter)
		}
		n, err := d.Discard(t.Context(), Filter{Topic: "bills"}, false)
		require.NoError(t, err)
		assert.EqualValues(t, 1, n)
		assert.Equal(t, state{Status: 5}, d.state(t, outbox.Ref{MsgID: "failed"}))
		n, err = d.Discard(t.Context(), Filter{}, true)
		require.NoError(t, err)
		assert.EqualValues(t, 1, n)
	})
}

func TestRetryOfManyGoesInBatchesAndMindsTheLimit(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Fill(t, 2500, "orders", "NULL")
		d.Exec(t, "UPDATE "+d.Name()+" SET status=4")
		n, err := d.Retry(t.Context(), Filter{Limit: 1200}, false)
		require.NoError(t, err)
		assert.EqualValues(t, 1200, n)
		assert.EqualValues(t, 1200, d.One(t, "SELECT COUNT(*) FROM "+d.Name()+" WHERE status=2 AND id<=1200"), "the oldest first")
		n, err = d.Retry(t.Context(), Filter{Statuses: []outbox.Status{outbox.Dead}}, true)
		require.NoError(t, err)
		assert.EqualValues(t, 1300, n)
		n, err = d.Retry(t.Context(), Filter{Statuses: []outbox.Status{outbox.Dead}}, false)
		require.NoError(t, err)
		assert.EqualValues(t, 1300, n)
	})
}

func TestStats(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := counter(t, srv)
		stats, err := d.Stats(t.Context())
		require.NoError(t, err)
		require.Len(t, stats.Tables, 1)
		table := stats.Tables[0]
		assert.Equal(t, d.Table, table.Table)
		assert.EqualValues(t, 2, table.Counts[outbox.Pending])
		assert.EqualValues(t, 1, table.Counts[outbox.Consumed])
		got := map[string]int64{}
		for _, topic := range table.Topics {
			got[topic.Topic+" "+topic.Status.String()] = topic.Messages
			if topic.Status == outbox.Dead {
				assert.EqualValues(t, 17, topic.Retries)
			}
			if topic.Status == outbox.Failed {
				assert.InDelta(t, (48 * time.Hour).Seconds(), topic.Oldest.Seconds(), 20)
			}
		}
		assert.Equal(t, map[string]int64{"orders pending": 2, "bills failed": 1, "orders dead": 1}, got)
	})
}

// doctor asks Kafka for the topics that are in use; what a discarded message named need not exist.
func TestRecentTopicsLeaveOutWhatIsGivenUp(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := counter(t, srv)
		topics, err := d.RecentTopics(t.Context())
		require.NoError(t, err)
		require.Contains(t, topics, "bills")
		d.Exec(t, "UPDATE "+d.Name()+" SET status = 5 WHERE topic = 'bills'")
		topics, err = d.RecentTopics(t.Context())
		require.NoError(t, err)
		assert.NotContains(t, topics, "bills")
	})
}

func TestErrorsQuoteNoData(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Insert(t, "a", 0, "NULL")
		table := d.Table
		// A trigger makes the server quote what it was given: 1062 names the duplicate value.
		d.Exec(t, fmt.Sprintf("CREATE TABLE %s.audit (v VARCHAR(64) UNIQUE)", mysql.Identifier(table.Database)))
		d.Exec(t, fmt.Sprintf("INSERT INTO %s.audit VALUES ('canary')", mysql.Identifier(table.Database)))
		d.Exec(t, fmt.Sprintf("CREATE TRIGGER %s.tr BEFORE UPDATE ON %s FOR EACH ROW INSERT INTO %s.audit VALUES ('canary')", mysql.Identifier(table.Database), d.Name(), mysql.Identifier(table.Database)))
		_, err := d.MarkSent(t.Context(), []outbox.Ref{{Table: table, ID: 1, MsgID: "a"}})
		require.ErrorIs(t, err, ErrServer)
		require.ErrorContains(t, err, "1062")
		assert.NotContains(t, err.Error(), "canary")
		require.ErrorContains(t, err, strconv.Quote(table.String())[1:len(table.String())])
	})
}
