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
)

// options are the command line.
type options struct {
	relay        string
	transactions int
	writers      int
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code, err := start(ctx, os.Args[1:], os.Stdout)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	os.Exit(code)
}

// start reads the command line, and runs the demo in a folder that is removed again.
func start(ctx context.Context, args []string, out io.Writer) (code int, err error) {
	var o options
	flags := flag.NewFlagSet("demo", flag.ContinueOnError)
	flags.StringVar(&o.relay, "relay", "bin/outbox-relay", "the relay's binary")
	flags.IntVar(&o.transactions, "transactions", 10_000, "business transactions to write")
	flags.IntVar(&o.writers, "writers", 8, "services that write at once")
	if err := flags.Parse(args); err != nil {
		return 2, nil // flag has said why
	}
	dir, err := os.MkdirTemp("", "outbox-relay-demo-")
	if err != nil {
		return 1, err
	}
	defer func() {
		if rerr := os.RemoveAll(dir); rerr != nil {
			code, err = max(code, 1), errors.Join(err, rerr)
		}
	}()
	// The rig keeps its folders and locks here too, so that all goes at once.
	if err := os.Setenv("TMPDIR", dir); err != nil {
		return 1, err
	}
	code, err = play(ctx, &o, dir, out)
	if ctx.Err() != nil {
		return 1, errors.New("interrupted; everything is stopped and removed")
	}
	return code, err
}
