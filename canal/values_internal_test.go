package canal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/canal/plain"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
)

// tapeSID is the uuid of a server.
const tapeSID = "3e11fa47-71ca-11e1-9e33-c80aa9429562"

func TestCursorAddsUp(t *testing.T) {
	start := position.Position{Server: "s", Flavor: position.MySQL, GTID: tapeSID + ":1-5", File: "b.1", Pos: 4}
	c, err := NewCursor(start)
	require.NoError(t, err)
	require.Equal(t, start, c.Position())
	require.NoError(t, c.Advance(position.End{File: "b.1", Pos: 90, GTID: tapeSID + ":6"}))
	require.NoError(t, c.Advance(position.End{File: "b.2", Pos: 4}))
	require.NoError(t, c.Advance(position.End{File: "b.2", Pos: 80, GTID: tapeSID + ":7-9"}))
	require.Equal(t, position.Position{Server: "s", Flavor: position.MySQL, GTID: tapeSID + ":1-9", File: "b.2", Pos: 80}, c.Position())
	require.Error(t, c.Advance(position.End{File: "b.2", Pos: 80, GTID: "nonsense"}))
	_, err = NewCursor(position.Position{Flavor: position.MySQL, GTID: "nonsense"})
	require.Error(t, err)

	// Without the complete set the position has none: one with holes would make the server send everything again.
	start.GTID = ""
	c, err = NewCursor(start)
	require.NoError(t, err)
	require.NoError(t, c.Advance(position.End{File: "b.1", Pos: 90, GTID: tapeSID + ":6"}))
	require.Empty(t, c.Position().GTID)
	require.NoError(t, c.Advance(position.End{File: "b.1", Pos: 91, Executed: tapeSID + ":1-6"}))
	require.NoError(t, c.Advance(position.End{File: "b.1", Pos: 92, GTID: tapeSID + ":7"}))
	require.Equal(t, tapeSID+":1-7", c.Position().GTID)
	require.Error(t, c.Advance(position.End{Executed: "nonsense"}))
}

func TestDecide(t *testing.T) {
	const uuidA, uuidB = "a", "b"
	sid := tapeSID
	some := func(change func(*facts)) *facts {
		f := &facts{
			server: &server{id: uuidA, variables: map[string]string{"gtid_mode": "ON"}},
			logs:   []logFile{{"bin.000003", 1000}, {"bin.000004", 1000}, {"bin.000005", 500}},
			end:    position.Position{Server: uuidA, Flavor: position.MySQL, File: "bin.000005", Pos: 500, GTID: sid + ":1-100"},
			purged: sid + ":1-20",
		}
		if change != nil {
			change(f)
		}
		return f
	}
	noGTID := func(f *facts) { f.server.variables["gtid_mode"] = "OFF"; f.end.GTID, f.purged = "", "" }
	at := func(server, file string, pos uint64, gtid string) position.Position {
		return position.Position{Server: server, Flavor: position.MySQL, File: file, Pos: pos, GTID: gtid}
	}
	for name, test := range map[string]struct {
		f     *facts
		saved position.Position
		want  string
		file  string // where to go on, "" for the saved place
	}{
		"resumed":                {some(nil), at(uuidA, "bin.000004", 300, sid+":1-50"), words.RecoveryResumed, ""},
		"file purged, set not":   {some(nil), at(uuidA, "bin.000002", 300, sid+":1-50"), words.RecoveryResumed, ""},
		"set purged":             {some(nil), at(uuidA, "bin.000002", 300, sid+":1-19"), words.RecoveryPurged, ""},
		"executed less":          {some(nil), at(uuidA, "bin.000004", 300, sid+":1-101"), words.RecoveryInvalid, ""},
		"reset, numbers fit":     {some(nil), at(uuidA, "bin.000009", 300, sid+":1-50"), words.RecoveryInvalid, ""},
		"reset, place beyond":    {some(nil), at(uuidA, "bin.000005", 501, sid+":1-50"), words.RecoveryInvalid, ""},
		"other server":           {some(nil), at(uuidB, "log.000900", 300, sid+":1-50"), words.RecoveryMoved, "bin.000003"},
		"other server lags":      {some(nil), at(uuidB, "log.000900", 300, sid+":1-101"), words.RecoveryOtherServer, ""},
		"other server purged":    {some(nil), at(uuidB, "log.000900", 300, sid+":1-10"), words.RecoveryPurged, ""},
		"renamed files":          {some(nil), at(uuidA, "old.000900", 300, sid+":1-50"), words.RecoveryMoved, "bin.000003"},
		"nonsense":               {some(nil), at(uuidA, "bin.000004", 300, "nonsense"), words.RecoveryInvalid, ""},
		"without gtid":           {some(noGTID), at(uuidA, "bin.000004", 300, ""), words.RecoveryResumed, ""},
		"gtid switched off":      {some(noGTID), at(uuidA, "bin.000004", 300, sid+":1-50"), words.RecoveryResumed, ""},
		"file purged":            {some(noGTID), at(uuidA, "bin.000002", 300, ""), words.RecoveryPurged, ""},
		"file from the future":   {some(noGTID), at(uuidA, "bin.000009", 300, ""), words.RecoveryInvalid, ""},
		"file of another name":   {some(noGTID), at(uuidA, "old.000004", 300, ""), words.RecoveryInvalid, ""},
		"beyond the size":        {some(noGTID), at(uuidA, "bin.000004", 1001, ""), words.RecoveryInvalid, ""},
		"other server, no gtid":  {some(noGTID), at(uuidB, "bin.000004", 300, ""), words.RecoveryOtherServer, ""},
		"another flavor":         {some(nil), position.Position{Server: uuidA, Flavor: position.MariaDB, GTID: "0-1-1"}, words.RecoveryOtherServer, ""},
		"beyond 4 GiB, no gtid":  {some(func(f *facts) { noGTID(f); f.logs[1].size = 1 << 40 }), at(uuidA, "bin.000004", 1<<33, ""), words.RecoveryInvalid, ""},
		"written since the list": {some(func(f *facts) { noGTID(f); f.end.Pos = 900 }), at(uuidA, "bin.000005", 800, ""), words.RecoveryResumed, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.f.decide(test.saved)
			require.Equal(t, test.want, got.Recovery, got.Detail)
			require.NotEmpty(t, got.Detail)
			require.Equal(t, test.want == words.RecoveryResumed || test.want == words.RecoveryMoved, got.Usable)
			switch {
			case !got.Usable:
				require.Equal(t, test.f.end, got.Position)
			case test.file != "":
				require.Equal(t, test.file, got.Position.File)
				require.Equal(t, test.saved.GTID, got.Position.GTID)
				require.Equal(t, uuidA, got.Position.Server)
			default:
				require.Equal(t, test.saved, got.Position)
			}
		})
	}
	f := some(nil)
	now, err := f.fresh(StartNow)
	require.NoError(t, err)
	require.Equal(t, Start{Position: f.end, Recovery: words.RecoveryNone, Detail: now.Detail}, now)
	early, err := f.fresh(StartEarliest)
	require.NoError(t, err)
	require.True(t, early.Usable)
	require.Equal(t, at(uuidA, "bin.000003", 4, f.purged), early.Position)
	_, err = f.fresh("yesterday")
	require.Error(t, err)
	bytes, files := f.behind(f.decide(at(uuidA, "bin.000003", 900, sid+":1-50")))
	require.Equal(t, uint64(100+1000+500), bytes)
	require.Equal(t, 2, files)
}

func TestStatementsOfVersions(t *testing.T) {
	for version, want := range map[string][]string{
		"8.4.0":           {"SHOW BINARY LOG STATUS", "SHOW REPLICAS", "SHOW REPLICA STATUS"},
		"8.0.36":          {"SHOW MASTER STATUS", "SHOW REPLICAS", "SHOW REPLICA STATUS"},
		"5.7.40":          {"SHOW MASTER STATUS", "SHOW SLAVE HOSTS", "SHOW SLAVE STATUS"},
		"10.11.2-MariaDB": {"SHOW MASTER STATUS", "SHOW SLAVE HOSTS", "SHOW ALL SLAVES STATUS"},
	} {
		s := &server{Server: mysql.NewServer(version, "", "0")}
		require.Equal(t, want, []string{s.showBinlogStatus(), s.showReplicas(), s.showReplicaStatus()}, version)
	}
}

func TestReasons(t *testing.T) {
	wrapped := func(err error) error { return fmt.Errorf("x: %w", plain.Error(err)) }
	for want, err := range map[string]error{
		words.ReconnectFatal:     gomysql.NewError(codeFatalReading, "Could not find first log file name in binary log index file"),
		words.ReconnectServerID:  gomysql.NewError(codeFatalReading, "A replica with the same server_uuid/server_id as this replica has connected to the source"),
		words.ReconnectDenied:    gomysql.NewError(1045, "Access denied"),
		words.ReconnectShutdown:  gomysql.NewError(codeServerShutdown, "Server shutdown in progress"),
		words.ReconnectServer:    gomysql.NewError(1064, "syntax"),
		words.ReconnectTimeout:   fmt.Errorf("%w: read tcp: i/o timeout", gomysql.ErrBadConn),
		words.ReconnectMalformed: fmt.Errorf("%w: x", assemble.ErrMalformed),
		words.ReconnectClosed:    io.EOF,
	} {
		require.Equal(t, want, reasonOf(wrapped(err)), err)
	}
	for text, want := range map[string]string{
		"Could not find first log file name in binary log index file":                        words.RecoveryPurged,
		"the source has purged binary logs containing GTIDs that the replica requires":       words.RecoveryPurged,
		"log event entry exceeded max_allowed_packet; Increase max_allowed_packet on source": words.RecoveryInvalid,
		"Client requested source to start replication from position > file size":             words.RecoveryInvalid,
	} {
		recovery, detail := fatalDetail(gomysql.NewError(codeFatalReading, text))
		require.Equal(t, want, recovery)
		require.Contains(t, detail, text)
	}
	recovery, _ := fatalDetail(errors.New("x"))
	require.Equal(t, words.RecoveryInvalid, recovery)
	require.Contains(t, (&PositionLost{Reason: "r", Detail: "d"}).Error(), "r")
}

func TestLibraryLogHandler(t *testing.T) {
	var out bytes.Buffer
	h := quietHandler{log: zerolog.New(&out).Level(zerolog.DebugLevel)}
	require.True(t, h.Enabled(context.Background(), 0))
	require.Equal(t, h, h.WithAttrs(nil))
	require.Equal(t, h, h.WithGroup("x"))
}

func TestConfigProblemsAreToldAtOnce(t *testing.T) {
	err := Config{HeartbeatPeriod: time.Millisecond, ReadTimeout: time.Microsecond, BufferBytes: -1, Tables: []string{"x"}}.Validate()
	for _, part := range []string{"addr", "user", "heartbeat", "read timeout", "buffer", "database.table"} {
		require.ErrorContains(t, err, part)
	}
	require.NoError(t, Config{Config: mysql.Config{Addr: "a:1", User: "u"}, Tables: []string{"a.b"}}.Validate())
	for _, addr := range []string{"x", "x:y", "x:99999"} {
		_, _, err := splitAddr(addr)
		require.Error(t, err)
	}
	host, port, err := splitAddr("/run/mysqld.sock")
	require.NoError(t, err)
	require.Equal(t, "/run/mysqld.sock", host)
	require.Zero(t, port)
}
