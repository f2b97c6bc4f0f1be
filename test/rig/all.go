package rig

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"golang.org/x/sync/errgroup"

	"example.com/outbox-relay/test/rig/internal/install"
	"example.com/outbox-relay/test/rig/internal/proc"
)

// All is one server of each kind, run by this process for test binaries or for a person.
type All struct {
	MySQL, MariaDB *Server
	Redis          *RedisServer
	Kafka          *KafkaServer

	dir *proc.Dir // of the file that describes them
}

// StartAll starts them at once. They end with Close, or with the process.
func StartAll(ctx context.Context) (*All, error) {
	dir, err := proc.NewDir("all")
	if err != nil {
		return nil, err
	}
	all := &All{dir: dir}
	var group errgroup.Group // each has its own time limit
	none := collect(nil)
	group.Go(func() (err error) { all.MySQL, err = startMySQL(ctx, none); return err })
	group.Go(func() (err error) { all.MariaDB, err = startMariaDB(ctx, none); return err })
	group.Go(func() (err error) { all.Redis, err = startRedis(ctx, none); return err })
	group.Go(func() (err error) { all.Kafka, err = startKafka(ctx, none); return err })
	if err := group.Wait(); err != nil {
		return nil, errors.Join(err, all.Close())
	}
	return all, all.describe()
}

// describe writes the file that test binaries attach by.
func (a *All) describe() error {
	d := description{
		MySQL:   &sqlDescription{Addr: a.MySQL.Addr, DataDir: a.MySQL.DataDir},
		MariaDB: &sqlDescription{Addr: a.MariaDB.Addr, DataDir: a.MariaDB.DataDir},
		Redis:   a.Redis.Addr,
		Kafka:   a.Kafka.Brokers,
	}
	text, err := json.Marshal(d)
	if err == nil {
		err = os.WriteFile(a.file(), text, 0o600)
	}
	if err != nil {
		return errors.Join(fmt.Errorf("describe the servers: %w", err), a.Close())
	}
	return nil
}

func (a *All) file() string { return a.dir.Join("rig.json") }

// Environ returns the environment of a test binary that is to use these servers.
func (a *All) Environ(environ []string) ([]string, error) {
	cache, err := install.Cache()
	if err != nil {
		return nil, err
	}
	// The product refuses variables with its prefix that it does not know.
	environ = slices.DeleteFunc(slices.Clone(environ), func(v string) bool {
		return strings.HasPrefix(v, "OUTBOX_RELAY_CACHE=")
	})
	return append(environ, "RIG_CACHE="+cache, fileVariable+"="+a.file()), nil
}

// Close ends the servers and removes their folders.
func (a *All) Close() error {
	var errs []error
	if a.MySQL != nil {
		errs = append(errs, a.MySQL.inst.destroy())
	}
	if a.MariaDB != nil {
		errs = append(errs, a.MariaDB.inst.destroy())
	}
	if a.Redis != nil {
		errs = append(errs, a.Redis.inst.destroy())
	}
	if a.Kafka != nil {
		errs = append(errs, a.Kafka.destroy())
	}
	return errors.Join(append(errs, a.dir.Remove())...)
}

// Exec runs statements as the administrator, for a process that is no test.
func (s *Server) Exec(ctx context.Context, statements ...string) error {
	for _, statement := range statements {
		if err := s.run(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// MakeTopic is CreateTopic for a process that is no test.
func (s *KafkaServer) MakeTopic(ctx context.Context, name string, partitions int) error {
	return s.createTopic(ctx, name, partitions, nil)
}
