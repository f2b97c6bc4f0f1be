package assemble

import (
	"bytes"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/plain"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
)

func TestNothingBeforeTheCommit(t *testing.T) {
	tp := newTape(t, position.MySQL)
	tp.gtid()
	tp.query("BEGIN")
	tp.insert(m(1, 0), m(2, 0))
	tp.insert(m(3, 0))
	require.Empty(t, tp.sent)
	require.Nil(t, tp.d.asm.progress())
	tp.xid()
	require.Equal(t, [][]string{{"m1", "m2", "m3"}}, tp.all())
	end := tp.sent[0].End
	require.Equal(t, position.End{File: tapeFile, Pos: uint64(tp.pos), GTID: tapeSID + ":1"}, end)
	require.Equal(t, time.UnixMicro(1_700_000_000_123_456), tp.sent[0].CommittedAt)
}

func TestEndsOfTransactions(t *testing.T) {
	for name, test := range map[string]struct {
		flavor string
		play   func(tp *tape)
		want   [][]string
		kick   bool
	}{
		"commit of a table without transactions": {position.MySQL, func(tp *tape) {
			tp.gtid()
			tp.query("BEGIN")
			tp.insert(m(1, 0))
			tp.query("COMMIT")
		}, [][]string{{"m1"}}, false},
		"rollback": {position.MySQL, func(tp *tape) {
			tp.gtid()
			tp.query("BEGIN")
			tp.insert(m(1, 0))
			tp.query("ROLLBACK")
		}, [][]string{}, false},
		"a transaction the server died in": {position.MySQL, func(tp *tape) {
			tp.gtid()
			tp.query("BEGIN")
			tp.insert(m(1, 0))
			tp.format()
			tp.gtid()
			tp.query("BEGIN")
			tp.insert(m(2, 0))
			tp.xid()
		}, [][]string{{"m2"}}, false},
		"xa prepared": {position.MySQL, func(tp *tape) {
			tp.gtid()
			tp.query("XA START X'7831',X'',1")
			tp.insert(m(1, 0))
			tp.query("XA END X'7831',X'',1")
			tp.must(replication.XA_PREPARE_LOG_EVENT, make([]byte, 16))
			tp.gtid()
			tp.query("XA ROLLBACK X'7831',X'',1")
		}, [][]string{}, false},
		"xa committed": {position.MySQL, func(tp *tape) {
			tp.gtid()
			tp.query("XA START X'7831',X'',1")
			tp.insert(m(1, 0))
			tp.query("XA END X'7831',X'',1")
			tp.must(replication.XA_PREPARE_LOG_EVENT, make([]byte, 16))
			tp.gtid()
			tp.query("XA COMMIT X'7831',X'',1")
		}, [][]string{{}}, true},
		"xa in one phase": {position.MySQL, func(tp *tape) {
			tp.gtid()
			tp.query("XA START X'7831',X'',1")
			tp.insert(m(1, 0))
			tp.query("XA END X'7831',X'',1")
			tp.must(replication.XA_PREPARE_LOG_EVENT, append([]byte{1}, make([]byte, 15)...))
		}, [][]string{{}}, true},
		"xa prepared before the stream began": {position.MySQL, func(tp *tape) {
			tp.gtid()
			tp.query("XA COMMIT X'7832',X'',1")
		}, [][]string{{}}, true},
		"mariadb": {position.MariaDB, func(tp *tape) {
			tp.mariadbGTID(1, 0)
			tp.insert(m(1, 0))
			tp.xid()
			tp.mariadbGTID(2, mariadbStandalone)
			tp.query("CREATE TABLE x (a INT)")
			tp.mariadbGTID(3, mariadbPreparedXA)
			tp.insert(m(2, 0))
			tp.query("XA END X'7831',X'',1")
			tp.must(replication.XA_PREPARE_LOG_EVENT, make([]byte, 16))
			tp.mariadbGTID(4, mariadbStandalone)
			tp.query("XA ROLLBACK X'7831',X'',1")
		}, [][]string{{"m1"}}, false},
		"ddl of the table": {position.MySQL, func(tp *tape) {
			tp.gtid()
			tp.query("/* comment */ ALTER TABLE `msg` ADD x INT")
		}, [][]string{{}}, true},
		"statement": {position.MySQL, func(tp *tape) {
			tp.gtid()
			tp.query("BEGIN")
			tp.query("insert into other select * from App.msg")
			tp.query("INSERT INTO app.`msg` VALUES (1)")
			tp.xid()
		}, [][]string{{}}, true},
		"statement elsewhere": {position.MySQL, func(tp *tape) {
			tp.gtid()
			tp.query("BEGIN")
			tp.query("INSERT INTO elsewhere.msg VALUES ('msg', \"app\")")
			tp.xid()
		}, [][]string{}, false},
		"made pending again": {position.MySQL, func(tp *tape) {
			tp.gtid()
			tp.query("BEGIN")
			tp.update(m(1, 2), m(1, 0))
			tp.xid()
		}, [][]string{{}}, true},
		"marked": {position.MySQL, func(tp *tape) {
			tp.gtid()
			tp.query("BEGIN")
			tp.update(m(1, 0), m(1, 1))
			tp.remove(m(2, 1))
			tp.xid()
		}, [][]string{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			tp := newTape(t, test.flavor)
			test.play(tp)
			got := tp.all()
			require.Equal(t, test.want, got)
			for _, tx := range tp.sent {
				require.Equal(t, test.kick, tx.Kick)
			}
			if len(tp.sent) == 0 {
				require.Equal(t, uint64(tp.pos), tp.d.asm.progress().End.Pos)
			}
		})
	}
}

func TestCompressedTransaction(t *testing.T) {
	for _, packed := range []bool{true, false} {
		tp := newTape(t, position.MySQL)
		tp.gtid()
		tp.raw = new(bytes.Buffer)
		tp.query("BEGIN")
		tp.insert(m(1, 0))
		tp.query("SAVEPOINT a")
		tp.insert(m(2, 0))
		tp.query("ROLLBACK TO a")
		tp.insert(m(3, 0))
		tp.xid()
		inner := tp.raw.Bytes()
		tp.raw = nil
		compression, data := byte(compressionNone), inner
		if packed {
			compression, data = compressionZstd, zstdCompress(t, inner)
		}
		body := []byte{payloadCompression, 1, compression, payloadEnd}
		if compression == compressionNone {
			body = []byte{payloadCompression, 3, 0xfc, compressionNone, 0, payloadEnd}
		}
		tp.must(replication.TRANSACTION_PAYLOAD_EVENT, append(body, data...))
		require.Equal(t, [][]string{{"m1", "m3"}}, tp.all())
		require.Equal(t, uint64(tp.pos), tp.sent[0].End.Pos)
		require.Equal(t, tapeSID+":1", tp.sent[0].End.GTID)
	}
}

func TestMalformedEventsAreErrorsWithoutContent(t *testing.T) {
	tp := newTape(t, position.MySQL)
	tp.gtid()
	tp.query("BEGIN")
	secret := "very secret content"
	for _, kind := range []replication.EventType{
		replication.QUERY_EVENT, replication.TABLE_MAP_EVENT, replication.WRITE_ROWS_EVENTv2, replication.GTID_EVENT,
		replication.TRANSACTION_PAYLOAD_EVENT, replication.GTID_TAGGED_LOG_EVENT, replication.EXECUTE_LOAD_QUERY_EVENT,
		replication.MARIADB_GTID_EVENT, replication.FORMAT_DESCRIPTION_EVENT,
	} {
		for size := range 12 {
			_, err := tp.event(kind, []byte(secret)[:size])
			if err != nil {
				require.NotContains(t, plain.Text(err), "very", kind.String())
			}
		}
	}
	_, err := tp.event(replication.QUERY_EVENT, []byte{1})
	require.ErrorIs(t, err, ErrMalformed)
}

func TestRowsOutsideOfATransaction(t *testing.T) {
	tp := newTape(t, position.MySQL)
	_, err := tp.event(replication.TABLE_MAP_EVENT, tableRef(1))
	require.ErrorIs(t, err, ErrNoTransaction)
}

func TestBrokenRowsAreLeftToTheSweeper(t *testing.T) {
	tp := newTape(t, position.MySQL)
	tp.gtid()
	tp.query("BEGIN")
	tp.insert(m(1, 0))
	tp.tableMap("msg")
	good := m(2, 0).image()
	body := append(tableRef(tapeTable), 2, 0, byte(len(tapeColumns)), 0xff)
	tp.must(replication.WRITE_ROWS_EVENTv2, append(append(body, good...), good[:10]...))
	tp.xid()
	require.Equal(t, [][]string{{"m1"}}, tp.all())
	require.Equal(t, map[string]int{words.MissedDecode: 1}, tp.sent[0].Missed)
	require.True(t, tp.sent[0].Kick)
}

func TestPlacesBeyondFourGiB(t *testing.T) {
	tp := newTape(t, position.MySQL)
	tp.d.asm.pos = 1<<32 - 50
	tp.pos = 1<<32 - 50
	tp.gtid()
	require.Greater(t, tp.d.asm.pos, uint64(1<<32))
	tp.query("BEGIN")
	tp.insert(m(1, 0))
	tp.xid()
	require.Equal(t, 1<<32+uint64(tp.pos), tp.sent[0].End.Pos)
	require.Equal(t, [][]string{{"m1"}}, tp.all())
}

func TestProgress(t *testing.T) {
	tp := newTape(t, position.MySQL)
	require.Nil(t, tp.d.asm.progress())
	for range 5 {
		tp.gtid()
		tp.query("BEGIN")
		tp.tableMap("other")
		tp.xid()
	}
	tx := tp.d.asm.progress()
	require.NotNil(t, tx)
	require.Equal(t, position.End{File: tapeFile, Pos: uint64(tp.pos), GTID: tapeSID + ":1-5"}, tx.End)
	require.Nil(t, tp.d.asm.progress(), "told once")

	tp.rotate("binlog.000008")
	tp.rotate("binlog.000008")
	require.Equal(t, position.End{File: "binlog.000008", Pos: 4}, tp.d.asm.progress().End)
}

// A server that is asked by GTID begins to read at the head of a file, before the place where the stream goes on.
func TestEndsNeverGoBackBehindTheStart(t *testing.T) {
	tp := newTape(t, position.MySQL)
	start := position.Position{Flavor: position.MySQL, File: tapeFile, Pos: 1 << 31, Server: "s", GTID: tapeSID + ":1"}
	require.NoError(t, tp.d.StartAt(start))
	tp.rotate(tapeFile)
	require.Nil(t, tp.d.asm.progress())
	tp.must(replication.HEARTBEAT_EVENT, []byte(tapeFile))
	require.Nil(t, tp.d.asm.progress(), "skipped transactions are no progress")
	tp.gno = 1
	tp.gtid()
	tp.query("BEGIN")
	tp.insert(m(1, 0))
	tp.xid()
	require.Equal(t, position.End{File: tapeFile, Pos: 1 << 31, GTID: tapeSID + ":2"}, tp.sent[0].End)
	require.Equal(t, [][]string{{"m1"}}, tp.all())
}

func TestDDLForgetsTheColumns(t *testing.T) {
	tp := newTape(t, position.MySQL)
	one := func() {
		tp.gtid()
		tp.query("BEGIN")
		tp.insert(m(1, 0))
		tp.xid()
	}
	one()
	st := tp.d.dec.tables[tapeTable]
	require.NotNil(t, st)
	tp.gtid()
	tp.query("ALTER TABLE unrelated ADD x INT")
	require.Same(t, st, tp.d.dec.tables[tapeTable])
	tp.gtid()
	tp.query("ALTER TABLE msg ADD x INT")
	require.NotContains(t, tp.d.dec.tables, uint64(tapeTable))
	one()
	require.Len(t, tp.sent, 3)
}

func TestSetIsLearntAtTheHeadOfAFile(t *testing.T) {
	tp := newTape(t, position.MySQL)
	set, err := gtid.Parse(position.MySQL, tapeSID+":1-9")
	require.NoError(t, err)
	tp.must(replication.PREVIOUS_GTIDS_EVENT, set.Native().Encode())
	tp.gno = 9
	tp.gtid()
	tp.query("CREATE TABLE x (a INT)")
	end := tp.d.asm.progress().End
	require.Equal(t, tapeSID+":1-10", end.Executed)
}

func TestUnknownEventsArePassedOver(t *testing.T) {
	tp := newTape(t, position.MySQL)
	tp.must(replication.EventType(150), []byte("?"))
	tp.must(replication.EventType(150), []byte("?"))
	require.Len(t, tp.d.unknown, 1)
	tp.must(replication.INCIDENT_EVENT, []byte{1, 0, 0})
	require.Equal(t, map[string]int{words.MissedIncident: 1}, tp.sent[0].Missed)
}

func TestDummyRowsEvents(t *testing.T) {
	tp := newTape(t, position.MySQL)
	tp.gtid()
	tp.query("BEGIN")
	tp.must(replication.WRITE_ROWS_EVENTv2, append(tableRef(1<<48-1), 2, 0, 1, 0xff))
	_, err := tp.event(replication.WRITE_ROWS_EVENTv2, append(tableRef(5), 2, 0, 1, 0xff))
	require.ErrorIs(t, err, ErrMalformed)
}
