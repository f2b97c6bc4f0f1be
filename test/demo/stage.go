package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/alicebob/miniredis/v2"
	"github.com/twmb/franz-go/pkg/kfake"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/process"
	"example.com/outbox-relay/test/rig"
)

const partitions = 6

// The relay's user has what `outbox-relay init --print-sql` grants, the service's what `outbox-relay demo` needs.
var accounts = []string{
	"CREATE USER relay@'%' IDENTIFIED BY 'relay'",
	"GRANT SELECT, UPDATE ON app.local_message TO relay@'%'",
	"GRANT REPLICATION SLAVE, REPLICATION CLIENT, BINLOG ADMIN ON *.* TO relay@'%'",
	"CREATE USER service@'%' IDENTIFIED BY 'service'",
	"GRANT SELECT, INSERT, CREATE, DROP ON app.* TO service@'%'",
}

// stage is the servers, and the files of the relay.
type stage struct {
	dir     string
	mariadb *rig.Server
	kafka   *kfake.Cluster
	redis   *miniredis.Miniredis
	console string // the relay's
}

// build starts the servers and writes the relay's configuration.
func build(ctx context.Context, dir string) (s *stage, err error) {
	s = &stage{dir: dir}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.redis, err = miniredis.Run(); err != nil {
		return nil, fmt.Errorf("start redis: %w", err)
	}
	if s.kafka, err = kfake.NewCluster(kfake.NumBrokers(1), kfake.DefaultNumPartitions(partitions)); err != nil {
		return nil, fmt.Errorf("start kafka: %w", err)
	}
	if s.mariadb, err = rig.StartMariaDB(ctx); err != nil {
		return nil, err
	}
	create := outbox.Schema(outbox.Table{Database: "app", Name: "local_message"}, outbox.AllColumns())
	if err := s.mariadb.Exec(ctx, append([]string{"CREATE DATABASE app CHARACTER SET utf8mb4", create}, accounts...)...); err != nil {
		return nil, err
	}
	return s, s.configure(ctx)
}

// close ends the servers.
func (s *stage) close() error {
	if s.redis != nil {
		s.redis.Close()
	}
	if s.kafka != nil {
		s.kafka.Close()
	}
	if s.mariadb != nil {
		return s.mariadb.Close()
	}
	return nil
}

func (s *stage) config() string { return filepath.Join(s.dir, "outbox-relay.yaml") }
func (s *stage) log() string    { return filepath.Join(s.dir, "relay.log") }

// configure writes the smallest useful configuration. JSON is YAML.
func (s *stage) configure(ctx context.Context) (err error) {
	if s.console, err = process.FreeAddr(ctx); err != nil {
		return err
	}
	text, err := json.MarshalIndent(map[string]any{
		"source": map[string]any{
			"primary": map[string]any{"address": s.mariadb.Addr, "user": "relay", "password": "relay"},
			"tables":  []string{"app.local_message"},
		},
		"kafka":   map[string]any{"brokers": s.kafka.ListenAddrs()},
		"redis":   map[string]any{"url": "redis://" + s.redis.Addr() + "/0"},
		"console": map[string]any{"listen": s.console},
		"log":     map[string]any{"format": "json"},
	}, "", "  ")
	if err != nil {
		return fmt.Errorf("the relay's configuration: %w", err)
	}
	return os.WriteFile(s.config(), text, 0o600)
}
