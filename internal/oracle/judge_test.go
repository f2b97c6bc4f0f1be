package oracle_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/outbox"
)

const table = "app.local_message"

var start = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// run is a small clean run that a test then spoils: m0..m5 of key k, two for each of three transactions, m6 without a
// key, and r0, r1 rolled back.
type run struct {
	ledger *oracle.Ledger
	oracle.Evidence
	opts oracle.Options
}

func message(id, key string) oracle.Message {
	return oracle.Message{
		MsgID: id, Table: table, Topic: "orders", Key: key, Content: oracle.HashOf([]byte("body of " + id)),
		Headers: map[string]string{"tenant": "t1"},
	}
}

func cleanRun(t *testing.T) *run {
	t.Helper()
	r := &run{ledger: oracle.NewLedger(), opts: oracle.Options{Source: "default"}}
	for i := range 3 {
		r.add(t, oracle.Committed, message(id(2*i), "k"), message(id(2*i+1), "k"))
	}
	r.add(t, oracle.RolledBack, message("r0", "k"))
	require.NoError(t, r.ledger.Add(oracle.Transaction{
		Messages: []oracle.Message{message("m6", "m6")}, Undone: []oracle.Message{message("r1", "k")},
		Outcome: oracle.Committed, Sent: start, Done: start.Add(time.Millisecond),
	}))
	for i := range 7 {
		key := "k"
		if i == 6 {
			key = "m6"
		}
		r.deliver(id(i), key)
	}
	for i := range 4 {
		r.Fences = append(r.Fences, oracle.Fence{Seq: uint64(2 * i), File: "binlog.000001", Pos: uint64(100 * i)})
		r.Samples = append(r.Samples, oracle.Sample{Epoch: 1, Position: at(100 * i)})
	}
	return r
}

func id(i int) string { return fmt.Sprintf("m%d", i) }

func at(pos int) position.Position {
	return position.Position{Server: "s1", File: "binlog.000001", Pos: uint64(pos)}
}

func (r *run) add(t *testing.T, outcome oracle.Outcome, messages ...oracle.Message) {
	t.Helper()
	require.NoError(t, r.ledger.Add(oracle.Transaction{
		Messages: messages, Outcome: outcome, Sent: start, Done: start.Add(time.Millisecond),
	}))
}

// deliver adds a record and a row marked sent, as the relay should leave them.
func (r *run) deliver(msgID, key string) {
	r.record(msgID, key)
	r.Rows = append(r.Rows, oracle.Row{Table: table, ID: uint64(len(r.Rows) + 1), MsgID: msgID, Status: outbox.Sent})
}

func (r *run) record(msgID, key string) *oracle.Record {
	r.Records = append(r.Records, oracle.Record{
		Topic: "orders", Offset: int64(len(r.Records)), Key: key, Value: oracle.HashOf([]byte("body of " + msgID)), MsgID: msgID,
		Headers: map[string]string{
			"msg_id": msgID, "tenant": "t1", "outbox_source": "default", "outbox_position": "s1/binlog.000001:4/0",
			"outbox_created": "2026-01-02 03:04:05",
		},
		Seen: start.Add(3 * time.Millisecond),
	})
	return &r.Records[len(r.Records)-1]
}

func (r *run) judge() *oracle.Verdict { return oracle.Judge(r.ledger, r.Evidence, r.opts) }

func TestJudgePassesACleanRun(t *testing.T) {
	t.Parallel()
	v := cleanRun(t).judge()
	require.NoError(t, v.Err())
	assert.True(t, v.OK())
	assert.Equal(t, 7, v.Committed)
	assert.Equal(t, 2, v.RolledBack)
	assert.Equal(t, 7, v.Delivered)
	assert.Equal(t, 7, v.Latency.N)
	assert.Equal(t, 2*time.Millisecond, v.Latency.P50)
	assert.Equal(t, 3*time.Millisecond, v.FromSend.P99)
	assert.Contains(t, v.String(), "lost 0, phantom 0, out of order 0, duplicates 0")
}

func TestJudgeNamesTheFault(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		spoil func(t *testing.T, r *run)
		kind  oracle.Kind
		names string
	}{
		"LostRow":             {func(_ *testing.T, r *run) { r.Records = append(r.Records[:2:2], r.Records[3:]...) }, oracle.Lost, "m2"},
		"PhantomOfARollback":  {func(_ *testing.T, r *run) { r.record("r0", "k") }, oracle.Phantom, "r0"},
		"PhantomOfASavepoint": {func(_ *testing.T, r *run) { r.record("r1", "k") }, oracle.Phantom, "r1"},
		"PhantomOfNobody":     {func(_ *testing.T, r *run) { r.record("x9", "k") }, oracle.Phantom, "x9"},
		"Inversion": {func(_ *testing.T, r *run) {
			r.Records[2].Offset, r.Records[3].Offset = r.Records[3].Offset, r.Records[2].Offset
		}, oracle.Inverted, "m2 after m3"},
		"KeyInTwoPartitions": {func(_ *testing.T, r *run) { r.Records[4].Partition = 1 }, oracle.Split, "key \"k\""},
		"Duplicate":          {func(_ *testing.T, r *run) { r.record("m1", "k") }, oracle.Duplicated, "m1"},
		"ChangedByte": {func(_ *testing.T, r *run) {
			r.Records[5].Value = oracle.HashOf([]byte("body of m5."))
		}, oracle.Changed, "m5"},
		"ChangedByteInACopy": {func(_ *testing.T, r *run) {
			r.opts.Duplicates = true
			r.record("m1", "k").Value[0] ^= 1
		}, oracle.Changed, "m1"},
		"WrongTopic":     {func(_ *testing.T, r *run) { r.Records[6].Topic = "others" }, oracle.WrongTopic, "m6 went to others"},
		"WrongKey":       {func(_ *testing.T, r *run) { r.Records[6].Key = "k" }, oracle.WrongKey, "m6"},
		"HeaderChanged":  {func(_ *testing.T, r *run) { r.Records[0].Headers["tenant"] = "t2" }, oracle.WrongHeaders, "header tenant"},
		"HeaderMissing":  {func(_ *testing.T, r *run) { delete(r.Records[0].Headers, "tenant") }, oracle.WrongHeaders, "header tenant"},
		"SourceWrong":    {func(_ *testing.T, r *run) { r.Records[0].Headers["outbox_source"] = "other" }, oracle.WrongHeaders, "header outbox_source"},
		"PositionBad":    {func(_ *testing.T, r *run) { r.Records[0].Headers["outbox_position"] = "7" }, oracle.WrongHeaders, "outbox_position"},
		"CreatedMissing": {func(_ *testing.T, r *run) { delete(r.Records[0].Headers, "outbox_created") }, oracle.WrongHeaders, "outbox_created"},
		"RowLeftAtZero":  {func(_ *testing.T, r *run) { r.Rows[3].Status = outbox.Pending }, oracle.Unsettled, "m3 (app.local_message id 4, pending)"},
		"RowLeftFailed":  {func(_ *testing.T, r *run) { r.Rows[3].Status = outbox.Failed }, oracle.Unsettled, "m3"},
		"RowDead":        {func(_ *testing.T, r *run) { r.Rows[3].Status = outbox.Dead }, oracle.Unsettled, "m3"},
		"RetrySpent":     {func(_ *testing.T, r *run) { r.Rows[3].RetryCount = 2 }, oracle.Spent, "m3 (2)"},
		"RowGone":        {func(_ *testing.T, r *run) { r.Rows = r.Rows[1:] }, oracle.Missing, "m0"},
		"RowOfARollback": {func(_ *testing.T, r *run) {
			r.Rows = append(r.Rows, oracle.Row{Table: table, MsgID: "r0", Status: outbox.Sent})
		}, oracle.Stranger, "r0"},
		"RowInAnotherTable": {func(_ *testing.T, r *run) { r.Rows[0].Table = "app.other" }, oracle.Stranger, "belongs in app.local_message"},
		"CheckpointTooFar": {func(_ *testing.T, r *run) {
			r.Samples[2].Unsettled = []string{"m3"} // m3 is the fourth message: the fence at 200 covers it
		}, oracle.CheckpointAhead, "m3 is pending at binlog.000001:200"},
		"CheckpointBack": {func(_ *testing.T, r *run) {
			r.Samples = append(r.Samples, oracle.Sample{Epoch: 1, Position: at(299)})
		}, oracle.CheckpointBack, "binlog.000001:299 after binlog.000001:300"},
		"EpochBack": {func(_ *testing.T, r *run) { r.Samples[3].Epoch = 0 }, oracle.CheckpointBack, "epoch 0 after 1"},
		"CheckpointTorn": {func(_ *testing.T, r *run) {
			r.Samples[1].Inside = "Write_rows follows"
		}, oracle.CheckpointTorn, "binlog.000001:100: Write_rows follows"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := cleanRun(t)
			c.spoil(t, r)
			v := r.judge()
			assert.Equal(t, 1, v.Count(c.kind), v.String())
			assert.ErrorContains(t, v.Err(), c.names)
		})
	}
}

func TestJudgeAllows(t *testing.T) {
	t.Parallel()
	for name, relax := range map[string]func(t *testing.T, r *run){
		"ADuplicateAfterACrash": func(_ *testing.T, r *run) {
			r.opts.Duplicates = true
			r.record("m1", "k")
		},
		"ARetryOfARefusedMessage": func(_ *testing.T, r *run) {
			r.opts.Retries = true
			r.Rows[1].RetryCount = 3
		},
		"AConsumedRow":    func(_ *testing.T, r *run) { r.Rows[0].Status = outbox.Consumed },
		"TheSweepersMark": func(_ *testing.T, r *run) { r.Records[0].Headers["outbox_position"] = "sweep" },
		"ACheckpointBeforeThePendingRow": func(_ *testing.T, r *run) {
			r.Samples[2].Unsettled = []string{"m4"}
		},
		"AnOperatorsReset": func(_ *testing.T, r *run) {
			r.Samples = append(r.Samples, oracle.Sample{Epoch: 1, Position: at(50), Reset: true})
		},
		"AnotherServersPosition": func(_ *testing.T, r *run) {
			r.Samples = append(r.Samples, oracle.Sample{Epoch: 1, Position: position.Position{Server: "s2", File: "binlog.000001", Pos: 4}})
		},
		"KeylessInAnyOrder": func(t *testing.T, r *run) {
			r.add(t, oracle.Committed, message("n1", "n1"), message("n2", "n2"))
			r.deliver("n2", "n2")
			r.deliver("n1", "n1")
		},
		"AnUnknownThatCommitted": func(t *testing.T, r *run) {
			r.add(t, oracle.Unknown, message("u1", "u"), message("u2", "u"))
			r.deliver("u1", "u")
			r.deliver("u2", "u")
		},
		"AnUnknownThatDidNot": func(t *testing.T, r *run) { r.add(t, oracle.Unknown, message("u1", "u")) },
		"AnImpossibleMessage": func(t *testing.T, r *run) {
			bad := message("b1", "b")
			bad.Fate = oracle.Die
			r.add(t, oracle.Committed, bad)
			r.Rows = append(r.Rows, oracle.Row{Table: table, MsgID: "b1", Status: outbox.Dead, LastError: "topic name"})
		},
		"ARowOutsideTheBinlog": func(t *testing.T, r *run) {
			m := message("n1", "k")
			m.Unlogged = true
			r.add(t, oracle.Committed, m)
			r.deliver("n1", "k")
			r.Fences = append(r.Fences, oracle.Fence{Seq: 100, File: "binlog.000001", Pos: 300})
			r.Samples[3].Unsettled = []string{"n1"}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := cleanRun(t)
			relax(t, r)
			assert.NoError(t, r.judge().Err())
		})
	}
}

func TestJudgeUnknownOutcomes(t *testing.T) {
	t.Parallel()
	t.Run("HalfInTheTable", func(t *testing.T) {
		t.Parallel()
		r := cleanRun(t)
		r.add(t, oracle.Unknown, message("u1", "u"), message("u2", "u"))
		r.deliver("u1", "u")
		assert.Equal(t, 1, r.judge().Count(oracle.Half))
	})
	t.Run("SentButNotInTheTable", func(t *testing.T) {
		t.Parallel()
		r := cleanRun(t)
		r.add(t, oracle.Unknown, message("u1", "u"))
		r.record("u1", "u")
		assert.Equal(t, 1, r.judge().Count(oracle.Phantom))
	})
	t.Run("InTheTableButNotSent", func(t *testing.T) {
		t.Parallel()
		r := cleanRun(t)
		r.add(t, oracle.Unknown, message("u1", "u"))
		r.Rows = append(r.Rows, oracle.Row{Table: table, MsgID: "u1", Status: outbox.Sent})
		assert.Equal(t, 1, r.judge().Count(oracle.Lost))
	})
	t.Run("WithoutATableTheRecordsDecide", func(t *testing.T) {
		t.Parallel()
		r := cleanRun(t)
		r.add(t, oracle.Unknown, message("u1", "u"), message("u2", "u"))
		r.record("u2", "u")
		r.Rows = nil
		assert.Equal(t, 1, r.judge().Count(oracle.Half))
	})
}

func TestJudgeDeadLetters(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		status outbox.Status
		record bool
		kind   oracle.Kind
	}{
		"SentAnyway":   {outbox.Dead, true, oracle.Undying},
		"MarkedSent":   {outbox.Sent, false, oracle.Undying},
		"LeftPending":  {outbox.Pending, false, oracle.Unsettled},
		"RetriedAgain": {outbox.Failed, false, oracle.Unsettled},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := cleanRun(t)
			bad := message("b1", "b")
			bad.Fate = oracle.Die
			r.add(t, oracle.Committed, bad)
			r.Rows = append(r.Rows, oracle.Row{Table: table, MsgID: "b1", Status: c.status})
			if c.record {
				r.record("b1", "b")
			}
			assert.Equal(t, 1, r.judge().Count(c.kind))
		})
	}
}

func TestJudgeDelayedMessages(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		off    time.Duration
		faults int
	}{"OnTime": {900 * time.Millisecond, 0}, "Early": {-1100 * time.Millisecond, 1}, "Late": {1100 * time.Millisecond, 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := cleanRun(t)
			m := message("d1", "k")
			m.Due = start.Add(time.Minute)
			r.add(t, oracle.Committed, m)
			r.deliver("d1", "k")
			r.Records[len(r.Records)-1].Seen = m.Due.Add(c.off)
			assert.Equal(t, c.faults, r.judge().Count(oracle.WrongTime))
		})
	}
}

func TestVerdictBoundsItsExamples(t *testing.T) {
	t.Parallel()
	r := cleanRun(t)
	r.Records = nil
	r.opts.Examples = 2
	v := r.judge()
	assert.Equal(t, 7, v.Count(oracle.Lost))
	assert.Len(t, v.Faults[0].Examples, 2)
	assert.ErrorContains(t, v.Err(), "lost 7 (m0 (app.local_message id 1, sent), m1 (app.local_message id 2, sent), ...)")
}
