package checkpoint

import (
	"context"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
)

// historyCap bounds the history of a source. Undo needs the last operator's change to be among these.
const historyCap = 256

// Store reads and writes the checkpoints of all sources of a relay. It is safe for concurrent use.
type Store struct {
	client  redis.UniversalClient
	cfg     Config
	target  target
	scripts scripts
	log     zerolog.Logger
	// seq numbers the saves, growing through the life of the process and, starting at the clock, beyond it.
	seq atomic.Int64
}

// Open checks the configuration and returns a store. It doesn't connect: Redis may be away.
func Open(cfg Config, log zerolog.Logger) (*Store, error) {
	cfg = cfg.withDefaults()
	target, err := cfg.target()
	if err != nil {
		return nil, err
	}
	s := &Store{
		client:  target.client(cfg),
		cfg:     cfg,
		target:  target,
		scripts: newScripts(),
		log:     log.With().Str("component", "checkpoint").Logger(),
	}
	s.seq.Store(time.Now().UnixNano())
	return s, nil
}

// Owner returns the name under which this store saves and leads.
func (s *Store) Owner() string { return s.cfg.Owner }

// NextEpoch hands out the epoch under which a new leader of the source saves: one more than any before it. Call it once
// after having become leader and before Load, so that the leader before can't save any more once the record was read.
func (s *Store) NextEpoch(ctx context.Context, source string) (int64, error) {
	reply, err := s.run(ctx, "take next epoch", source, s.scripts.epoch, strconv.Itoa(Version))
	if err != nil {
		return 0, err
	}
	if reply.verdict == verdictNewer {
		return 0, newerError(reply.detail)
	}
	epoch, err := strconv.ParseInt(reply.detail, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("take next epoch of %s: unexpected answer %q", source, reply.detail)
	}
	return epoch, nil
}

// Load returns the source's checkpoint. ErrNone: Redis surely has none (ErrLost, a kind of it: there was one).
// ErrNewer: a newer relay wrote it; don't go on. ErrBroken: there is one, but it is nonsense. Anything else: it could not be
// read, try again and never go on as if there were none.
func (s *Store) Load(ctx context.Context, source string) (Record, error) {
	k, err := s.keys(source)
	if err != nil {
		return Record{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, s.cfg.Timeout)
	defer cancel()
	fields, err := s.client.HGetAll(ctx, k.checkpoint).Result()
	switch {
	case CodeOf(err) == CodeWrongType:
		return Record{}, fmt.Errorf("checkpoint of %s: %w: key %s is no hash", source, ErrBroken, k.checkpoint)
	case err != nil:
		return Record{}, s.wrap("read checkpoint of "+source, err)
	case len(fields) == 0:
		return Record{}, s.none(ctx, source, k)
	}
	rec, err := parseRecord(fields)
	if err != nil {
		return rec, fmt.Errorf("checkpoint of %s: %w", source, err)
	}
	return rec, nil
}

// none tells apart a source that never had a checkpoint from one whose checkpoint went away other than by an operator.
func (s *Store) none(ctx context.Context, source string, k keys) error {
	last, err := s.client.XRevRangeN(ctx, k.history, "+", "-", 1).Result()
	if err != nil && CodeOf(err) != CodeWrongType {
		return s.wrap("read checkpoint of "+source, err)
	}
	if len(last) == 0 {
		return fmt.Errorf("source %s: %w", source, ErrNone)
	}
	if entry := parseEntry(last[0]); !entry.New.Present {
		return fmt.Errorf("source %s: %w: removed by %s", source, ErrNone, entry.By)
	}
	return fmt.Errorf("source %s: %w", source, ErrLost)
}

// Save writes the checkpoint. ErrFenced: a newer epoch has been handed out or saved, so this relay leads no longer and must
// stop. ErrNewer: a newer relay's record is there and stays. Any other error: it is unknown whether it was saved; save again
// later, with the position of then.
func (s *Store) Save(ctx context.Context, source string, rec Record) error {
	if rec.Position.IsZero() || rec.Epoch < 1 {
		return fmt.Errorf("save checkpoint of %s: position %q or epoch %d is empty", source, rec.Position, rec.Epoch)
	}
	if rec.By == "" {
		rec.By = s.cfg.Owner
	}
	if rec.SavedAt.IsZero() {
		rec.SavedAt = time.Now()
	}
	seq := s.seq.Add(1)
	fields, err := rec.fields(seq)
	if err != nil {
		return fmt.Errorf("save checkpoint of %s: %w", source, err)
	}
	args := append([]any{
		Version, rec.Epoch, seq, rec.By, rec.Note, rec.SavedAt.UTC().Format(time.RFC3339Nano), historyCap,
	}, fields...)
	reply, err := s.run(ctx, "save checkpoint", source, s.scripts.save, args...)
	if err != nil {
		return err
	}
	switch reply.verdict {
	case verdictNewer:
		return newerError(reply.detail)
	case verdictFenced:
		return fmt.Errorf("save checkpoint of %s: %w: our epoch is %d, the present one %s", source, ErrFenced, rec.Epoch, reply.detail)
	default:
		// ok; or late: a later save of ours is there already, which is as good.
		return nil
	}
}

// Close releases the connections.
func (s *Store) Close() error {
	if err := s.client.Close(); err != nil {
		return fmt.Errorf("close redis client: %w", err)
	}
	return nil
}
