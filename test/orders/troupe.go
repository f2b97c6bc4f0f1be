package main

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/go-sql-driver/mysql"

	"example.com/outbox-relay/examples/orders/order"
	"example.com/outbox-relay/examples/orders/points"
	"example.com/outbox-relay/test/process"
)

// The roles: each is a process that may be killed at any time.
const (
	relayRole  = "relay"
	orderRole  = "order"
	pointsRole = "points"
)

var roles = []string{orderRole, relayRole, pointsRole}

// servers are what the processes talk to.
type servers struct {
	sql            string // host:port
	user, password string // of an administrator
	shop, loyalty  string // databases
	kafka          []string
	redis          string // URL
	prefix         string // of the keys in Redis, "" for the default
}

// troupe is the three processes and what they need.
type troupe struct {
	servers
	relay, orders string // binaries
	config        string // the relay's
	listen        string // the order service's
	output        io.Writer
	running       map[string]*process.Process
}

// newTroupe makes the tables and the relay's configuration; nothing runs yet.
func newTroupe(ctx context.Context, s servers, relay, orders, dir string, output io.Writer) (*troupe, error) {
	t := &troupe{
		servers: s, relay: relay, orders: orders, config: filepath.Join(dir, "outbox-relay.yaml"), output: output,
		running: make(map[string]*process.Process),
	}
	listen, err := process.FreeAddr(ctx)
	if err != nil {
		return nil, err
	}
	t.listen = listen
	if err := t.create(ctx, s.shop, order.Schema()); err != nil {
		return nil, err
	}
	if err := t.create(ctx, s.loyalty, points.Schema()); err != nil {
		return nil, err
	}
	return t, t.configure(ctx)
}

func (s *servers) dsn(database string) string {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Passwd, cfg.DBName = "tcp", s.sql, s.user, s.password, database
	return cfg.FormatDSN()
}

func (s *servers) open(database string) (*sql.DB, error) { return sql.Open("mysql", s.dsn(database)) }

func (s *servers) create(ctx context.Context, database string, statements []string) error {
	db, err := s.open(database)
	if err != nil {
		return err
	}
	for _, statement := range statements {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return errors.Join(err, db.Close())
		}
	}
	return db.Close()
}

// configure writes a small configuration. JSON is YAML.
func (t *troupe) configure(ctx context.Context) error {
	console, err := process.FreeAddr(ctx)
	if err != nil {
		return err
	}
	redis := map[string]any{"url": t.redis}
	if t.prefix != "" {
		redis["prefix"] = t.prefix
	}
	text, err := json.MarshalIndent(map[string]any{
		"source": map[string]any{
			"primary": map[string]any{"address": t.sql, "user": t.user, "password": t.password},
			"tables":  []string{t.shop + ".local_message"},
		},
		"kafka":   map[string]any{"brokers": t.kafka},
		"redis":   redis,
		"console": map[string]any{"listen": console},
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("the relay's configuration: %w", err)
	}
	return os.WriteFile(t.config, text, 0o600)
}

// start starts a role, or all.
func (t *troupe) start(ctx context.Context, names ...string) error {
	for _, name := range names {
		var command []string
		switch name {
		case relayRole:
			command = []string{t.relay, "run", "--config", t.config}
		case orderRole:
			command = []string{t.orders, "order", "-shop", t.dsn(t.shop), "-listen", t.listen}
		case pointsRole:
			command = []string{t.orders, "points", "-loyalty", t.dsn(t.loyalty), "-brokers", t.kafka[0]}
		}
		p, err := process.Launch(ctx, nil, t.output, t.output, command...)
		if err != nil {
			return err
		}
		t.running[name] = p
	}
	return nil
}

// kill ends a role with SIGKILL and starts it again.
func (t *troupe) kill(ctx context.Context, name string) error {
	if err := t.running[name].Kill(); err != nil {
		return fmt.Errorf("kill %s: %w", name, err)
	}
	return t.start(ctx, name)
}

// stop ends what runs, cleanly.
func (t *troupe) stop() error {
	var errs []error
	for name, p := range t.running {
		if err := p.Stop(); err != nil {
			errs = append(errs, fmt.Errorf("stop %s: %w", name, err))
		}
	}
	return errors.Join(errs...)
}
