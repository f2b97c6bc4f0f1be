package canal

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/outbox"
)

// The archive's deletes are passed over before anything of their rows is looked at: an event whose rows are nonsense
// is no trouble, and nothing comes of it.
func TestDeletesOfOtherTransactionsAreNotDecoded(t *testing.T) {
	tp := newTape(t, position.MySQL)
	tp.gtid()
	tp.query("BEGIN")
	tp.tableMap("msg_history") // the copy
	tp.must(replication.WRITE_ROWS_EVENTv2, append(tableRef(tapeTable), "no rows at all"...))
	tp.d.dec.reset()
	tp.tableMap("msg")
	tp.must(replication.DELETE_ROWS_EVENTv2, append(tableRef(tapeTable), "no rows at all"...))
	tp.xid()
	tp.gtid()
	tp.query("BEGIN")
	tp.insert(m(1, 0))
	tp.xid()
	require.Equal(t, [][]string{{"m1"}}, tp.all())
	for _, sent := range tp.sent {
		assert.Empty(t, sent.Missed)
	}
}

func TestHistoriesDoNotMatch(t *testing.T) {
	p, err := ParsePatterns([]string{`app./msg_\w+/`, "app.other_history"})
	require.NoError(t, err)
	p = p.Excluding("{table}_history")
	for name, want := range map[string]bool{"msg_1": true, "msg_1_history": false, "msg_1_history_history": false, "other_history": true, "msg_history": true} {
		assert.Equal(t, want, p.Match(outbox.Table{Database: "app", Name: name}), name)
	}
	assert.True(t, p.Excluding("").Match(outbox.Table{Database: "app", Name: "msg_1_history"}), "nothing is archived")
	assert.False(t, p.FoldCase(true).Match(outbox.Table{Database: "APP", Name: "MSG_1_History"}))
}
