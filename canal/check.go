package canal

import (
	"context"
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"os"
	"strconv"
	"strings"

	"github.com/go-mysql-org/go-mysql/client"
	gomysql "github.com/go-mysql-org/go-mysql/mysql"

	"example.com/outbox-relay/canal/plain"
)

// checkStreamable tells whether the server writes a binlog that the relay can read. The reasons are ErrCannotStream.
func checkStreamable(ctx context.Context, q querier, s *server) error {
	if !s.on("log_bin") {
		return cannotStream("the server has no binary log: set log_bin in its configuration and restart it")
	}
	// Newer servers may drop the variable and always write rows.
	if format := s.variables["binlog_format"]; format != "" && !strings.EqualFold(format, "ROW") {
		return cannotStream("binlog_format is %s: run SET GLOBAL binlog_format = 'ROW', make it permanent in the server's configuration, and reconnect the writers",
			format)
	}
	if !s.MariaDB && !s.AtLeast(5, 7, 6) {
		return cannotStream("server version %s is too old: MySQL 5.7.6 or MariaDB 10.6 is needed", s.Version)
	}
	if s.MariaDB && !s.AtLeast(10, 6, 0) {
		return cannotStream("server version %s is too old: MySQL 5.7.6 or MariaDB 10.6 is needed", s.Version)
	}
	// The binlog itself is asked for, because the right to it may be missing.
	if _, err := s.end(ctx, q); err != nil {
		return err
	}
	if _, err := s.logs(ctx, q); err != nil {
		return err
	}
	return checkReplica(ctx, q, s)
}

// checkReplica refuses a replica that does not write what it receives into its own binlog: it looks healthy, and
// nothing ever comes.
func checkReplica(ctx context.Context, q querier, s *server) error {
	if s.logsReplicaUpdates() {
		return nil
	}
	running, err := s.replicating(ctx, q)
	switch {
	case denied(err):
		return nil // a courtesy
	case err != nil:
		return err
	case running:
		return cannotStream("the server is a replica that does not log what it receives: set log_replica_updates (log_slave_updates before MySQL 8.0.26 and on MariaDB) and restart it, or read from the primary")
	}
	return nil
}

func (s *server) logsReplicaUpdates() bool {
	return s.on("log_slave_updates") || s.on("log_replica_updates")
}

// replicating reports whether the server receives from another one. MariaDB shows the replica's status only to who
// has a right that the relay does without, but anybody may count the threads that apply.
func (s *server) replicating(ctx context.Context, q querier) (bool, error) {
	if s.MariaDB {
		result, err := q.Query(ctx, "SHOW GLOBAL STATUS LIKE 'Slaves_running'")
		if err != nil {
			return false, fmt.Errorf("count the replica's threads: %w", err)
		}
		return result.Len() > 0 && result.Text(0, 1) != "0", nil
	}
	result, err := q.Query(ctx, s.showReplicaStatus())
	if err != nil {
		return false, fmt.Errorf("read the replica's status: %w", err)
	}
	for i := range result.Len() {
		for _, name := range []string{"Replica_SQL_Running", "Slave_SQL_Running", "Replica_IO_Running", "Slave_IO_Running"} {
			if strings.EqualFold(result.Named(i, name), "Yes") {
				return true, nil
			}
		}
	}
	return false, nil
}

// takenServerIDs lists the server ids of the server and its replicas. Without the right to see the replicas it is the
// server's alone.
func (s *server) takenServerIDs(ctx context.Context, q querier) (map[uint32]string, error) {
	taken := map[uint32]string{s.serverID: "the server itself"}
	result, err := q.Query(ctx, s.showReplicas())
	if err != nil {
		if serverCode(err) != 0 {
			return taken, nil
		}
		return nil, fmt.Errorf("list replicas: %w", err)
	}
	for i := range result.Len() {
		id, err := strconv.ParseUint(result.Text(i, 0), 10, 32)
		if err == nil {
			taken[uint32(id)] = "replica " + result.Text(i, 1)
		}
	}
	return taken, nil
}

// chooseServerID returns the configured server id, or derives one from the source's and the host's name that nobody
// has. Two of one id disturb each other: the server cuts the older one off.
func chooseServerID(ctx context.Context, q querier, s *server, cfg Config) (uint32, error) {
	if cfg.ServerID != 0 {
		if cfg.ServerID == s.serverID {
			return 0, cannotStream("server_id %d is the server's own: choose another", cfg.ServerID)
		}
		return cfg.ServerID, nil
	}
	taken, err := s.takenServerIDs(ctx, q)
	if err != nil {
		return 0, err
	}
	host, err := os.Hostname()
	if err != nil {
		host = "localhost"
	}
	h := fnv.New32a()
	fmt.Fprintf(h, "outbox-relay/%s/%s/%d", cfg.Name, host, os.Getpid()) //nolint:errcheck // a hash does not fail
	// Above what people number their servers by.
	id := h.Sum32() | 1<<31
	for taken[id] != "" || id == 0 {
		id = id + 1 | 1<<31
	}
	return id, nil
}

// probeReplication asks to be registered as a replica, which needs the right to read the binlog. It is a connection
// of its own, since the server keeps the registration until that ends.
func probeReplication(ctx context.Context, a *Asker, serverID uint32) error {
	settings, err := a.streamTLS(ctx)
	if err != nil {
		return err
	}
	dialer := &rawDialer{}
	defer dialer.close()
	stop := context.AfterFunc(ctx, dialer.close)
	defer stop()
	connection, err := connectRaw(ctx, a.cfg, settings, dialer)
	if err == nil {
		err = register(connection, serverID)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return fmt.Errorf("register as a replica: %w", plain.Error(err))
}

// register sends COM_REGISTER_SLAVE.
func register(c *client.Conn, serverID uint32) error {
	c.ResetSequence()
	packet := make([]byte, 4, 32) // room for the packet's header
	packet = append(packet, gomysql.COM_REGISTER_SLAVE)
	packet = binary.LittleEndian.AppendUint32(packet, serverID)
	packet = append(packet, 0, 0, 0)            // host, user and password
	packet = append(packet, 0, 0)               // port
	packet = append(packet, make([]byte, 8)...) // rank and source id
	if err := c.WritePacket(packet); err != nil {
		return err
	}
	_, err := c.ReadOKPacket()
	return err
}

// grantAdvice is the statement that gives the rights to read the binlog.
func grantAdvice(user string) string {
	return fmt.Sprintf("GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO '%s'@'%%' (MariaDB calls the second BINLOG MONITOR)", user)
}
