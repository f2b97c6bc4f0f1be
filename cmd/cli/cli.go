// Package cli is the command line: flags, exit codes and output. What the commands do is the other packages' business.
package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/desk"
)

// Exit codes, as scripts and supervisors rely on them.
const (
	ExitOK          = 0
	ExitFailed      = 1   // failed while running
	ExitUsage       = 2   // wrong usage or configuration; nothing was touched
	ExitSource      = 3   // the source can't be streamed and policy forbids going on
	ExitLeadership  = 4   // lost leadership and could not hand over
	ExitProblems    = 5   // a check found problems
	ExitInterrupted = 130 // interrupted twice
)

// Streams are what a command reads and writes. Results go to Out, everything else to Err.
type Streams struct {
	In  io.Reader
	Out io.Writer
	Err io.Writer
	// Libraries, when not nil, sends what libraries log to a logger. They have one for the whole process, so that is main's
	// to change.
	Libraries func(zerolog.Logger)
}

// app is what the commands share.
type app struct {
	version string
	streams Streams
	environ []string
	flags   globalFlags
	format  render.Format // of flags.output, once that is checked
}

type globalFlags struct {
	config string
	sets   []string
	output string
	source string
}

// exitError carries an exit code with its error.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string { return e.err.Error() }
func (e *exitError) Unwrap() error { return e.err }

// shownError is an error that the command's result has told already.
type shownError struct{ error }

func (e *shownError) Unwrap() error { return e.error }

// exit makes an error end the program with a code of its own.
func exit(code int, err error) error { return &exitError{code: code, err: err} }

// Main runs the command line and returns the exit code.
func Main(version string, args []string, streams Streams, environ []string) int {
	ctx, stop := interruptible(streams.Err)
	defer stop()
	return execute(ctx, version, args, streams, environ)
}

// execute runs the command line until ctx ends.
func execute(ctx context.Context, version string, args []string, streams Streams, environ []string) int {
	a := &app{version: version, streams: streams, environ: environ}
	root := a.root() //nolint:contextcheck // cobra hands ctx to the commands
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	a.report(err)
	return codeOf(err)
}

// codeOf maps an error to an exit code. What cobra says about flags and arguments is wrong usage.
func codeOf(err error) int {
	var coded *exitError
	var broken *config.Error
	var unusable *desk.UsageError
	switch {
	case errors.As(err, &coded):
		return coded.code
	case errors.As(err, &broken), errors.As(err, &unusable):
		return ExitUsage
	}
	return ExitFailed
}

// report writes an error for a person.
func (a *app) report(err error) {
	if _, shown := errors.AsType[*shownError](err); !shown {
		_, _ = fmt.Fprintf(a.streams.Err, "error: %s\n", err)
	}
}

// sameSignal is how close two signals are one: timeout(1) and shells send it to the process and to its group.
const sameSignal = 500 * time.Millisecond

// interruptible returns a context that ends with the first SIGTERM or SIGINT. A second one ends the process at once.
func interruptible(stderr io.Writer) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2) // size 2: the second must not be dropped while the first is handled
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		var first time.Time
		for {
			select {
			case <-signals:
				if first.IsZero() {
					first = time.Now()
				} else if time.Since(first) >= sameSignal {
					_, _ = io.WriteString(stderr, "interrupted twice, stopping at once\n")
					os.Exit(ExitInterrupted)
				}
				cancel()
			case <-done:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}
