package canal

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal/assemble"
	"example.com/outbox-relay/canal/plain"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
)

// Reader reads one server's binlog. Stream and Next are for one goroutine, everything else may be called by any.
type Reader struct {
	cfg   Config
	log   zerolog.Logger
	meta  *Asker
	own   *Asker // what Close closes, nil when the Asker is shared
	state stateKeeper
	link  link

	// nextMu guards what follows: it is held while Stream and Next run. It is never taken under link.mu.
	nextMu   sync.Mutex
	dispatch *assemble.Dispatcher
	cursor   *Cursor // behind what Next returned last
	attempts attempts
	pace     pace
	server   *server
}

// link is the connection that carries the binlog, which Close ends from outside.
type link struct {
	mu         sync.Mutex
	connection *connection
	closed     bool
	// closing ends what waits in Next.
	closing chan struct{}
}

// attempts is how connections fail and are replaced.
type attempts struct {
	observe Observer
	broken  *trouble.Log
	backoff *retry.Attempts
	// stuck counts the connections that ended, for a reason that may be the position's, before they brought anything.
	stuck int
	stale uint32 // the server's number of a connection that went silent, 0 when there is none
}

// pace is when things that need not be done at each event were last done.
type pace struct {
	still standstill
	// reported is when Next last returned, noted when State was last written.
	reported, noted time.Time
}

// Open connects for the first time and checks that the server can be streamed from. An error that is ErrCannotStream
// says that it can't until somebody changes it; any other, that it could not be asked.
func Open(ctx context.Context, cfg Config, log zerolog.Logger, observe Observer) (*Reader, error) {
	a, err := NewAsker(cfg)
	if err != nil {
		return nil, err
	}
	r, err := a.Open(ctx, log, observe)
	if err != nil {
		return nil, errors.Join(err, a.Close())
	}
	r.own = a
	return r, nil
}

// Open is the package's Open for a Reader that asks through the Asker, which must be open for as long as the Reader
// is.
func (a *Asker) Open(ctx context.Context, log zerolog.Logger, observe Observer) (*Reader, error) {
	cfg := a.cfg
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("configuration of the binlog reader: %w", err)
	}
	patterns, err := mysql.ParsePatterns(cfg.Tables)
	if err != nil {
		return nil, err
	}
	if observe == nil {
		observe = NopObserver{}
	}
	log = log.With().Str("component", "canal").Logger()
	closing := make(chan struct{})
	r := &Reader{
		cfg: cfg, log: log, meta: a.until(closing), link: link{closing: closing},
		attempts: attempts{
			observe: observe, backoff: retry.Doubling(100*time.Millisecond, 10*time.Second).Attempts(),
			broken: trouble.New(log, trouble.Texts{
				Fails: "binlog connection lost, reconnecting", Works: "binlog connection stands again",
				Level: zerolog.WarnLevel,
			}),
		},
	}
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	r.dispatch = assemble.New(assemble.Config{
		Flavor: r.server.flavor(), Tables: patterns.Excluding(cfg.History).FoldCase(r.server.FoldNames), Columns: r.cfg.Columns, Statuses: r.cfg.Statuses,
		BufferBytes: r.cfg.BufferBytes, SpillDir: r.cfg.SpillDir, Closing: r.link.closing,
		Waiting: func(what string) { r.state.set(func(s *State) { s.Waiting = what }) },
	}, r.meta, r.log)
	return r, nil
}

// check asks the server whether it can be streamed from, and settles what depends on the answers.
func (r *Reader) check(ctx context.Context) error {
	s, err := readServer(ctx, r.meta)
	if err == nil {
		err = checkStreamable(ctx, r.meta, s)
	}
	if err == nil {
		r.cfg.ServerID, err = chooseServerID(ctx, r.meta, s, r.cfg)
	}
	if err == nil {
		err = probeReplication(ctx, r.meta, r.cfg.ServerID)
	}
	if err != nil {
		if denied(err) && !errors.Is(err, ErrCannotStream) {
			return cannotStream("%s: %s", plain.Text(err), grantAdvice(r.cfg.User))
		}
		return err
	}
	r.server = s
	return nil
}

// Resolve says where to stream from: from the saved position if have is true and the server can go on from it, else
// from where start says (StartNow or StartEarliest) or from the present end. It never fails because of the position:
// an error means that the server could not be asked.
func (r *Reader) Resolve(ctx context.Context, saved position.Position, have bool, start string) (Start, error) {
	if !have || saved.IsZero() {
		f, err := readFacts(ctx, r.meta)
		if err != nil {
			return Start{}, fmt.Errorf("resolve the position: %w", err)
		}
		return f.fresh(start)
	}
	f, s, err := decided(ctx, r.meta, saved)
	if err != nil {
		return Start{}, fmt.Errorf("resolve the position: %w", err)
	}
	if !s.Usable {
		return s, nil
	}
	wrong, err := f.checkHistory(ctx, r.meta, s.Position)
	if err != nil {
		return Start{}, fmt.Errorf("resolve the position: %w", err)
	}
	if wrong != "" {
		return f.present(words.RecoveryInvalid, wrong), nil
	}
	return s, nil
}

// End asks the server for its binlog's present end, complete with GTID set and server id. Whatever was visible in the
// tables before the call is in the binlog before that end.
func (r *Reader) End(ctx context.Context) (position.Position, error) {
	s, err := readServer(ctx, r.meta)
	if err != nil {
		return position.Position{}, err
	}
	return s.end(ctx, r.meta)
}

// Read returns the end of the last transaction that Next returned.
func (r *Reader) Read() position.End { return r.state.get().Read }

// State returns how the stream is doing.
func (r *Reader) State() State { return r.state.get() }

// Close ends the stream. A Next that waits returns. Transactions that were handed out stay usable.
func (r *Reader) Close() error {
	r.link.mu.Lock()
	if r.link.closed {
		r.link.mu.Unlock()
		return nil
	}
	r.link.closed = true
	close(r.link.closing)
	conn := r.link.connection
	r.link.connection = nil
	r.link.mu.Unlock()
	if conn != nil {
		conn.close()
	}
	r.nextMu.Lock()
	defer r.nextMu.Unlock()
	r.dispatch.Discard()
	if r.own != nil {
		return r.own.Close()
	}
	return nil
}
