package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/go-sql-driver/mysql"

	"example.com/outbox-relay/test/process"
)

const startTime = 30 * time.Second

// play is the whole story. It returns the exit code of `outbox-relay demo`.
func play(ctx context.Context, o *options, dir string, out io.Writer) (code int, err error) {
	begun := time.Now()
	s, err := build(ctx, dir)
	if err != nil {
		return 1, err
	}
	defer func() {
		if cerr := s.close(); cerr != nil {
			code, err = max(code, 1), errors.Join(err, cerr)
		}
	}()
	log, err := os.Create(s.log())
	if err != nil {
		return 1, err
	}
	defer func() { _ = log.Close() }() // it is removed next
	tell := func(format string, args ...any) {
		_, _ = fmt.Fprintf(out, "%5.1f s  "+format+"\n", append([]any{time.Since(begun).Seconds()}, args...)...)
	}
	tell("MariaDB runs on %s, in this process a Kafka (kfake) on %s and a Redis (miniredis) on %s",
		s.mariadb.Addr, s.kafka.ListenAddrs()[0], s.redis.Addr())
	code, err = s.perform(ctx, o, out, log, tell)
	if (code != 0 || err != nil) && ctx.Err() == nil {
		_, _ = fmt.Fprintf(os.Stderr, "the relay's log ends with:\n%s\n", tail(s.log()))
	}
	return code, err
}

// perform runs the relay and the demo, and kills the relay in the middle.
func (s *stage) perform(ctx context.Context, o *options, out, log io.Writer, tell func(string, ...any)) (code int, err error) {
	relay, err := s.relay(ctx, o, log)
	if err != nil {
		return 1, err
	}
	defer func() {
		if serr := relay.Stop(); serr != nil && ctx.Err() == nil {
			code, err = max(code, 1), errors.Join(err, fmt.Errorf("stop the relay: %w", serr))
		}
	}()
	tell("the relay runs, process %d", relay.ID())
	service := []string{"OUTBOX_RELAY_SOURCE__PRIMARY__USER=service", "OUTBOX_RELAY_SOURCE__PRIMARY__PASSWORD=service"}
	demo, err := process.Launch(ctx, service, out, os.Stderr, o.relay, "demo", "--config", s.config(),
		"--transactions", strconv.Itoa(o.transactions), "--writers", strconv.Itoa(o.writers))
	if err != nil {
		return 1, err
	}
	defer func() { err = errors.Join(err, demo.Kill()) }() // it has ended, unless something is wrong
	committed, err := s.middle(ctx, demo, o.transactions)
	if err != nil {
		return 1, err
	}
	if committed > 0 {
		if err := relay.Kill(); err != nil {
			return 1, fmt.Errorf("kill the relay: %w", err)
		}
		killed := time.Now()
		next, err := s.relay(ctx, o, log)
		if err != nil {
			return 1, err
		}
		relay = next
		tell("the relay was killed (SIGKILL) with %d messages committed; another, process %d, was ready %.1f s later; p99 will show it",
			committed, relay.ID(), time.Since(killed).Seconds())
	}
	<-demo.Ended()
	if committed == 0 {
		tell("the relay was not killed: the demo ended before its middle was seen")
	}
	return exitCode(demo)
}

// relay starts the relay and waits until it is ready.
func (s *stage) relay(ctx context.Context, o *options, log io.Writer) (*process.Process, error) {
	p, err := process.Launch(ctx, nil, log, log, o.relay, "run", "--config", s.config())
	if err != nil {
		return nil, err
	}
	waiting, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	if poll(waiting, p, func() bool { return ready(waiting, s.console) }) {
		return p, nil
	}
	return nil, errors.Join(errors.New("the relay did not become ready"), p.Kill())
}

// middle waits until about half of the messages are committed and returns how many; 0 when the demo ended first.
func (s *stage) middle(ctx context.Context, demo *process.Process, transactions int) (int, error) {
	dsn := mysql.NewConfig()
	dsn.Net, dsn.Addr, dsn.User, dsn.Passwd = "tcp", s.mariadb.Addr, s.mariadb.User, s.mariadb.Password
	connector, err := mysql.NewConnector(dsn)
	if err != nil {
		return 0, err
	}
	db := sql.OpenDB(connector)
	defer func() { _ = db.Close() }() // only read from
	var count int
	there := poll(ctx, demo, func() bool {
		err = db.QueryRowContext(ctx, "SELECT COUNT(*) FROM app.local_message").Scan(&count)
		return err != nil || count >= max(1, transactions*9/10) // nine tenths commit, two messages each on average
	})
	if ctx.Err() != nil {
		return 0, ctx.Err()
	}
	if err != nil {
		return 0, fmt.Errorf("count the messages: %w", err)
	}
	if !there {
		return 0, nil
	}
	return count, nil
}

// tail returns the last lines of a file.
func tail(path string) string {
	const most = 4000
	text, err := os.ReadFile(path)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-most):])
}
