package rig

import (
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"example.com/outbox-relay/test/rig/internal/proc"
)

// Replica starts a second server of the same flavor that follows this one by GTID from the beginning of its binlog,
// writes what it receives to its own binlog and is read_only. It ends with the test. Take a source of the test's own
// (Own): a shared one has everybody's history, which the replica would have to read first.
func (s *Server) Replica(t testing.TB, opts ...Option) *Server {
	t.Helper()
	opts = append([]Option{Args("--log-slave-updates=1", "--read-only=1")}, opts...)
	start := MariaDB
	if s.Flavor == FlavorMySQL {
		opts[0] = Args("--log-replica-updates=ON", "--read-only=ON")
		start = MySQL
	}
	replica := start(t, opts...)
	replica.Follow(t, s)
	replica.CatchUp(t, s)
	return replica
}

// Follow makes the server replicate from the source by GTID, as the administrator. What it followed before is
// forgotten, its own data and history stay: so a replica is put behind a new source.
func (s *Server) Follow(t testing.TB, source *Server) {
	t.Helper()
	host, port, err := net.SplitHostPort(source.Addr)
	if err != nil {
		t.Fatal(err)
	}
	if s.Flavor == FlavorMariaDB {
		s.exec(t, "STOP SLAVE")
		// What it has, be it written here while it was no replica, counts as received.
		s.exec(t, "SET GLOBAL gtid_slave_pos = @@GLOBAL.gtid_binlog_pos")
		s.exec(t, fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='%s', MASTER_PASSWORD='%s', "+
			"MASTER_USE_GTID=slave_pos, MASTER_CONNECT_RETRY=1, MASTER_HEARTBEAT_PERIOD=1", host, port, source.User, source.Password))
		s.exec(t, "START SLAVE")
		return
	}
	s.exec(t, "STOP REPLICA")
	s.exec(t, fmt.Sprintf("CHANGE REPLICATION SOURCE TO SOURCE_HOST='%s', SOURCE_PORT=%s, SOURCE_USER='%s', SOURCE_PASSWORD='%s', "+
		"SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1, SOURCE_CONNECT_RETRY=1, SOURCE_HEARTBEAT_PERIOD=1",
		host, port, source.User, source.Password))
	s.exec(t, "START REPLICA")
}

// CatchUp waits until the server has applied everything that the source has committed by now.
func (s *Server) CatchUp(t testing.TB, source *Server) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), startTimeout)
	defer cancel()
	if err := s.catchUp(ctx, source); err != nil {
		t.Fatalf("wait for the replica %s: %v", s.Addr, err)
	}
}

func (s *Server) catchUp(ctx context.Context, source *Server) error {
	position, wait := "SELECT @@GLOBAL.gtid_executed", "SELECT WAIT_FOR_EXECUTED_GTID_SET(?, 1)"
	if s.Flavor == FlavorMariaDB {
		position, wait = "SELECT @@GLOBAL.gtid_binlog_pos", "SELECT MASTER_GTID_WAIT(?, 1)"
	}
	from, err := source.open("")
	if err != nil {
		return err
	}
	defer from.Close() //nolint:errcheck // only read
	to, err := s.open("")
	if err != nil {
		return err
	}
	defer to.Close() //nolint:errcheck // only read
	var gtids string
	if err := from.QueryRowContext(ctx, position).Scan(&gtids); err != nil {
		return fmt.Errorf("read the source's position: %w", err)
	}
	return proc.Poll(ctx, func(ctx context.Context) error {
		ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
		defer cancel()
		var late int
		if err := to.QueryRowContext(ctx, wait, gtids).Scan(&late); err != nil {
			return err
		}
		if late != 0 {
			return fmt.Errorf("it has not applied %s yet, see SHOW REPLICA STATUS", gtids)
		}
		return nil
	})
}
