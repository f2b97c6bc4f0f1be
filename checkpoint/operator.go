package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
)

// Who is the operator behind a change.
type Who struct{ User, Host, Reason string }

// name is how the operator stands in the record.
func (w Who) name() string { return w.User + "@" + w.Host }

func (w Who) validate() error {
	if w.User == "" || w.Host == "" {
		return errors.New("an operator's change needs user and host for the history")
	}
	return nil
}

// The events of the history.
const (
	EventLeader   = "leader"   // a new leader's first save
	EventRecovery = "recovery" // a save with a note
	EventSet      = "set"      // an operator's, to a position
	EventReset    = "reset"    // an operator's, to a place with a name
	EventUndo     = "undo"     // an operator's
)

// Change is what an operator does to a checkpoint.
type Change struct {
	Who

	// Event is EventSet or EventReset; the default is EventReset.
	Event string
	// To is the new record; its Position and Offsets are taken. Nil removes the checkpoint, so that the relay starts as
	// if there had never been one.
	To *Record
}

// Reset makes an operator's change. It takes a new epoch, so a relay that leads the source is fenced off at its next save,
// steps down and begins again from what was set. ErrNewer: a newer relay's record stays. A broken record is replaced.
func (s *Store) Reset(ctx context.Context, source string, change Change) error {
	if err := change.validate(); err != nil {
		return fmt.Errorf("reset checkpoint of %s: %w", source, err)
	}
	event := change.Event
	switch event {
	case "":
		event = EventReset
	case EventSet, EventReset:
	default:
		return fmt.Errorf("reset checkpoint of %s: event is %q: it must be set or reset", source, event)
	}
	now := time.Now()
	args := []any{Version, event, change.User, change.Host, change.Reason, now.UTC().Format(time.RFC3339Nano), change.name(), historyCap}
	if change.To != nil {
		fields, err := s.changed(*change.To, change.name(), now)
		if err != nil {
			return fmt.Errorf("reset checkpoint of %s: %w", source, err)
		}
		args = append(args, fields...)
	}
	reply, err := s.run(ctx, "reset checkpoint", source, s.scripts.change, args...)
	if err != nil {
		return err
	}
	if reply.verdict == verdictNewer {
		return newerError(reply.detail)
	}
	return nil
}

// changed returns the fields of an operator's record without the epoch, which the script takes.
func (s *Store) changed(rec Record, by string, now time.Time) ([]any, error) {
	if rec.Position.IsZero() {
		return nil, errors.New("the position is empty: give file and position or a GTID set")
	}
	rec.By, rec.SavedAt = by, now
	fields, err := rec.fields(s.seq.Add(1))
	if err != nil {
		return nil, err
	}
	kept := make([]any, 0, len(fields))
	for i := 0; i < len(fields); i += 2 {
		if fields[i] != fieldEpoch {
			kept = append(kept, fields[i], fields[i+1])
		}
	}
	return kept, nil
}

// Undo puts back what was there before the operator's last change, under a new epoch as Reset does. An undo is a change as
// well: to undo twice is to do again. ErrNothingToUndo: the history holds no change.
func (s *Store) Undo(ctx context.Context, source string, who Who) error {
	if err := who.validate(); err != nil {
		return fmt.Errorf("undo change of checkpoint of %s: %w", source, err)
	}
	reply, err := s.run(ctx, "undo change of checkpoint", source, s.scripts.undo,
		Version, who.User, who.Host, who.Reason, time.Now().UTC().Format(time.RFC3339Nano), who.name(), historyCap)
	switch {
	case err != nil:
		return err
	case reply.verdict == verdictNewer:
		return newerError(reply.detail)
	case reply.verdict == verdictNothing:
		return fmt.Errorf("source %s: %w", source, ErrNothingToUndo)
	}
	return nil
}

// Entry is a line of the history.
type Entry struct {
	ID    string
	At    time.Time
	Event string
	// By is the relay or the operator; User, Host and Reason are the operator's.
	By                 string
	Epoch              int64
	User, Host, Reason string
	// Old and New are the record before and after. Offsets are kept with operators' changes only.
	Old, New Snapshot
}

// Snapshot is a record in the history.
type Snapshot struct {
	Record
	// Present tells that there was a record at all.
	Present bool
	// Problem is what was wrong with it, "" when nothing was.
	Problem string
}

// History returns the source's last n lines, newest first.
func (s *Store) History(ctx context.Context, source string, n int) ([]Entry, error) {
	k, err := s.keys(source)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	messages, err := s.client.XRevRangeN(ctx, k.history, "+", "-", int64(max(n, 1))).Result()
	if err != nil {
		return nil, s.wrap("read history of "+source, err)
	}
	entries := make([]Entry, len(messages))
	for i, message := range messages {
		entries[i] = parseEntry(message)
	}
	return entries, nil
}

// parseEntry is lenient: a line that an operator's tool can't read in full is still a line.
func parseEntry(message redis.XMessage) Entry {
	plain := make(map[string]string)
	before, after := make(map[string]string), make(map[string]string)
	for name, value := range message.Values {
		text, _ := value.(string)
		if field, ok := strings.CutPrefix(name, "old."); ok {
			before[field] = text
		} else if field, ok := strings.CutPrefix(name, "new."); ok {
			after[field] = text
		} else {
			plain[name] = text
		}
	}
	at, err := time.Parse(time.RFC3339Nano, plain["at"])
	if err != nil {
		at = time.Time{}
	}
	epoch, err := strconv.ParseInt(plain["epoch"], 10, 64)
	if err != nil {
		epoch = 0
	}
	return Entry{
		ID: message.ID, At: at, Event: plain["event"], By: plain["by"], Epoch: epoch,
		User: plain["user"], Host: plain["host"], Reason: plain["reason"],
		Old: parseSnapshot(before), New: parseSnapshot(after),
	}
}

func parseSnapshot(fields map[string]string) Snapshot {
	if len(fields) == 0 {
		return Snapshot{}
	}
	if _, ok := fields[fieldOffsets]; !ok {
		fields[fieldOffsets] = "{}"
	}
	rec, err := parseRecord(fields)
	snapshot := Snapshot{Record: rec, Present: true}
	if err != nil {
		snapshot.Problem = err.Error()
	}
	return snapshot
}
