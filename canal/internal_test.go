package canal

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/outbox"
)

// tape makes the events of a binlog, as a server sends them, and feeds a dispatcher with them.
type tape struct {
	t   testing.TB
	d   *dispatcher
	pos uint32
	gno int64
	// sent are the transactions that came out.
	sent []*Transaction
	// raw collects events instead of feeding them, for payloads.
	raw *bytes.Buffer
}

// nobody answers no question.
type nobody struct{}

func (nobody) query(context.Context, string, ...any) (*mysql.Result, error) {
	return nil, mysql.NewError(codeNoSuchTable, "no such table")
}

const (
	tapeFile = "binlog.000007"
	tapeSID  = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
)

func newTape(t testing.TB, flavor string) *tape {
	t.Helper()
	cfg := Config{Addr: "x:1", User: "u", Tables: []string{"app.msg"}, BufferBytes: 4 << 10, SpillDir: t.TempDir()}.withDefaults()
	patterns, err := ParsePatterns(cfg.Tables)
	require.NoError(t, err)
	tp := &tape{t: t, pos: 4, d: newDispatcher(cfg, flavor, patterns, nobody{}, make(chan struct{}), zerolog.Nop())}
	start := position.Position{Flavor: flavor, File: tapeFile, Pos: 4, Server: "s"}
	require.NoError(t, tp.d.startAt(start))
	tp.rotate(tapeFile)
	tp.format()
	return tp
}

func (tp *tape) rotate(file string) {
	tp.t.Helper()
	_, err := tp.d.handle(context.Background(), &replication.BinlogEvent{
		Header: &replication.EventHeader{EventType: replication.ROTATE_EVENT},
		Event:  &replication.RotateEvent{Position: 4, NextLogName: []byte(file)},
	})
	require.NoError(tp.t, err)
}

// event feeds one event, and returns what came out.
func (tp *tape) event(kind replication.EventType, body []byte) (*Transaction, error) {
	tp.t.Helper()
	raw := make([]byte, replication.EventHeaderSize, replication.EventHeaderSize+len(body))
	raw = append(raw, body...)
	tp.pos += uint32(len(raw))
	binary.LittleEndian.PutUint32(raw, 1_700_000_000)
	raw[4] = byte(kind)
	binary.LittleEndian.PutUint32(raw[5:], 1)
	binary.LittleEndian.PutUint32(raw[9:], uint32(len(raw)))
	binary.LittleEndian.PutUint32(raw[13:], tp.pos)
	if tp.raw != nil {
		tp.raw.Write(raw)
		return nil, nil
	}
	ev := &replication.BinlogEvent{RawData: raw, Header: new(replication.EventHeader)}
	require.NoError(tp.t, ev.Header.Decode(raw))
	tx, err := tp.d.handle(context.Background(), ev)
	if tx != nil {
		tp.sent = append(tp.sent, tx)
	}
	return tx, err
}

// must feeds an event that is well-formed.
func (tp *tape) must(kind replication.EventType, body []byte) {
	tp.t.Helper()
	_, err := tp.event(kind, body)
	require.NoError(tp.t, err)
}

func (tp *tape) format() {
	body := make([]byte, 0, 120)
	body = binary.LittleEndian.AppendUint16(body, 4)
	version := make([]byte, 50)
	copy(version, "8.4.0")
	body = append(body, version...)
	body = append(body, 0, 0, 0, 0, replication.EventHeaderSize)
	lengths := make([]byte, 200)
	for i := range lengths {
		lengths[i] = 8
	}
	for _, k := range []replication.EventType{replication.WRITE_ROWS_EVENTv2, replication.UPDATE_ROWS_EVENTv2, replication.DELETE_ROWS_EVENTv2} {
		lengths[k-1] = 10
	}
	body = append(body, lengths...)
	tp.must(replication.FORMAT_DESCRIPTION_EVENT, append(body, 0, 0, 0, 0, 0)) // no checksum
}

func (tp *tape) gtid() {
	tp.gno++
	body := []byte{1}
	sid := uuid.MustParse(tapeSID)
	body = append(body, sid[:]...)
	body = binary.LittleEndian.AppendUint64(body, uint64(tp.gno))
	body = append(body, replication.LogicalTimestampTypeCode)
	body = append(body, make([]byte, 16)...)
	at := uint64(1_700_000_000_123_456)
	body = append(body, byte(at), byte(at>>8), byte(at>>16), byte(at>>24), byte(at>>32), byte(at>>40), byte(at>>48))
	tp.must(replication.GTID_EVENT, body)
}

func (tp *tape) mariadbGTID(seq uint64, flags byte) {
	body := binary.LittleEndian.AppendUint64(nil, seq)
	body = append(body, 5, 0, 0, 0, flags)
	tp.must(replication.MARIADB_GTID_EVENT, append(body, make([]byte, 6)...))
}

func (tp *tape) query(text string) {
	tp.t.Helper()
	body := make([]byte, 13)
	body[8] = byte(len("app"))
	body = append(body, "app\x00"+text...)
	tp.must(replication.QUERY_EVENT, body)
}

func (tp *tape) xid() { tp.must(replication.XID_EVENT, make([]byte, 8)) }

// The columns of the tape's table: id, msg_id, topic, msg_content, status, retry_count, next_retry_time, create_time.
var tapeColumns = []string{"id", "msg_id", "topic", "msg_content", "status", "retry_count", "next_retry_time", "create_time"}

const tapeTable = 77

func (tp *tape) tableMap(table string) {
	body := tableRef(tapeTable)
	body = append(body, 3)
	body = append(body, "app\x00"...)
	body = append(body, byte(len(table)))
	body = append(body, table...)
	text, number := byte(mysql.MYSQL_TYPE_VARCHAR), byte(mysql.MYSQL_TYPE_LONGLONG)
	types := []byte{number, text, text, text, number, number, text, text}
	body = append(body, 0, byte(len(types)))
	body = append(body, types...)
	metas := []byte{}
	for _, tp := range types {
		if tp == text {
			metas = append(metas, 200, 0)
		}
	}
	body = append(body, byte(len(metas)))
	body = append(body, metas...)
	body = append(body, 0xff) // all may be NULL
	charset := []byte{45}     // utf8mb4_general_ci
	body = append(body, replication.TABLE_MAP_OPT_META_DEFAULT_CHARSET, byte(len(charset)))
	body = append(body, charset...)
	names := []byte{}
	for _, n := range tapeColumns {
		names = append(names, byte(len(n)))
		names = append(names, n...)
	}
	body = append(body, replication.TABLE_MAP_OPT_META_COLUMN_NAME, byte(len(names)))
	tp.must(replication.TABLE_MAP_EVENT, append(body, names...))
}

func tableRef(id uint64) []byte {
	b := binary.LittleEndian.AppendUint64(nil, id)
	return append(b[:6], 1, 0) // flags: end of statement
}

// message is a row of the tape's table.
type message struct {
	id     uint64
	msgID  string
	status int64
}

func (m message) image() []byte {
	b := []byte{1 << 6} // next_retry_time is NULL
	b = binary.LittleEndian.AppendUint64(b, m.id)
	for _, s := range []string{m.msgID, "topic", "content-" + m.msgID} {
		b = append(b, byte(len(s)))
		b = append(b, s...)
	}
	b = binary.LittleEndian.AppendUint64(b, uint64(m.status))
	b = binary.LittleEndian.AppendUint64(b, 0)
	const created = "2026-01-02 03:04:05"
	b = append(b, byte(len(created)))
	return append(b, created...)
}

func (tp *tape) rows(kind replication.EventType, images ...message) {
	tp.t.Helper()
	tp.tableMap("msg")
	body := append(tableRef(tapeTable), 2, 0, byte(len(tapeColumns)), 0xff)
	if kind == replication.UPDATE_ROWS_EVENTv2 {
		body = append(body, 0xff)
	}
	for _, m := range images {
		body = append(body, m.image()...)
	}
	tp.must(kind, body)
}

func (tp *tape) insert(m ...message) { tp.rows(replication.WRITE_ROWS_EVENTv2, m...) }
func (tp *tape) update(before, after message) {
	tp.rows(replication.UPDATE_ROWS_EVENTv2, before, after)
}
func (tp *tape) remove(m ...message) { tp.rows(replication.DELETE_ROWS_EVENTv2, m...) }

// ids returns the msg_ids of a transaction's rows.
func ids(t testing.TB, tx *Transaction) []string {
	t.Helper()
	list := []string{}
	for row, err := range tx.Rows() {
		require.NoError(t, err)
		require.Equal(t, "content-"+row.MsgID, string(row.Content))
		require.Equal(t, outbox.Table{Database: "app", Name: "msg"}, row.Table)
		list = append(list, row.MsgID)
	}
	require.Len(t, list, tx.Len())
	return list
}

// all returns the msg_ids of everything that came out.
func (tp *tape) all() [][]string {
	list := [][]string{}
	for _, tx := range tp.sent {
		list = append(list, ids(tp.t, tx))
		require.NoError(tp.t, tx.Close())
	}
	return list
}

func m(id uint64, status int64) message {
	return message{id: id, msgID: fmt.Sprintf("m%d", id), status: status}
}

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
				require.NotContains(t, plain(err), "very", kind.String())
			}
		}
	}
	_, err := tp.event(replication.QUERY_EVENT, []byte{1})
	require.ErrorIs(t, err, errMalformed)
}

func TestRowsOutsideOfATransaction(t *testing.T) {
	tp := newTape(t, position.MySQL)
	_, err := tp.event(replication.TABLE_MAP_EVENT, tableRef(1))
	require.ErrorIs(t, err, errNoTransaction)
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
	require.Equal(t, map[string]int{MissedDecode: 1}, tp.sent[0].Missed)
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

func TestSetIsLearntAtTheHeadOfAFile(t *testing.T) {
	tp := newTape(t, position.MySQL)
	set := mysqlSet{}
	require.NoError(t, set.Add(tapeSID+":1-9"))
	tp.must(replication.PREVIOUS_GTIDS_EVENT, set.native().Encode())
	tp.gno = 9
	tp.gtid()
	tp.query("CREATE TABLE x (a INT)")
	end := tp.d.asm.progress().End
	require.Equal(t, tapeSID+":1-10", end.Executed)
	cursor, err := NewCursor(position.Position{Flavor: position.MySQL, File: tapeFile, Pos: 4})
	require.NoError(t, err)
	require.Empty(t, cursor.Position().GTID)
	require.NoError(t, cursor.Advance(end))
	require.Equal(t, tapeSID+":1-10", cursor.Position().GTID)
}

func TestUnknownEventsArePassedOver(t *testing.T) {
	tp := newTape(t, position.MySQL)
	tp.must(replication.EventType(150), []byte("?"))
	tp.must(replication.EventType(150), []byte("?"))
	require.Len(t, tp.d.unknown, 1)
	tp.must(replication.INCIDENT_EVENT, []byte{1, 0, 0})
	require.Equal(t, map[string]int{MissedIncident: 1}, tp.sent[0].Missed)
}

func TestDummyRowsEvents(t *testing.T) {
	tp := newTape(t, position.MySQL)
	tp.gtid()
	tp.query("BEGIN")
	tp.must(replication.WRITE_ROWS_EVENTv2, append(tableRef(1<<48-1), 2, 0, 1, 0xff))
	_, err := tp.event(replication.WRITE_ROWS_EVENTv2, append(tableRef(5), 2, 0, 1, 0xff))
	require.ErrorIs(t, err, errMalformed)
}

func zstdCompress(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return w.EncodeAll(data, nil)
}
