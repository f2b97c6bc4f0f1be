package canal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/outbox-relay/canal/plain"
	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/mysql"
)

// Report is what Inspect found.
type Report = diagnose.Report

// Bounds that Inspect warns at.
const (
	shortRetention = 24 * time.Hour
	clockTolerance = 5 * time.Second
)

// Inspect checks everything that streaming needs of the server, for doctor. An error means that the server could not
// be asked at all; whatever it answered is a finding.
func Inspect(ctx context.Context, cfg Config) (_ Report, err error) {
	cfg = cfg.withDefaults()
	a, err := NewAsker(cfg)
	if err != nil {
		return Report{}, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	s, err := readServer(ctx, a)
	if err != nil {
		return Report{}, err
	}
	i := &inspection{cfg: cfg, q: a, server: s}
	i.version()
	i.binlog()
	i.rowImages()
	i.retention()
	for _, step := range []func(context.Context) error{
		i.replicationClient, i.replicationSlave,
		i.replica, i.serverID, i.clock, i.tables,
	} {
		if err := step(ctx); err != nil {
			return i.report, err
		}
	}
	return i.report, nil
}

// inspection is one Inspect.
type inspection struct {
	cfg    Config
	q      *Asker
	server *server
	report Report
}

func (i *inspection) version() {
	s := i.server
	if s.MariaDB && !s.AtLeast(10, 6, 0) || !s.MariaDB && !s.AtLeast(5, 7, 6) {
		i.report.Fail("server version", s.Version+" is too old", "upgrade to MySQL 5.7.6 or MariaDB 10.6, or later")
		return
	}
	i.report.OK("server version", s.flavor()+" "+s.Version)
}

func (i *inspection) binlog() {
	s := i.server
	if !s.on("log_bin") {
		i.report.Fail("log_bin", "the server has no binary log: nothing can be streamed",
			"set log_bin=binlog in the server's configuration and restart it")
	} else {
		i.report.OK("log_bin", "on")
	}
	switch format := s.variables["binlog_format"]; {
	case format == "" || strings.EqualFold(format, "ROW"):
		i.report.OK("binlog_format", "ROW")
	default:
		i.report.Fail("binlog_format", format+": rows changed by statements never reach the stream",
			setVariable(s, "binlog_format", "'ROW'")+"; and reconnect the writers")
	}
	switch {
	case s.MariaDB:
		i.report.OK("gtid", "MariaDB always has GTIDs")
	case s.gtid():
		i.report.OK("gtid", "gtid_mode is ON")
	default:
		i.report.Warn("gtid", "gtid_mode is "+s.variables["gtid_mode"]+": after a failover the place can't be found again, and everything pending is swept",
			"set gtid_mode=ON and enforce_gtid_consistency=ON, step by step as the manual says")
	}
}

// setVariable is the statement that changes a variable for good: MariaDB has no PERSIST.
func setVariable(s *server, name, value string) string {
	if !s.MariaDB && s.AtLeast(8, 0, 0) {
		return "SET PERSIST " + name + " = " + value
	}
	return "SET GLOBAL " + name + " = " + value + " (and in the server's configuration)"
}

func (i *inspection) rowImages() {
	s := i.server
	if image := s.variables["binlog_row_image"]; image != "" && !strings.EqualFold(image, "FULL") {
		// Partial images are supported: a note, no warning.
		i.report.Add(diagnose.Finding{
			Check: "binlog_row_image", Means: image + ": this works; only rows that leave out columns whose default is an expression are left to the sweeper",
			Repair: setVariable(s, "binlog_row_image", "'FULL'") + "  -- optional",
		})
	} else {
		i.report.OK("binlog_row_image", "FULL")
	}
	switch metadata, known := s.variables["binlog_row_metadata"]; {
	case !known:
		i.report.Warn("binlog_row_metadata", "this version does not write column names: after an ALTER TABLE, rows that were written before it are left to the sweeper", "upgrade to MySQL 8.0")
	case !strings.EqualFold(metadata, "FULL"):
		i.report.Warn("binlog_row_metadata", metadata+": the binlog does not tell column names; after an ALTER TABLE, rows that were written before it are left to the sweeper",
			setVariable(s, "binlog_row_metadata", "'FULL'"))
	default:
		i.report.OK("binlog_row_metadata", "FULL")
	}
}

func (i *inspection) retention() {
	switch d := i.server.retention(); {
	case d == 0:
		i.report.OK("binlog retention", "binlogs are kept until somebody purges them")
	case d < shortRetention:
		repair := setVariable(i.server, "binlog_expire_logs_seconds", "604800")
		i.report.Fail("binlog retention", fmt.Sprintf("binlogs are kept for %s only: a relay that is down for longer loses its place, and everything pending is swept", d), repair)
	default:
		i.report.OK("binlog retention", d.String())
	}
}

// replicationClient checks the right to ask for the binlog's files and end.
func (i *inspection) replicationClient(ctx context.Context) error {
	check, grant := "privilege REPLICATION CLIENT", "REPLICATION CLIENT"
	if i.server.MariaDB {
		check, grant = "privilege BINLOG MONITOR", "BINLOG MONITOR"
	}
	_, err := i.server.end(ctx, i.q)
	if err == nil {
		_, err = i.server.logs(ctx, i.q)
	}
	switch {
	case denied(err):
		i.report.Fail(check, "missing: the binlog's files and end can't be asked for", i.grant(grant))
	case errors.Is(err, ErrCannotStream):
		return nil // reported as log_bin
	case err != nil:
		return err
	default:
		i.report.OK(check, "granted")
	}
	return nil
}

// replicationSlave checks the right to read the binlog.
func (i *inspection) replicationSlave(ctx context.Context) error {
	const check = "privilege REPLICATION SLAVE"
	// Under an id that is free: asking under that of a replica would make the server forget it.
	cfg := i.cfg
	cfg.ServerID = 0
	id, err := chooseServerID(ctx, i.q, i.server, cfg)
	if err == nil {
		err = probeReplication(ctx, i.q, id)
	}
	switch {
	case denied(err):
		i.report.Fail(check, "missing: the binlog can't be read", i.grant("REPLICATION SLAVE"))
	case err != nil && serverCode(err) == 0:
		return err
	case err != nil:
		i.report.Fail(check, "the server refuses to stream: "+plain.Text(err), "")
	default:
		i.report.OK(check, "granted")
	}
	return nil
}

func (i *inspection) grant(privilege string) string {
	return "GRANT " + privilege + " ON *.* TO '" + i.cfg.User + "'@'%'"
}

func (i *inspection) replica(ctx context.Context) error {
	const check = "log_replica_updates"
	running, err := i.server.replicating(ctx, i.q)
	switch {
	case denied(err):
		i.report.OK(check, "not checked: the right to see the replication status is missing, and not needed otherwise")
	case err != nil && serverCode(err) == 0:
		return err
	case err != nil || !running:
		i.report.OK(check, "the server is no replica")
	case i.server.logsReplicaUpdates():
		i.report.OK(check, "on, the server is a replica")
	default:
		i.report.Fail(check, "the server is a replica that does not log what it receives: the stream would stay empty",
			"set log_replica_updates=ON (log_slave_updates on MariaDB and before MySQL 8.0.26) in its configuration and restart it, or read from the primary")
	}
	return nil
}

func (i *inspection) serverID(ctx context.Context) error {
	const check = "server_id"
	if i.cfg.ServerID == 0 {
		i.report.OK(check, "derived, and checked to be free at each start")
		return nil
	}
	taken, err := i.server.takenServerIDs(ctx, i.q)
	if err != nil {
		return err
	}
	if by := taken[i.cfg.ServerID]; by != "" {
		i.report.Fail(check, fmt.Sprintf("%d is taken by %s: the two cut each other off (a running relay shows up here as well)", i.cfg.ServerID, by),
			"choose another source.server_id, or 0 to derive one")
		return nil
	}
	i.report.OK(check, fmt.Sprintf("%d is free", i.cfg.ServerID))
	return nil
}

func (i *inspection) clock(ctx context.Context) error {
	before := time.Now()
	result, err := i.q.Query(ctx, "SELECT UNIX_TIMESTAMP(NOW(6)), @@GLOBAL.time_zone, @@system_time_zone")
	if err != nil {
		return fmt.Errorf("read the server's clock: %w", err)
	}
	here := before.Add(time.Since(before) / 2)
	seconds, err := strconv.ParseFloat(result.Text(0, 0), 64)
	if err != nil {
		return fmt.Errorf("read the server's clock: %w", err)
	}
	apart := time.Unix(0, int64(seconds*float64(time.Second))).Sub(here).Round(time.Millisecond)
	if apart.Abs() > clockTolerance {
		i.report.Warn("clock", fmt.Sprintf("the server's clock differs from this host's by %s: delays and lags shown are wrong by that", apart),
			"synchronise both hosts by NTP")
	} else {
		i.report.OK("clock", fmt.Sprintf("apart by %s", apart))
	}
	i.report.OK("time zone", result.Text(0, 1)+" (system "+result.Text(0, 2)+")")
	return nil
}

// tables checks that some table matches the patterns.
func (i *inspection) tables(ctx context.Context) error {
	patterns, err := mysql.ParsePatterns(i.cfg.Tables)
	if err != nil {
		return err
	}
	patterns = patterns.Excluding(i.cfg.History).FoldCase(i.server.FoldNames)
	there, err := i.q.tables(ctx, patterns)
	if err != nil {
		return err
	}
	found := there.Where(patterns.Match)
	if len(found) == 0 {
		i.report.Fail("tables", "no table matches "+strings.Join(i.cfg.Tables, ", ")+", or the user may not see it",
			"run outbox-relay init, or correct source.tables")
		return nil
	}
	i.report.OK("tables", fmt.Sprintf("%d found, %s first", len(found), found[0]))
	return nil
}
