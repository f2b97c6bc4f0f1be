package assemble

import (
	"testing"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
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
