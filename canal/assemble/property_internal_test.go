package assemble

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
)

// model is a table with transactions, kept in the plainest way.
type model struct {
	committed map[uint64]message // rows by id
	order     []uint64           // ids in the order of their inserts, of the open transaction
	rows      map[uint64]message
	mine      map[uint64]bool // inserted by the open transaction
	saves     []modelSave
	nextID    uint64
}

type modelSave struct {
	name  string
	order []uint64
	rows  map[uint64]message
	mine  map[uint64]bool
}

func (m *model) begin() {
	m.rows, m.mine, m.order, m.saves = maps.Clone(m.committed), map[uint64]bool{}, nil, nil
}

// pending is what the stream has to bring: the open transaction's own rows that are pending, in order of insertion.
func (m *model) pending() []string {
	list := []string{}
	for _, id := range m.order {
		if row, ok := m.rows[id]; ok && m.mine[id] && row.status == 0 {
			list = append(list, fmt.Sprintf("%d/%s", id, row.msgID))
		}
	}
	return list
}

func (m *model) moveID(from, to uint64) {
	if i := slices.Index(m.order, from); i >= 0 {
		m.order[i] = to
	}
	m.mine[to] = m.mine[from]
	delete(m.mine, from)
}

// TestTransactionsAgainstAModel plays random transactions on a tape and compares what comes out with a model. The buffer
// is so small that many of them go to the spill file.
func TestTransactionsAgainstAModel(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		tp := newTape(t, rapid.SampledFrom([]string{position.MySQL, position.MariaDB}).Draw(rt, "flavor"))
		tp.d.asm.limit = rapid.SampledFrom([]int{20_000, 1 << 20}).Draw(rt, "limit")
		md := &model{committed: map[uint64]message{}, nextID: 1}
		for range rapid.IntRange(1, 6).Draw(rt, "transactions") {
			want := playTransaction(rt, tp, md)
			n := 0
			for _, tx := range tp.sent {
				got := []string{}
				for row, err := range tx.Rows() {
					require.NoError(rt, err)
					got = append(got, fmt.Sprintf("%d/%s", row.ID, row.MsgID))
				}
				require.Empty(rt, tx.Missed)
				require.Len(rt, got, tx.Len())
				require.Equal(rt, want, got)
				require.NoError(rt, tx.Close())
				n += len(got)
			}
			require.Equal(rt, len(want), n)
			tp.sent = nil
		}
	})
}

func playTransaction(rt *rapid.T, tp *tape, md *model) []string {
	md.begin()
	if tp.d.asm.flavor == position.MySQL {
		tp.gtid()
		tp.query("BEGIN")
	} else {
		tp.gno++
		tp.mariadbGTID(uint64(tp.gno), 0)
	}
	steps := rapid.SliceOfN(rapid.SampledFrom([]string{
		"insert", "insert", "insert", "many", "update", "update", "move", "delete", "savepoint", "rollback to", "release",
	}), 0, 25).Draw(rt, "steps")
	for _, step := range steps {
		playStep(rt, tp, md, step)
	}
	if rapid.IntRange(0, 4).Draw(rt, "end") == 0 {
		tp.query("ROLLBACK")
		return []string{}
	}
	want := md.pending()
	tp.xid()
	md.committed = md.rows
	return want
}

func playStep(rt *rapid.T, tp *tape, md *model, step string) {
	names := []string{"a", "B", "`q q`"}
	switch step {
	case "insert":
		playInsert(tp, md, int64(rapid.SampledFrom([]int{0, 0, 0, 1}).Draw(rt, "status")))
	case "many":
		for range 30 {
			playInsert(tp, md, 0)
		}
	case "update", "move", "delete":
		if len(md.rows) == 0 {
			return
		}
		keys := make([]uint64, 0, len(md.rows))
		for id := range md.rows {
			keys = append(keys, id)
		}
		slices.Sort(keys)
		playChange(rt, tp, md, step, md.rows[rapid.SampledFrom(keys).Draw(rt, "row")])
	case "savepoint":
		name := rapid.SampledFrom(names).Draw(rt, "name")
		tp.query("SAVEPOINT " + name)
		md.release(name)
		md.saves = append(md.saves, modelSave{name: name, order: slices.Clone(md.order), rows: maps.Clone(md.rows), mine: maps.Clone(md.mine)})
	case "rollback to":
		if len(md.saves) == 0 {
			return
		}
		i := rapid.IntRange(0, len(md.saves)-1).Draw(rt, "to")
		s := md.saves[i]
		tp.query("ROLLBACK TO " + s.name)
		md.order, md.rows, md.mine = slices.Clone(s.order), maps.Clone(s.rows), maps.Clone(s.mine)
		md.saves = md.saves[:i+1]
	case "release":
		name := rapid.SampledFrom(names).Draw(rt, "name")
		tp.query("RELEASE SAVEPOINT " + name)
		md.release(name)
	}
}

func (m *model) release(name string) {
	m.saves = slices.DeleteFunc(m.saves, func(s modelSave) bool { return s.name == name })
}

func playInsert(tp *tape, md *model, status int64) {
	row := message{id: md.nextID, msgID: fmt.Sprintf("m%d", md.nextID), status: status}
	md.nextID++
	tp.insert(row)
	md.rows[row.id], md.mine[row.id] = row, true
	md.order = append(md.order, row.id)
}

func playChange(rt *rapid.T, tp *tape, md *model, step string, row message) {
	after := row
	switch step {
	case "delete":
		tp.remove(row)
		delete(md.rows, row.id)
		md.order = slices.DeleteFunc(md.order, func(id uint64) bool { return id == row.id })
		delete(md.mine, row.id)
		// Often a row with the same id comes again, as REPLACE does.
		if rapid.Bool().Draw(rt, "again") {
			after.msgID += "r"
			tp.insert(after)
			md.rows[row.id], md.mine[row.id] = after, true
			md.order = append(md.order, row.id)
		}
		return
	case "move":
		after.id = md.nextID
		md.nextID++
		md.moveID(row.id, after.id)
	}
	after.msgID += "u"
	after.status = int64(rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(rt, "status"))
	tp.update(row, after)
	delete(md.rows, row.id)
	md.rows[after.id] = after
}

func TestTooManyChangesGiveTheRowsUp(t *testing.T) {
	tp := newTape(t, position.MySQL)
	tp.gtid()
	tp.query("BEGIN")
	for i := range 30 {
		tp.insert(m(uint64(i+1), 0))
	}
	tp.query("SAVEPOINT a")
	tp.insert(m(1000, 0))
	for range 100 {
		tp.update(m(1, 0), m(1, 0))
	}
	tp.query("ROLLBACK TO a")
	tp.xid()
	require.Equal(t, [][]string{{}}, tp.all())
	require.Equal(t, map[string]int{words.MissedLarge: 30}, tp.sent[0].Missed)
	require.True(t, tp.sent[0].Kick)
}
