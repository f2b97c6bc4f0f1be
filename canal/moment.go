package canal

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal/position"
)

// Covers reports whether a set of GTIDs holds all of another.
func Covers(flavor, set, other string) (bool, error) {
	whole, err := parseGTIDs(flavor, set)
	if err != nil {
		return false, err
	}
	part, err := parseGTIDs(flavor, other)
	if err != nil {
		return false, err
	}
	return whole.Contains(part), nil
}

// NextEvent asks when the first event behind a position was written: what a stream that starts there would read first. ok
// is false when nothing stands behind it, or when that can't be told. It needs no Reader.
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
	ses, err := startSession(bounded, cfg, settings, f.server, start.Position, f.placed(start.Position), zerolog.Nop())
	if err != nil {
		return time.Time{}, false, fmt.Errorf("read the event at %s: %w", from, strip(err))
	}
	defer ses.close()
	for {
		event, err := ses.streamer.GetEvent(bounded)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			return time.Time{}, false, nil
		}
		if err != nil {
			return time.Time{}, false, fmt.Errorf("read the event at %s: %w", from, strip(err))
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
