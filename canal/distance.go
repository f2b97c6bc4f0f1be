package canal

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal/plain"
	"example.com/outbox-relay/canal/position"
)

// Distance is how far a position is behind the end of the binlog, and how long it will be readable.
type Distance struct {
	// Usable tells whether the server can go on from the position; Recovery and Detail say why not.
	Usable   bool
	Recovery string
	Detail   string
	// FileExists tells whether the position's own binlog file is still there.
	FileExists bool
	// BytesBehind is what would have to be read, as far as the files tell.
	BytesBehind uint64
	// FilesBehind is how many files begin behind the position.
	FilesBehind int
	// Retention is how long the server keeps binlog files, 0 when it keeps them for ever or can't be asked.
	Retention time.Duration
	// PurgedIn estimates when the position's file will be purged: a file goes when its last event is older than
	// Retention. KnownPurge is false when that can't be told.
	PurgedIn   time.Duration
	KnownPurge bool
	End        position.Position
}

// BinlogDistance asks the server how far a position is behind. It needs no Reader.
func BinlogDistance(ctx context.Context, cfg Config, from position.Position) (_ Distance, err error) {
	a, err := NewAsker(cfg)
	if err != nil {
		return Distance{}, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	return a.Distance(ctx, from)
}

// Distance asks the server how far a position is behind.
func (a *Asker) Distance(ctx context.Context, from position.Position) (Distance, error) {
	f, err := readFacts(ctx, a)
	if err != nil {
		return Distance{}, fmt.Errorf("measure the distance from %s: %w", from, err)
	}
	a.began.note(f.server.id, f.logs, time.Now())
	start := f.decide(from)
	d := Distance{
		Usable: start.Usable, Recovery: start.Recovery, Detail: start.Detail,
		FileExists: f.file(from.File) >= 0, End: f.end, Retention: f.server.retention(),
	}
	d.BytesBehind, d.FilesBehind = f.behind(start)
	if !d.FileExists || d.Retention == 0 {
		return d, nil
	}
	next := f.file(from.File) + 1
	if next == len(f.logs) {
		// The file that is being written can't be purged: its time has not begun.
		d.PurgedIn, d.KnownPurge = d.Retention, true
		return d, nil
	}
	// When the file was closed is when the next one was begun.
	begun, ok := a.fileBegun(ctx, f, f.logs[next].name)
	if ok {
		d.PurgedIn, d.KnownPurge = max(0, time.Until(begun.Add(d.Retention))), true
	}
	return d, nil
}

// behind sums up what the server would have to send.
func (f *facts) behind(start Start) (bytes uint64, files int) {
	from := f.file(start.Position.File)
	if !start.Usable || from < 0 {
		return 0, 0
	}
	for i := from; i < len(f.logs); i++ {
		size := f.logs[i].size
		if f.logs[i].name == f.end.File {
			size = max(size, f.end.Pos)
		}
		if i == from {
			size -= min(size, start.Position.Pos)
		} else {
			files++
		}
		bytes += size
	}
	return bytes, files
}

// retention is how long the server keeps binlog files, 0 for ever.
func (s *server) retention() time.Duration {
	if seconds, err := strconv.ParseInt(s.variables["binlog_expire_logs_seconds"], 10, 64); err == nil && seconds > 0 {
		return time.Duration(seconds) * time.Second
	}
	if days, err := strconv.ParseFloat(s.variables["expire_logs_days"], 64); err == nil && days > 0 {
		return time.Duration(days * 24 * float64(time.Hour))
	}
	return 0
}

// NextEvent asks when the first event behind a position was written: what a stream that starts there would read
// first. ok is false when nothing stands behind it, or when that can't be told. It needs no Reader.
func NextEvent(ctx context.Context, cfg Config, from position.Position) (at time.Time, ok bool, err error) {
	cfg = cfg.withDefaults()
	bounded, cancel := context.WithTimeout(ctx, cfg.ReadTimeout)
	defer cancel()
	a, err := NewAsker(cfg)
	if err != nil {
		return time.Time{}, false, err
	}
	defer func() { err = errors.Join(err, a.Close()) }()
	f, err := readFacts(bounded, a)
	if err != nil {
		return time.Time{}, false, fmt.Errorf("read the event at %s: %w", from, err)
	}
	start := f.decide(from)
	if !start.Usable || start.Position.File == f.end.File && start.Position.Pos >= f.end.Pos {
		return time.Time{}, false, nil
	}
	if cfg.ServerID, err = chooseServerID(bounded, a, f.server, cfg); err != nil {
		return time.Time{}, false, err
	}
	settings, err := a.streamTLS(bounded)
	if err != nil {
		return time.Time{}, false, err
	}
	conn, err := dialStream(bounded, cfg, settings, f.server, start.Position, f.placed(start.Position), zerolog.Nop())
	if err != nil {
		return time.Time{}, false, fmt.Errorf("read the event at %s: %w", from, plain.Error(err))
	}
	defer conn.close()
	for {
		event, err := conn.streamer.GetEvent(bounded)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return time.Time{}, false, nil
		}
		if err != nil {
			return time.Time{}, false, fmt.Errorf("read the event at %s: %w", from, plain.Error(err))
		}
		if !made(event) {
			return time.Unix(int64(event.Header.Timestamp), 0), true, nil
		}
	}
}

// made reports whether the server made an event up for the reader, or wrote it as the head of a file: its time says
// nothing about what stands behind the position.
func made(event *replication.BinlogEvent) bool {
	switch event.Header.EventType {
	case replication.FORMAT_DESCRIPTION_EVENT, replication.ROTATE_EVENT, replication.PREVIOUS_GTIDS_EVENT,
		replication.MARIADB_GTID_LIST_EVENT, replication.MARIADB_BINLOG_CHECKPOINT_EVENT, replication.HEARTBEAT_EVENT,
		replication.HEARTBEAT_LOG_EVENT_V2, replication.STOP_EVENT:
		return true
	default:
		return event.Header.Timestamp == 0
	}
}
