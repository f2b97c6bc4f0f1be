package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rs/zerolog"
	"github.com/spf13/cobra"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/desk/rewind"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/store"
)

// change is one move of the checkpoint: what is known, what was decided, and what will follow.
type change struct {
	*scope
	flags       changeFlags
	rows        *store.Store
	checkpoints *checkpoint.Store
	// reader is nil where the binlog can't be read, which only forgetting the position can do without.
	reader *canal.Reader
	stream canal.Config
	end    position.Position

	old    position.Position
	haveOK bool // there is an old position and the server can go on from it
	event  string
	to     *position.Position // nil: no checkpoint
	undone bool
	view   changeView
}

// change says what would follow from a move of the checkpoint and, with --yes, makes it.
func (a *app) change(cmd *cobra.Command, flags changeFlags, action string, decide func(context.Context, *change) error) error {
	if err := flags.check(cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	return a.withRows(ctx, func(s *scope, rows *store.Store) (err error) {
		if s.source.Mode == string(relay.Sweep) {
			return exit(ExitUsage, fmt.Errorf("source %s is in mode sweep: it reads no binlog and has no checkpoint", s.source.Name))
		}
		checkpoints, err := s.checkpoints()
		if err != nil {
			return err
		}
		c := &change{scope: s, flags: flags, rows: rows, checkpoints: checkpoints}
		defer func() { err = errors.Join(err, c.close()) }()
		if err := c.open(ctx, action); err != nil {
			return err
		}
		if err := decide(ctx, c); err != nil {
			return err
		}
		if err := c.foresee(ctx); err != nil {
			return err
		}
		if !flags.yes {
			err := a.print(c.view)
			a.say("nothing was changed; run it again with --yes")
			return err
		}
		if err := c.apply(ctx, operator(a.environ, flags.reason)); err != nil {
			return err
		}
		return a.print(c.view)
	})
}

func (c *change) close() error {
	err := c.checkpoints.Close()
	if c.reader != nil {
		err = errors.Join(err, c.reader.Close())
	}
	return err
}

// open reads what is there now.
func (c *change) open(ctx context.Context, action string) error {
	now, err := loadCheckpoint(ctx, c.checkpoints, c.source.Name)
	if err != nil {
		return err
	}
	c.view = changeView{Source: c.source.Name, Action: action, Old: now.Position, OldProblem: now.Problem}
	c.view.Leader = c.leader(ctx, c.rows, c.checkpoints)
	if c.view.Rows, err = readCounts(ctx, c.rows); err != nil {
		return err
	}
	if c.stream, err = wire.Stream(c.config, c.source); err != nil {
		return exit(ExitUsage, err)
	}
	log := c.log
	if log.GetLevel() == zerolog.WarnLevel {
		log = log.Level(zerolog.ErrorLevel) // that a connection is lost while reading is told by the error that ends it
	}
	c.reader, err = canal.Open(ctx, c.stream, log, nil)
	if err != nil {
		c.reader = nil
		if action == "reset to "+toTable {
			c.view.Follows = append(c.view.Follows, "The binlog can't be read, so what the stream would have brought is not counted: "+err.Error())
			return nil
		}
		if errors.Is(err, canal.ErrCannotStream) {
			return exit(ExitSource, err)
		}
		return err
	}
	if c.end, err = c.reader.End(ctx); err != nil {
		return err
	}
	if now.Position != nil {
		c.old = now.Position.position()
		start, err := c.reader.Resolve(ctx, c.old, true, canal.StartNow)
		if err != nil {
			return err
		}
		c.haveOK = start.Usable
		if !start.Usable {
			c.view.OldProblem = fmt.Sprintf("the server can't go on from it (%s): %s", start.Recovery, start.Detail)
		}
	}
	return nil
}

// moveTo notes the new position and which way it lies.
func (c *change) moveTo(ctx context.Context, to position.Position, bySet bool) error {
	c.to, c.view.New = &to, viewOf(to)
	switch {
	case c.haveOK:
		c.view.Direction = string(rewind.Between(c.old, to, bySet))
	case to == c.end:
		c.view.Direction = string(rewind.Forward)
	default:
		c.view.Direction = string(rewind.Back)
	}
	d, err := canal.BinlogDistance(ctx, c.stream, to)
	if err != nil {
		return err
	}
	c.view.Binlog = binlogOf(d)
	return nil
}

// skips reports whether rows may lie between the old position and the new one, which the stream then never brings.
func (c *change) skips() bool {
	return c.to != nil && c.view.Direction != string(rewind.Back) && c.view.Direction != string(rewind.Same)
}

// foresee counts what lies between the positions.
func (c *change) foresee(ctx context.Context) error {
	from, until := c.old, c.end
	switch {
	case c.reader == nil, c.to == nil && !c.haveOK:
		c.foretell()
		return nil
	case c.to == nil:
	case c.view.Direction == string(rewind.Forward):
		until = *c.to
	default:
		from = *c.to
		if c.haveOK && c.view.Direction == string(rewind.Back) {
			until = c.old
		}
	}
	readable := c.haveOK || c.view.Direction != string(rewind.Forward)
	if c.view.Binlog != nil && !c.view.Binlog.Usable && from == *c.to {
		readable = false
	}
	if readable && c.flags.patience > 0 && c.view.Direction != string(rewind.Same) {
		if err := c.measure(ctx, from, until); err != nil {
			return err
		}
	}
	c.foretell()
	return nil
}

// measure reads the stretch for as long as it may.
func (c *change) measure(ctx context.Context, from, until position.Position) error {
	whole, err := canal.BinlogDistance(ctx, c.stream, from)
	if err != nil {
		return err
	}
	rest, err := canal.BinlogDistance(ctx, c.stream, until)
	if err != nil {
		return err
	}
	if whole.BytesBehind <= rest.BytesBehind { // nothing lies between: no event would come to end the reading
		c.view.Range = &rangeView{From: viewOf(from), Until: viewOf(until)}
		return nil
	}
	patience, stop := context.WithTimeout(ctx, c.flags.patience)
	defer stop()
	if err := c.reader.Stream(patience, from); err != nil {
		return err
	}
	count, err := rewind.Read(ctx, patience, c.reader, c.rows, until)
	if lost, ok := errors.AsType[*canal.PositionLost](err); ok {
		return cannotGoOn(lost.Reason, lost.Detail)
	}
	if err != nil {
		return err
	}
	r := &rangeView{From: viewOf(from), Until: viewOf(until), Bytes: whole.BytesBehind - min(whole.BytesBehind, rest.BytesBehind)}
	if !count.Complete {
		r.Estimate = true
		stopped := until
		stopped.File, stopped.Pos, stopped.GTID = count.Stopped.File, count.Stopped.Pos, ""
		behind := whole
		if stopped.File != "" {
			if behind, err = canal.BinlogDistance(ctx, c.stream, stopped); err != nil {
				return err
			}
		}
		r.BytesRead = whole.BytesBehind - min(whole.BytesBehind, behind.BytesBehind)
		count = count.Scale(r.BytesRead, r.Bytes)
	} else {
		r.BytesRead = r.Bytes
	}
	r.Rows, r.Settled, r.Open, r.Gone, r.Missed = count.Rows, count.Settled, count.Open, count.Gone, count.Missed
	c.view.Range = r
	return nil
}

// cannotGoOn refuses a position.
func cannotGoOn(reason, detail string) error {
	return fmt.Errorf("the server can't go on from there (%s): %s; look at SHOW BINARY LOGS, or use checkpoint reset --to table", reason, detail)
}

// lockWait is how long a command waits for a lock that nobody should hold.
const lockWait = 3 * time.Second

// deposeWait is how long a command waits for a relay to notice that it is fenced off: it saves every 10 s at the least.
const deposeWait = 20 * time.Second

// apply makes the change. The leader's lock is held meanwhile, so that no relay starts half-way.
func (c *change) apply(ctx context.Context, who checkpoint.Who) (err error) {
	take := c.lock
	if c.flags.force {
		take = c.depose
	}
	release, err := take(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, release()) }()
	if c.skips() {
		if c.view.Deferred, err = handOver(ctx, c.rows); err != nil {
			return fmt.Errorf("hand the pending rows to the sweeper: %w; nothing else was changed", err)
		}
	}
	if c.undone {
		err = c.checkpoints.Undo(ctx, c.source.Name, who)
	} else {
		ch := checkpoint.Change{Who: who, Event: c.event}
		if c.to != nil {
			ch.To = &checkpoint.Record{Position: *c.to}
		}
		err = c.checkpoints.Reset(ctx, c.source.Name, ch)
	}
	c.view.Applied = err == nil
	return err
}

// lock refuses when somebody leads the source, and takes the lock otherwise.
func (c *change) lock(ctx context.Context) (release func() error, err error) {
	const advice = "stop it first (SIGTERM), or use --force: it is then fenced off and begins again from the new position"
	switch v := c.view.Leader; {
	case !v.Known && v.Lock != "none":
		return nil, fmt.Errorf("whether a relay leads source %s can't be told: %s; repair that, or use --force", c.source.Name, v.Problem)
	case v.Led:
		return nil, fmt.Errorf("a relay leads source %s (%s); %s", c.source.Name, v.Holder, advice)
	}
	release, err = c.acquire(ctx, lockWait)
	if err != nil {
		return nil, fmt.Errorf("take the lock of source %s: %w; most likely a relay has just started: %s", c.source.Name, err, advice)
	}
	return release, nil
}

// depose fences the leader off first and waits until it has let go. A relay that goes on reading while its pending rows
// are handed to the sweeper would send newer rows of their keys before them. One that does not let go is not waited for
// longer: it can't save any more.
func (c *change) depose(ctx context.Context) (release func() error, err error) {
	if c.view.Leader.Led {
		if _, err := c.checkpoints.NextEpoch(ctx, c.source.Name); err != nil {
			return nil, fmt.Errorf("fence off the relay that leads source %s: %w", c.source.Name, err)
		}
	}
	release, err = c.acquire(ctx, deposeWait)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		c.log.Warn().Err(err).Msg("the relay that leads does not let go, going on without the lock")
		return func() error { return nil }, nil
	}
	return release, nil
}

func (c *change) acquire(ctx context.Context, patience time.Duration) (release func() error, err error) {
	waiting, giveUp := context.WithTimeout(ctx, patience)
	defer giveUp()
	held, err := wire.Lock(c.config, c.source.Name, c.rows, c.checkpoints).Acquire(waiting)
	if err != nil {
		return nil, err
	}
	return func() error {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lockWait) // released although the command is interrupted
		defer cancel()
		return held.Release(ctx)
	}, nil
}

// handOver makes every row that is pending now the sweeper's, as a relay does that starts without a position: the stream
// will not bring it, and what is newer in its topic must not pass it.
func handOver(ctx context.Context, rows *store.Store) (int64, error) {
	const batch = 1000
	last, err := rows.LastIDs(ctx)
	if err != nil {
		return 0, err
	}
	var total int64
	for {
		refs, err := rows.Unrecorded(ctx, last, batch)
		if err != nil || len(refs) == 0 {
			return total, err
		}
		if err := rows.Defer(ctx, refs); err != nil {
			return total, err
		}
		total += int64(len(refs))
	}
}
