package canal

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"math"
	"net"
	"strconv"

	"github.com/go-mysql-org/go-mysql/client"
	gomysql "github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/plain"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/mysql"
)

// connection is one that the server sends its binlog through.
type connection struct {
	dialer   *rawDialer
	syncer   *replication.BinlogSyncer
	streamer *replication.BinlogStreamer
}

// eventCache is how many events may wait to be handled, enough to keep reading and decoding apart. The library's
// default would hold 10240, whatever their size.
const eventCache = 128

// dialStream makes the server send from a position: by file and offset, or by its GTIDs where it has some.
func dialStream(ctx context.Context, cfg Config, settings *tls.Config, s *server, from position.Position, byOffset bool, log zerolog.Logger) (*connection, error) {
	host, port, err := splitAddr(cfg.Addr)
	if err != nil {
		return nil, err
	}
	conn := &connection{dialer: &rawDialer{}}
	conn.syncer = replication.NewBinlogSyncer(replication.BinlogSyncerConfig{
		ServerID: cfg.ServerID, Flavor: s.flavor(), Host: host, Port: port, User: cfg.User, Password: cfg.Password,
		TLSConfig: settings, RawModeEnabled: true, HeartbeatPeriod: cfg.HeartbeatPeriod, ReadTimeout: cfg.ReadTimeout,
		DisableRetrySync: true, DiscardGTIDSet: true, EventCacheCount: eventCache, Dialer: conn.dialer.dial,
		FillZeroLogPos: s.MariaDB && s.AtLeast(11, 4, 0), Logger: slog.New(quietHandler{log: log}), Option: s.greet,
	})
	// The library does not look at a context while it starts.
	stop := context.AfterFunc(ctx, conn.dialer.close)
	conn.streamer, err = conn.start(s, from, byOffset)
	if !stop() || err != nil {
		conn.close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return conn, nil
}

func (s *connection) start(srv *server, from position.Position, byOffset bool) (*replication.BinlogStreamer, error) {
	if !byOffset && srv.gtid() && from.GTID != "" {
		set, err := gtid.Parse(from.Flavor, from.GTID)
		if err != nil {
			return nil, err
		}
		return s.syncer.StartSyncGTID(set.Native())
	}
	if from.Pos > math.MaxUint32 {
		return nil, fmt.Errorf("position %s is beyond 4 GiB", from)
	}
	return s.syncer.StartSync(gomysql.Position{Name: from.File, Pos: uint32(from.Pos)})
}

// greet prepares the connection that is to carry the binlog. It makes the server wait longer than its default of a
// minute for us to read on: while Kafka is away nothing is read, and each connection that the server gives up costs
// reading a transaction again. And it makes sure that this is the server whose files the position names: the address
// may have moved to another one since that was asked.
func (s *server) greet(c *client.Conn) error {
	for _, statement := range append(mysql.Settings(), "SET SESSION net_write_timeout = 3600") {
		if _, err := c.Execute(statement); err != nil {
			return err
		}
	}
	id := "@@GLOBAL.server_uuid"
	if s.MariaDB {
		id = "CONCAT(@@GLOBAL.server_id, ':', @@GLOBAL.gtid_domain_id)"
	}
	result, err := c.Execute("SELECT " + id)
	if err != nil {
		return err
	}
	defer result.Close()
	now, err := result.GetString(0, 0)
	if err != nil {
		return err
	}
	if now != s.id {
		return fmt.Errorf("server %s answers instead of %s: the address has moved", now, s.id)
	}
	return nil
}

// close ends the connection and waits for the library's goroutine. The library would connect once more to kill the
// connection on the server, and wait ten seconds for that when the server is away; the dialer refuses it.
func (s *connection) close() {
	s.dialer.close()
	s.syncer.Close()
}

// connectionID is how the server calls the connection.
func (s *connection) connectionID() uint32 { return s.syncer.LastConnectionID() }

// splitAddr splits host:port; a socket's path has no port.
func splitAddr(addr string) (host string, port uint16, err error) {
	if len(addr) > 0 && addr[0] == '/' {
		return addr, 0, nil
	}
	host, text, err := net.SplitHostPort(addr)
	if err != nil {
		return "", 0, fmt.Errorf("address %q: %w", addr, err)
	}
	n, err := strconv.ParseUint(text, 10, 16)
	if err != nil {
		return "", 0, fmt.Errorf("address %q: port: %w", addr, err)
	}
	return host, uint16(n), nil
}

// quietHandler passes go-mysql's log on at debug level. Attributes are left out: the library logs its whole
// configuration, and errors with the content of events.
type quietHandler struct {
	log zerolog.Logger
}

// Enabled reports whether anything would be written.
func (h quietHandler) Enabled(context.Context, slog.Level) bool {
	return h.log.GetLevel() <= zerolog.DebugLevel
}

// Handle writes the record's message.
func (h quietHandler) Handle(_ context.Context, r slog.Record) error {
	h.log.Debug().Str("library", "go-mysql").Msg(plain.Cut(r.Message))
	return nil
}

// WithAttrs returns the handler itself.
func (h quietHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup returns the handler itself.
func (h quietHandler) WithGroup(string) slog.Handler { return h }
