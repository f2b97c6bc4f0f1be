package assemble

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"testing"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/google/uuid"
	"github.com/klauspost/compress/zstd"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// tape makes the events of a binlog, as a server sends them, and feeds a Dispatcher with them.
type tape struct {
	t   testing.TB
	d   *Dispatcher
	pos uint32
	gno int64
	// sent are the transactions that came out.
	sent []*Transaction
	// raw collects events instead of feeding them, for payloads.
	raw *bytes.Buffer
}

// nobody answers no question.
type nobody struct{}

func (nobody) Query(context.Context, string) (*mysql.Answer, error) {
	return nil, &mysql.Error{Number: mysql.CodeNoSuchTable, Class: mysql.ErrGone, Text: "no such table"}
}

func (nobody) Columns(context.Context, outbox.Table) ([]mysql.Column, error) { return nil, nil }

const (
	tapeFile = "binlog.000007"
	tapeSID  = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
)

func newTape(t testing.TB, flavor string) *tape {
	t.Helper()
	patterns, err := mysql.ParsePatterns([]string{"app.msg"})
	require.NoError(t, err)
	tp := &tape{t: t, pos: 4, d: New(Config{
		Flavor: flavor, Tables: patterns, Columns: outbox.DefaultColumns(), Statuses: outbox.DefaultStatuses(),
		BufferBytes: 4 << 10, SpillDir: t.TempDir(), Closing: make(chan struct{}), Waiting: func(string) {},
	}, nobody{}, zerolog.Nop())}
	start := position.Position{Flavor: flavor, File: tapeFile, Pos: 4, Server: "s"}
	require.NoError(t, tp.d.StartAt(start))
	tp.rotate(tapeFile)
	tp.format()
	return tp
}

func (tp *tape) rotate(file string) {
	tp.t.Helper()
	_, err := tp.d.Handle(context.Background(), &replication.BinlogEvent{
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
	tx, err := tp.d.Handle(context.Background(), ev)
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
	text, number := byte(gomysql.MYSQL_TYPE_VARCHAR), byte(gomysql.MYSQL_TYPE_LONGLONG)
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

func zstdCompress(t testing.TB, data []byte) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil)
	require.NoError(t, err)
	return w.EncodeAll(data, nil)
}
