// Command orders plays the example of two services: a MariaDB in a temporary folder, Kafka and Redis in its own process, the real
// relay between an order service and a points service. Customers order and pay, each of the three is killed, and at the end each
// paid order must have its points exactly once.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/twmb/franz-go/pkg/kfake"

	"example.com/outbox-relay/examples/orders/order"
	"example.com/outbox-relay/examples/orders/points"
	"example.com/outbox-relay/test/rig"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) (err error) {
	flags := flag.NewFlagSet("orders", flag.ExitOnError)
	relay := flags.String("relay", "bin/outbox-relay", "the relay's binary")
	services := flags.String("services", "bin/orders-services", "the services' binary")
	number := flags.Int("orders", 2000, "orders to be paid")
	if err := flags.Parse(args); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "outbox-relay-orders-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	// The rig keeps its folders and locks here too, so that all goes at once.
	if err := os.Setenv("TMPDIR", dir); err != nil {
		return err
	}
	s, closeAll, err := embedded(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, closeAll()) }()
	log, err := os.Create(dir + "/log")
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }() // it is removed next
	t, err := newTroupe(ctx, s, *relay, *services, dir, log)
	if err != nil {
		return err
	}
	return t.play(ctx, *number, out)
}

// embedded starts the servers.
func embedded(ctx context.Context) (s servers, closeAll func() error, err error) {
	redis, err := miniredis.Run()
	if err != nil {
		return s, nil, fmt.Errorf("start redis: %w", err)
	}
	kafka, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, order.Topic), kfake.SeedTopics(1, points.DeadLetterTopic))
	if err != nil {
		redis.Close()
		return s, nil, fmt.Errorf("start kafka: %w", err)
	}
	mariadb, err := rig.StartMariaDB(ctx)
	if err == nil {
		err = mariadb.Exec(ctx, "CREATE DATABASE shop", "CREATE DATABASE loyalty")
	}
	closeAll = func() error {
		redis.Close()
		kafka.Close()
		if mariadb == nil {
			return nil
		}
		return mariadb.Close()
	}
	if err != nil {
		return s, nil, errors.Join(err, closeAll())
	}
	return servers{
		sql: mariadb.Addr, user: mariadb.User, password: mariadb.Password, shop: "shop", loyalty: "loyalty",
		kafka: kafka.ListenAddrs(), redis: "redis://" + redis.Addr() + "/0",
	}, closeAll, nil
}

// play runs the services, kills each of them, and tells how it went.
func (t *troupe) play(ctx context.Context, number int, out io.Writer) (err error) {
	begun := time.Now()
	tell := func(format string, args ...any) {
		_, _ = fmt.Fprintf(out, "%5.1f s  "+format+"\n", append([]any{time.Since(begun).Seconds()}, args...)...)
	}
	if err := t.start(ctx, roles...); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.stop()) }()
	tell("the order service listens on http://%s, the relay and the points service run", t.listen)
	c := &customers{url: "http://" + t.listen}
	shopping := make(chan error, 1) // size 1: a failure must not keep it waiting
	go func() { shopping <- c.shop(ctx, 8, number, nil) }()
	for i, role := range roles {
		if err := t.reach(ctx, c, (i+1)*number/(len(roles)+1), shopping); err != nil {
			return err
		}
		if err := t.kill(ctx, role); err != nil {
			return err
		}
		tell("%d orders are paid; the %s was killed (SIGKILL) and started again", c.paid.Load(), role)
	}
	if err := <-shopping; err != nil {
		return err
	}
	v, err := t.judge(ctx, time.Minute)
	if err != nil {
		return err
	}
	tell("%s", v)
	if !v.ok() {
		return errors.New("not every paid order has its points exactly once")
	}
	return nil
}

// reach waits until so many orders are paid.
func (t *troupe) reach(ctx context.Context, c *customers, paid int, shopping <-chan error) error {
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for int(c.paid.Load()) < paid {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-shopping:
			return errors.Join(errors.New("the customers have stopped"), err)
		case <-tick.C:
		}
	}
	return nil
}
