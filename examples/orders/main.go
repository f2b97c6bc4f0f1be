// Command orders is the two services of the example, each a process of its own:
//
//	orders init   -shop DSN -loyalty DSN
//	orders order  -shop DSN -listen ADDRESS
//	orders points -loyalty DSN -brokers HOST:PORT
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/rs/zerolog"

	"example.com/outbox-relay/examples/orders/order"
	"example.com/outbox-relay/examples/orders/points"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "orders:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	flags := flag.NewFlagSet("orders", flag.ExitOnError)
	shop := flags.String("shop", "", "the order service's database, as a DSN of go-sql-driver/mysql")
	loyalty := flags.String("loyalty", "", "the points service's database")
	listen := flags.String("listen", "127.0.0.1:8080", "where the order service listens")
	brokers := flags.String("brokers", "127.0.0.1:9092", "Kafka's brokers, with commas between them")
	if len(args) == 0 {
		return errors.New("say which: orders init, orders order or orders points")
	}
	if err := flags.Parse(args[1:]); err != nil {
		return err
	}
	switch args[0] {
	case "init":
		return errors.Join(create(ctx, *shop, order.Schema()), create(ctx, *loyalty, points.Schema()))
	case "order":
		return withDB(*shop, func(db *sql.DB) error { return serve(ctx, *listen, order.New(db).Handler()) })
	case "points":
		log := zerolog.New(os.Stderr).With().Timestamp().Str("service", "points").Logger().Level(zerolog.InfoLevel)
		return withDB(*loyalty, func(db *sql.DB) error { return points.Run(ctx, db, strings.Split(*brokers, ","), log) })
	}
	return fmt.Errorf("unknown service %q: orders init, orders order or orders points", args[0])
}

func withDB(dsn string, do func(*sql.DB) error) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	return errors.Join(do(db), db.Close())
}

func create(ctx context.Context, dsn string, statements []string) error {
	return withDB(dsn, func(db *sql.DB) error {
		for _, statement := range statements {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}

// serve answers requests until ctx ends, and then those that have begun.
func serve(ctx context.Context, listen string, handler http.Handler) error {
	server := &http.Server{Addr: listen, Handler: handler, ReadHeaderTimeout: 5 * time.Second}
	stopped := make(chan error, 1) // size 1: the server may have failed to listen
	stop := context.AfterFunc(ctx, func() {
		last, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second) // requests may take that long to end
		defer cancel()
		stopped <- server.Shutdown(last)
	})
	err := server.ListenAndServe()
	if !stop() && errors.Is(err, http.ErrServerClosed) {
		return <-stopped
	}
	return err
}
