package canal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/mysql"
)

// server is what has to be known of the server to talk to it: which statements it knows, and how it writes its binlog.
type server struct {
	mysql.Server
	// id is what position.Position.Server holds.
	id        string
	serverID  uint32
	variables map[string]string
}

// serverVariables are the variables that are looked at; a server that lacks one leaves it out of its answer.
var serverVariables = []string{
	"version", "version_comment", "server_id", "server_uuid", "gtid_domain_id", "gtid_mode", "log_bin", "binlog_format",
	"binlog_row_image", "binlog_row_metadata", "binlog_row_value_options", "lower_case_table_names",
	"log_slave_updates", "log_replica_updates", "binlog_expire_logs_seconds", "expire_logs_days", "max_allowed_packet",
	"system_time_zone", "time_zone", "binlog_transaction_compression",
}

// readServer asks the server who it is.
func readServer(ctx context.Context, q querier) (*server, error) {
	statement := "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('" + strings.Join(serverVariables, "','") + "')"
	result, err := q.Query(ctx, statement)
	if err != nil {
		return nil, fmt.Errorf("read server variables: %w", err)
	}
	s := &server{variables: make(map[string]string)}
	for i := range result.Len() {
		s.variables[strings.ToLower(result.Text(i, 0))] = result.Text(i, 1)
	}
	s.Server = mysql.NewServer(s.variables["version"], s.variables["version_comment"], s.variables["lower_case_table_names"])
	id, err := strconv.ParseUint(s.variables["server_id"], 10, 32)
	if err != nil {
		return nil, fmt.Errorf("server_id %q of the server: %w", s.variables["server_id"], err)
	}
	s.serverID = uint32(id)
	// MariaDB has no uuid. Two servers of one server_id and domain can't be told apart; replication forbids such a pair.
	s.id = s.variables["server_uuid"]
	if s.MariaDB {
		s.id = s.variables["server_id"] + ":" + s.variables["gtid_domain_id"]
	}
	return s, nil
}

// flavor is how positions call the kind of the server.
func (s *server) flavor() string {
	if s.MariaDB {
		return position.MariaDB
	}
	return position.MySQL
}

// gtid reports whether the server can be streamed by GTID: MySQL when all its transactions have one, MariaDB always.
func (s *server) gtid() bool { return s.MariaDB || strings.EqualFold(s.variables["gtid_mode"], "ON") }

func (s *server) on(variable string) bool {
	v := s.variables[variable]
	return v == "1" || strings.EqualFold(v, "ON")
}

// The statements that differ by version. SHOW MASTER STATUS and its like were removed from MySQL 8.4, their successors
// came with 8.2 and 8.0.22; MariaDB keeps the old ones.

func (s *server) showBinlogStatus() string {
	if !s.MariaDB && s.AtLeast(8, 2, 0) {
		return "SHOW BINARY LOG STATUS"
	}
	return "SHOW MASTER STATUS"
}

func (s *server) showReplicas() string {
	if !s.MariaDB && s.AtLeast(8, 0, 22) {
		return "SHOW REPLICAS"
	}
	return "SHOW SLAVE HOSTS"
}

func (s *server) showReplicaStatus() string {
	switch {
	case s.MariaDB:
		return "SHOW ALL SLAVES STATUS"
	case s.AtLeast(8, 0, 22):
		return "SHOW REPLICA STATUS"
	}
	return "SHOW SLAVE STATUS"
}

// end asks for the binlog's present end, complete with the set of GTIDs up to it.
//
// The set may lag behind the position by transactions that are just being committed: it is never ahead of it. A
// MariaDB is therefore asked for it first. (It could tell the set at the place, too, but reads the whole file for
// that: seconds for a gigabyte.)
func (s *server) end(ctx context.Context, q querier) (position.Position, error) {
	executed := ""
	if s.MariaDB {
		result, err := q.Query(ctx, "SELECT @@GLOBAL.gtid_binlog_pos")
		if err != nil {
			return position.Position{}, fmt.Errorf("read gtid_binlog_pos: %w", err)
		}
		executed = result.Text(0, 0)
	}
	p, gtids, err := s.place(ctx, q)
	if err == nil && !s.MariaDB && s.gtid() {
		executed = gtid.Clean(gtids)
	}
	p.GTID = executed
	return p, err
}

// place is end without the set. gtids is what a MySQL tells of it.
func (s *server) place(ctx context.Context, q querier) (p position.Position, gtids string, err error) {
	result, err := q.Query(ctx, s.showBinlogStatus())
	if err != nil {
		return position.Position{}, "", fmt.Errorf("read the end of the binlog: %w", err)
	}
	if result.Len() == 0 {
		return position.Position{}, "", cannotStream("the server has no binary log: set log_bin and restart it")
	}
	p = position.Position{Server: s.id, Flavor: s.flavor(), File: result.Text(0, 0)}
	if p.Pos, err = strconv.ParseUint(result.Text(0, 1), 10, 64); err != nil {
		return position.Position{}, "", fmt.Errorf("read the end of the binlog: position %q: %w", result.Text(0, 1), err)
	}
	return p, result.Text(0, 4), nil
}

// gtidAt asks a MariaDB for the GTID position at a place in its binlog; ok is false when no event starts there.
func (s *server) gtidAt(ctx context.Context, q querier, file string, pos uint64) (set string, ok bool, err error) {
	result, err := q.Query(ctx, "SELECT BINLOG_GTID_POS("+mysql.Literal(file)+", "+strconv.FormatUint(pos, 10)+")")
	if err != nil {
		return "", false, fmt.Errorf("read the gtid position at %s:%d: %w", file, pos, err)
	}
	if result.IsNull(0, 0) {
		return "", false, nil
	}
	return result.Text(0, 0), true, nil
}

// logFile is one file of the binlog.
type logFile struct {
	name string
	size uint64
}

// logs lists the files of the binlog, oldest first.
func (s *server) logs(ctx context.Context, q querier) ([]logFile, error) {
	result, err := q.Query(ctx, "SHOW BINARY LOGS")
	if err != nil {
		if serverCode(err) == mysql.CodeNoBinlog {
			return nil, cannotStream("the server has no binary log: set log_bin and restart it")
		}
		return nil, fmt.Errorf("list binlog files: %w", err)
	}
	files := make([]logFile, 0, result.Len())
	for i := range result.Len() {
		size, err := strconv.ParseUint(result.Text(i, 1), 10, 64)
		if err != nil {
			return nil, fmt.Errorf("list binlog files: size %q: %w", result.Text(i, 1), err)
		}
		files = append(files, logFile{name: result.Text(i, 0), size: size})
	}
	if len(files) == 0 {
		return nil, errors.New("list binlog files: the server names none")
	}
	return files, nil
}

// purged asks which transactions are in no binlog file any more.
func (s *server) purged(ctx context.Context, q querier, first string) (string, error) {
	if s.MariaDB {
		set, _, err := s.gtidAt(ctx, q, first, 4)
		return set, err
	}
	result, err := q.Query(ctx, "SELECT @@GLOBAL.gtid_purged")
	if err != nil {
		return "", fmt.Errorf("read gtid_purged: %w", err)
	}
	return gtid.Clean(result.Text(0, 0)), nil
}
