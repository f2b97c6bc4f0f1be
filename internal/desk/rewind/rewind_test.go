package rewind_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/desk/rewind"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// binlog is a stream of transactions; behind the last one it waits, as an idle server does.
type binlog struct {
	transactions []*assemble.Transaction
	broken       error
}

func (b *binlog) Next(ctx context.Context) (*assemble.Transaction, error) {
	if len(b.transactions) == 0 {
		if b.broken != nil {
			return nil, b.broken
		}
		<-ctx.Done()
		return nil, ctx.Err()
	}
	first := b.transactions[0]
	b.transactions = b.transactions[1:]
	return first, nil
}

// table says how rows stand by their msg_id.
type table struct {
	statuses map[string]outbox.Status
	asked    int
	broken   error
}

func (f *table) Lookup(_ context.Context, refs []outbox.Ref) (map[outbox.Ref]store.Found, error) {
	f.asked++
	found := map[outbox.Ref]store.Found{}
	for _, ref := range refs {
		if status, ok := f.statuses[ref.MsgID]; ok {
			found[ref] = store.Found{Status: status}
		}
	}
	return found, f.broken
}

func end(pos uint64) position.End { return position.End{File: "b.000001", Pos: pos} }

func at(pos uint64) position.Position { return position.Position{File: "b.000001", Pos: pos} }

func transaction(pos uint64, msgIDs ...string) *assemble.Transaction {
	rows := make([]outbox.Row, len(msgIDs))
	for i, id := range msgIDs {
		rows[i] = outbox.Row{Table: outbox.Table{Database: "d", Name: "t"}, ID: pos*1000 + uint64(i), MsgID: id}
	}
	return assemble.NewTransaction(end(pos), time.Now(), rows...)
}

func TestReadCountsUpToTheEnd(t *testing.T) {
	t.Parallel()
	rows := &table{statuses: map[string]outbox.Status{
		"sent": outbox.Sent, "consumed": outbox.Consumed, "dead": outbox.Dead, "discarded": outbox.Discarded,
		"pending": outbox.Pending, "failed": outbox.Failed, "beyond": outbox.Sent,
	}}
	stream := &binlog{transactions: []*assemble.Transaction{
		transaction(100, "sent", "consumed", "pending"), transaction(200), transaction(300, "dead", "discarded", "failed", "gone"),
		transaction(400, "beyond"),
	}}
	stream.transactions[1].Missed = map[string]int{"unmapped": 2, "statement": 1}
	got, err := rewind.Read(t.Context(), t.Context(), stream, rows, at(300))
	require.NoError(t, err)
	assert.Equal(t, rewind.Count{Rows: 7, Settled: 4, Open: 2, Gone: 1, Missed: 3, Complete: true, Stopped: end(300)}, got)
	assert.Len(t, stream.transactions, 1)
}

// The end of a stretch may lie inside a run of other tables' transactions that the stream tells of as one.
func TestReadEndsWithATransactionBehindTheEnd(t *testing.T) {
	t.Parallel()
	stream := &binlog{transactions: []*assemble.Transaction{transaction(100, "a"), transaction(400, "beyond")}}
	got, err := rewind.Read(t.Context(), t.Context(), stream, &table{}, at(300))
	require.NoError(t, err)
	assert.Equal(t, rewind.Count{Rows: 1, Gone: 1, Complete: true, Stopped: end(100)}, got)
}

func TestReadEndsWithPatience(t *testing.T) {
	t.Parallel()
	patience, cancel := context.WithCancel(t.Context())
	cancel()
	stream := &binlog{transactions: []*assemble.Transaction{transaction(100, "a")}}
	got, err := rewind.Read(t.Context(), patience, stream, &table{}, at(300))
	require.NoError(t, err)
	assert.Equal(t, rewind.Count{Rows: 1, Gone: 1, Stopped: end(100)}, got)
}

func TestReadEndsWithTheCommand(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := rewind.Read(ctx, ctx, &binlog{}, &table{}, at(300))
	require.ErrorIs(t, err, context.Canceled)
}

func TestReadTellsFailures(t *testing.T) {
	t.Parallel()
	boom := errors.New("boom")
	_, err := rewind.Read(t.Context(), t.Context(), &binlog{broken: boom}, &table{}, at(300))
	require.ErrorIs(t, err, boom)
	_, err = rewind.Read(t.Context(), t.Context(), &binlog{transactions: []*assemble.Transaction{transaction(300, "a")}}, &table{broken: boom}, at(300))
	require.ErrorIs(t, err, boom)
	elsewhere := assemble.NewTransaction(position.End{File: "other.000001", Pos: 9}, time.Now())
	_, err = rewind.Read(t.Context(), t.Context(), &binlog{transactions: []*assemble.Transaction{elsewhere}}, &table{}, at(300))
	require.ErrorContains(t, err, "have no order")
}

func TestReadAsksForManyAtOnce(t *testing.T) {
	t.Parallel()
	var ids []string
	for i := range 2500 {
		ids = append(ids, fmt.Sprint(i))
	}
	rows := &table{}
	got, err := rewind.Read(t.Context(), t.Context(), &binlog{transactions: []*assemble.Transaction{transaction(300, ids...)}}, rows, at(300))
	require.NoError(t, err)
	assert.EqualValues(t, 2500, got.Gone)
	assert.Equal(t, 3, rows.asked)
}

func TestScale(t *testing.T) {
	t.Parallel()
	part := rewind.Count{Rows: 30, Settled: 20, Open: 9, Gone: 1}
	assert.Equal(t, rewind.Count{Rows: 300, Settled: 200, Open: 90, Gone: 10}, part.Scale(100, 1000))
	assert.Equal(t, part, part.Scale(0, 1000))
	assert.Equal(t, part, part.Scale(1000, 1000))
}

func TestBetween(t *testing.T) {
	t.Parallel()
	const uuid = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	place := func(file string, pos uint64) position.Position {
		return position.Position{Server: "s", Flavor: position.MySQL, File: file, Pos: pos}
	}
	set := func(server, set string) position.Position {
		return position.Position{Server: server, Flavor: position.MySQL, File: "b.000001", Pos: 4, GTID: set}
	}
	for name, tt := range map[string]struct {
		from, to position.Position
		bySet    bool
		want     rewind.Direction
	}{
		"Same":             {place("b.000002", 10), place("b.000002", 10), false, rewind.Same},
		"BackInFile":       {place("b.000002", 10), place("b.000002", 9), false, rewind.Back},
		"BackByFile":       {place("b.1000000", 10), place("b.999999", 99), false, rewind.Back},
		"Forward":          {place("b.000002", 10), place("b.000003", 4), false, rewind.Forward},
		"OtherNames":       {place("b.000002", 10), place("c.000002", 10), false, rewind.Sideways},
		"SetForward":       {set("s", uuid+":1-5"), set("s", uuid+":1-9"), true, rewind.Forward},
		"SetBack":          {set("s", uuid+":1-5"), set("s", uuid+":1-3"), true, rewind.Back},
		"SetSame":          {set("s", uuid+":1-5"), set("s", uuid+":1-5"), true, rewind.Same},
		"SetSideways":      {set("s", uuid+":1-5"), set("s", uuid+":3-9"), true, rewind.Sideways},
		"OtherServer":      {set("s", uuid+":1-5"), set("r", uuid+":1-4"), false, rewind.Back},
		"OtherServerNoSet": {place("b.000001", 4), set("r", uuid+":1-4"), false, rewind.Sideways},
		"BrokenSet":        {set("s", "x"), set("r", uuid+":1"), true, rewind.Sideways},
	} {
		assert.Equal(t, tt.want, rewind.Between(tt.from, tt.to, tt.bySet), name)
	}
}

func TestParseTarget(t *testing.T) {
	t.Parallel()
	const uuid = "3E11FA47-71CA-11E1-9E33-C80AA9429562"
	for text, want := range map[string]rewind.Target{
		"binlog.000012:4567":          {File: "binlog.000012", Pos: 4567},
		"my-host-bin.1000000:4":       {File: "my-host-bin.1000000", Pos: 4},
		uuid + ":1-77":                {GTID: uuid + ":1-77"},
		uuid + ":1-5, " + uuid + ":7": {GTID: uuid + ":1-5," + uuid + ":7"},
		uuid + ":tag:1-5":             {GTID: uuid + ":tag:1-5"},
		"0-1-4711":                    {GTID: "0-1-4711"},
		"0-1-4711,1-2-3":              {GTID: "0-1-4711,1-2-3"},
	} {
		got, err := rewind.ParseTarget(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, got, text)
	}
	for _, text := range []string{"", "x", "binlog.000012", "binlog.000012:", "binlog.000012:3", "binlog.000012:-4", "binlog.000012:99999999999999999999", "4567", "../x.1:4"} {
		_, err := rewind.ParseTarget(text)
		require.Error(t, err, text)
	}
	target, err := rewind.ParseTarget("0-1-4711")
	require.NoError(t, err)
	assert.Equal(t, position.Position{Server: "1:0", Flavor: position.MariaDB, GTID: "0-1-4711"},
		target.On(position.Position{Server: "1:0", Flavor: position.MariaDB, File: "b.000009", Pos: 99, GTID: "0-1-9999"}))
}
