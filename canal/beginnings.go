package canal

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal/position"
)

// beginnings remembers when the files of a server's binlog were begun, which never changes: SQL does not say it, and
// asking takes a connection that streams the file for a moment. It may be used by any goroutine.
type beginnings struct {
	mu     sync.Mutex
	server string
	// files has each file of the last list, and newest is its last; the time is zero while it is not known.
	files  map[string]time.Time
	newest string
	listed time.Time
}

// listedLately is how old a list may be for what is not in it to count as begun since.
const listedLately = time.Minute

// note takes a list of the files, made at now. A file that the list before did not have was begun after that one was
// made.
func (b *beginnings) note(server string, logs []logFile, now time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, since := b.files, time.Time{}
	if now.Sub(b.listed) < listedLately {
		since = b.listed
	}
	// The newest file is never purged. Where it has gone, the binlog was reset, and names come again.
	if server != b.server || !slices.ContainsFunc(logs, func(file logFile) bool { return file.name == b.newest }) {
		before, since = nil, time.Time{}
	}
	b.server, b.listed, b.files = server, now, make(map[string]time.Time, len(logs))
	for _, file := range logs {
		b.newest = file.name
		at, known := before[file.name]
		if !known {
			at = since
		}
		b.files[file.name] = at
	}
}

// of returns when a file was begun, if that is known.
func (b *beginnings) of(server, file string) (time.Time, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	at := b.files[file]
	return at, server == b.server && !at.IsZero()
}

// learn remembers what was asked for.
func (b *beginnings) learn(server, file string, at time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if _, listed := b.files[file]; listed && server == b.server {
		b.files[file] = at
	}
}

// fileBegun returns when a file of the binlog was begun, and asks for it where it is not known yet.
func (a *Asker) fileBegun(ctx context.Context, f *facts, file string) (time.Time, bool) {
	if at, ok := a.began.of(f.server.id, file); ok {
		return at, true
	}
	at, ok := a.readBegun(ctx, f, file)
	if ok {
		a.began.learn(f.server.id, file, at)
	}
	return at, ok
}

// readBegun reads the head of a binlog file, whose event carries the time.
func (a *Asker) readBegun(ctx context.Context, f *facts, file string) (time.Time, bool) {
	cfg := a.cfg
	ctx, cancel := context.WithTimeout(ctx, cfg.ReadTimeout)
	defer cancel()
	id, err := chooseServerID(ctx, a, f.server, cfg)
	if err != nil {
		return time.Time{}, false
	}
	cfg.ServerID = id
	settings, err := a.streamTLS(ctx)
	if err != nil {
		return time.Time{}, false
	}
	from := position.Position{Flavor: f.server.flavor(), File: file, Pos: firstEvent}
	conn, err := dialStream(ctx, cfg, settings, f.server, from, f.placed(from), zerolog.Nop())
	if err != nil {
		return time.Time{}, false
	}
	defer conn.close()
	for range 4 {
		ev, err := conn.streamer.GetEvent(ctx)
		if err != nil {
			return time.Time{}, false
		}
		if ev.Header.Timestamp != 0 {
			return time.Unix(int64(ev.Header.Timestamp), 0), true
		}
	}
	return time.Time{}, false
}
