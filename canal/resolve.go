package canal

import (
	"context"
	"fmt"
	"math"
	"strings"
	"time"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/retry"
)

// Start says where to stream from.
type Start struct {
	// Position is where to stream from, on the server as it is now.
	Position position.Position
	// Recovery is one of words.Recovery*: what became of the saved position.
	Recovery string
	// Detail says what was found, for an operator.
	Detail string
	// Usable tells whether the saved position is honoured. When not, Position is the server's present end, and everything
	// pending is the sweeper's.
	Usable bool

	// lagging: the verdict may be another one in a moment, see decided.
	lagging bool
}

// Where to start when no position was saved.
const (
	StartNow      = "now"
	StartEarliest = "earliest"
)

// facts are what the server says about its binlog.
type facts struct {
	server *server
	end    position.Position
	logs   []logFile
	// purged is the set of transactions that are in no file any more; "" where the server can't be streamed by GTID.
	purged string
}

// readFacts asks the server.
func readFacts(ctx context.Context, q querier) (*facts, error) {
	s, err := readServer(ctx, q)
	if err != nil {
		return nil, err
	}
	f := &facts{server: s}
	if f.logs, err = s.logs(ctx, q); err != nil {
		return nil, err
	}
	if f.end, err = s.end(ctx, q); err != nil {
		return nil, err
	}
	if s.gtid() {
		f.purged, err = s.purged(ctx, q, f.logs[0].name)
	}
	return f, err
}

// fresh says where to start when no position was saved.
func (f *facts) fresh(start string) (Start, error) {
	switch start {
	case StartNow, "":
		return f.present(words.RecoveryNone, "no position was saved: starting at the present end"), nil
	case StartEarliest:
		first := position.Position{
			Server: f.server.id, Flavor: f.server.flavor(), GTID: f.purged, File: f.logs[0].name, Pos: 4,
		}
		return Start{
			Position: first, Recovery: words.RecoveryNone, Usable: true,
			Detail: "no position was saved: starting at the oldest binlog file, " + first.File,
		}, nil
	}
	return Start{}, fmt.Errorf("start %q: use %s or %s", start, StartNow, StartEarliest)
}

// present gives up the saved position.
func (f *facts) present(recovery, detail string) Start {
	return Start{Position: f.end, Recovery: recovery, Detail: detail}
}

// A MySQL sends a transaction before it counts it as executed; with semi-synchronous replication seconds may pass
// between. A position that the binlog has reached is therefore given that time to be confirmed.
const (
	lagPause = 100 * time.Millisecond
	lagTries = 100
)

// decided asks the server whether it can go on from a saved position, more than once if need be.
func decided(ctx context.Context, q querier, saved position.Position) (*facts, Start, error) {
	for try := 1; ; try++ {
		f, err := readFacts(ctx, q)
		if err != nil {
			return nil, Start{}, err
		}
		s := f.decide(saved)
		if !s.lagging || try >= lagTries {
			return f, s, nil
		}
		if err := retry.Wait(ctx, lagPause); err != nil {
			return nil, Start{}, err
		}
	}
}

// decide says whether the server can go on from a saved position.
func (f *facts) decide(saved position.Position) Start {
	if saved.Flavor != f.server.flavor() {
		return f.present(words.RecoveryOtherServer,
			fmt.Sprintf("the position is of a %s server, this one is %s", saved.Flavor, f.server.flavor()))
	}
	if f.server.gtid() && saved.GTID != "" {
		return f.decideByGTID(saved)
	}
	if saved.Server != f.server.id {
		return f.present(words.RecoveryOtherServer, fmt.Sprintf(
			"the position is of server %s, this one is %s, and without GTIDs the place can't be found on it",
			saved.Server, f.server.id))
	}
	return f.decideByFile(saved)
}

func (f *facts) decideByGTID(saved position.Position) Start {
	same := saved.Server == f.server.id
	sets := make([]gtid.Set, 3)
	for i, text := range []string{saved.GTID, f.end.GTID, f.purged} {
		set, err := gtid.Parse(f.server.flavor(), text)
		if err != nil {
			return f.present(words.RecoveryInvalid, err.Error())
		}
		sets[i] = set
	}
	set, executed, purged := sets[0], sets[1], sets[2]
	beyond, err := position.Compare(saved.File, saved.Pos, f.end.File, f.end.Pos)
	switch {
	case !executed.Contains(set) && same:
		s := f.present(words.RecoveryInvalid, fmt.Sprintf(
			"the server has executed only %q, less than the saved %q: its binlog was reset", f.end.GTID, saved.GTID))
		s.lagging = err == nil && beyond <= 0
		return s
	case !executed.Contains(set):
		return f.present(words.RecoveryOtherServer, fmt.Sprintf(
			"server %s has not executed all of the saved %q: it lags behind, or is of another history", f.server.id, saved.GTID))
	case !set.Contains(purged):
		return f.present(words.RecoveryPurged, fmt.Sprintf(
			"the server has purged %q, which the saved %q lacks: keep binlogs for longer", f.purged, saved.GTID))
	case !same:
		return f.elsewhere(saved, "resumed by GTID on server "+f.server.id+" instead of "+saved.Server)
	}
	// The set fits by its numbers. If the place is beyond the end, the numbers are of a new history.
	switch {
	case err != nil:
		return f.elsewhere(saved, "resumed by GTID, the binlog files are called otherwise than "+saved.File)
	case beyond > 0:
		return f.present(words.RecoveryInvalid, fmt.Sprintf(
			"the saved place %s is beyond the binlog's end %s: the binlog was reset", saved, f.end))
	}
	return f.resumed(saved)
}

// elsewhere resumes by GTID where the saved file and offset say nothing. Nothing before the oldest file has to be
// read; where the set ends in this server's files shows when the first transaction comes.
func (f *facts) elsewhere(saved position.Position, detail string) Start {
	saved.Server, saved.File, saved.Pos = f.server.id, f.logs[0].name, 4
	return Start{Position: saved, Recovery: words.RecoveryMoved, Usable: true, Detail: detail}
}

func (f *facts) decideByFile(saved position.Position) Start {
	i := f.file(saved.File)
	if i < 0 {
		before, err := position.Compare(saved.File, 0, f.logs[0].name, 0)
		if err == nil && before < 0 {
			return f.present(words.RecoveryPurged, fmt.Sprintf(
				"binlog file %s is purged, the oldest is %s: keep binlogs for longer", saved.File, f.logs[0].name))
		}
		return f.present(words.RecoveryInvalid, fmt.Sprintf(
			"binlog file %s does not exist: the binlog was reset or renamed", saved.File))
	}
	size := f.logs[i].size
	if saved.File == f.end.File {
		size = max(size, f.end.Pos)
	}
	switch {
	case saved.Pos > size:
		return f.present(words.RecoveryInvalid, fmt.Sprintf(
			"the saved place %s is beyond the file's size of %d: the binlog was reset", saved, size))
	case saved.Pos > math.MaxUint32:
		return f.present(words.RecoveryInvalid, fmt.Sprintf(
			"the saved place %s is beyond 4 GiB, where only GTIDs can resume: switch GTIDs on", saved))
	}
	return f.resumed(saved)
}

func (f *facts) resumed(saved position.Position) Start {
	return Start{
		Position: saved, Recovery: words.RecoveryResumed, Usable: true,
		Detail: "resumed at " + saved.String(),
	}
}

// firstEvent is where a file's first event is.
const firstEvent = 4

// placed reports whether a usable position can be resumed by its file and offset, also where the server has GTIDs: by
// those it reads the whole file up to the place before it sends anything, which takes more than a second for a file
// of a gigabyte. A position that was moved here from another server begins a file, and so do those that only their
// GTIDs tell.
func (f *facts) placed(p position.Position) bool {
	return p.Pos > firstEvent && p.Pos <= math.MaxUint32 && f.file(p.File) >= 0
}

// file returns the index of a binlog file, -1 when it does not exist.
func (f *facts) file(name string) int {
	for i := range f.logs {
		if f.logs[i].name == name {
			return i
		}
	}
	return -1
}

// checkHistory looks at the place itself: a binlog that was reset and has grown past the saved place again has other
// transactions there. It returns what is wrong, "" when nothing is. The server reads the file up to the place for it,
// so this is done when a position comes from outside, not at each reconnect.
func (f *facts) checkHistory(ctx context.Context, q querier, saved position.Position) (string, error) {
	if saved.Server != f.server.id || f.file(saved.File) < 0 || saved.Pos <= 4 {
		return "", nil
	}
	if f.server.MariaDB {
		return f.checkMariaDB(ctx, q, saved)
	}
	result, err := q.Query(ctx, fmt.Sprintf("SHOW BINLOG EVENTS IN %s FROM %d LIMIT 1", mysql.Literal(saved.File), saved.Pos))
	switch {
	case serverCode(err) == mysql.CodeWrongOffset:
		return fmt.Sprintf("no event starts at %s: the binlog was reset, or the position is wrong", saved), nil
	case err != nil && serverCode(err) != 0:
		return "", nil // the check is an extra: without the right to make it the stream itself decides
	case err != nil:
		return "", fmt.Errorf("look at the event at %s: %w", saved, err)
	case result.Len() == 0:
		return "", nil
	}
	kind, info := result.Text(0, 2), result.Text(0, 5)
	if !boundaryEvent(kind) {
		return fmt.Sprintf("the event at %s is a %s, in the middle of a transaction", saved, kind), nil
	}
	return f.checkNext(saved, info)
}

// checkNext compares the transaction that follows the place with those that are dealt with.
func (f *facts) checkNext(saved position.Position, info string) (string, error) {
	_, next, found := strings.Cut(info, "GTID_NEXT= '")
	next, _, _ = strings.Cut(next, "'")
	if !found || saved.GTID == "" {
		return "", nil
	}
	set, err := gtid.Parse(position.MySQL, saved.GTID)
	if err != nil {
		return err.Error(), nil //nolint:nilerr // a set that can't be read is what is wrong
	}
	one, err := gtid.Parse(position.MySQL, next)
	if err != nil || one.Empty() {
		return "", nil //nolint:nilerr // ANONYMOUS is not a set
	}
	if set.Contains(one) {
		return fmt.Sprintf("transaction %s follows the saved place %s but counts as dealt with: the binlog was reset", next, saved), nil
	}
	return "", nil
}

func (f *facts) checkMariaDB(ctx context.Context, q querier, saved position.Position) (string, error) {
	if set, err := gtid.Parse(position.MariaDB, saved.GTID); err == nil && f.follows(ctx, q, saved, set) {
		return "", nil
	}
	found, ok, err := f.server.gtidAt(ctx, q, saved.File, saved.Pos)
	if err != nil {
		if serverCode(err) != 0 {
			return "", nil
		}
		return "", err
	}
	if !ok {
		return fmt.Sprintf("no event starts at %s: the binlog was reset, or the position is wrong", saved), nil
	}
	there, err := gtid.Parse(position.MariaDB, found)
	if err != nil || saved.GTID == "" {
		return "", nil //nolint:nilerr // the check is an extra
	}
	set, err := gtid.Parse(position.MariaDB, saved.GTID)
	if err != nil {
		return err.Error(), nil //nolint:nilerr // a set that can't be read is what is wrong
	}
	if !set.Contains(there) {
		return fmt.Sprintf("the binlog is at %s at the saved place %s, not at the saved %s: the binlog was reset", found, saved, saved.GTID), nil
	}
	return "", nil
}

// follows reports whether what a MariaDB has at the place is just what follows the saved set: the end of the binlog,
// or the next transaction of a domain. That is seen at once, and is so at nearly every start; otherwise the file has
// to be read.
func (f *facts) follows(ctx context.Context, q querier, saved position.Position, set gtid.Set) bool {
	if saved.File == f.end.File && saved.Pos == f.end.Pos {
		end, err := gtid.Parse(position.MariaDB, f.end.GTID)
		return err == nil && end.Contains(set) && set.Contains(end)
	}
	result, err := q.Query(ctx, fmt.Sprintf("SHOW BINLOG EVENTS IN %s FROM %d LIMIT 1", mysql.Literal(saved.File), saved.Pos))
	if err != nil || result.Len() == 0 || result.Text(0, 2) != "Gtid" {
		return false
	}
	// BEGIN GTID 0-1-42, or GTID 0-1-42 of a statement that is no transaction.
	_, next, _ := strings.Cut(result.Text(0, 5), "GTID ")
	next, _, _ = strings.Cut(next, " ")
	return gtid.Precedes(set, next)
}

// boundaryEvent reports whether an event, by its name in SHOW BINLOG EVENTS, may follow the end of a transaction.
func boundaryEvent(kind string) bool {
	switch kind {
	case "Gtid", "Anonymous_Gtid", "Gtid_tagged_log", "Gtid_tagged_log_event", "Rotate", "Stop", "Previous_gtids", "Format_desc":
		return true
	}
	return strings.Contains(strings.ToLower(kind), "gtid")
}
