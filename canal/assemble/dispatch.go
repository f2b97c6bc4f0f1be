package assemble

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/google/uuid"
	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Config says which tables' rows a Dispatcher brings, and within which bounds.
type Config struct {
	// Flavor is the server's, one of position.MySQL and position.MariaDB.
	Flavor string
	// Tables are the local message tables.
	Tables   mysql.Patterns
	Columns  outbox.Columns
	Statuses outbox.Statuses
	// BufferBytes bounds the memory that one transaction's rows take. What is above goes to a file in SpillDir ("": the
	// system's temporary folder), which has no name and is gone when the transaction is closed.
	BufferBytes int
	SpillDir    string
	// Closing, when it is closed, ends what waits.
	Closing <-chan struct{}
	// Waiting is called from Handle with what is waited for until the server answers, and with "" when that is over.
	Waiting func(what string)
}

// Server answers questions about the tables. The questions of one Dispatcher come one after the other.
type Server interface {
	// Query runs one statement and returns its whole answer.
	Query(ctx context.Context, statement string) (*mysql.Answer, error)
	// Columns reads the columns of a table in their order, none where the user sees no such table.
	Columns(ctx context.Context, t outbox.Table) ([]mysql.Column, error)
}

// Dispatcher gives each event of the binlog its meaning. It is used by one goroutine.
type Dispatcher struct {
	asm    *assembler
	dec    *decoder
	parser *parser
	log    zerolog.Logger
	// caughtUp: the server said that it has nothing more.
	caughtUp bool
	// fresh: nothing has come since the start.
	fresh bool
	// unknown are the event types already complained about.
	unknown map[replication.EventType]bool
}

// New makes a Dispatcher. StartAt comes before its first event.
func New(cfg Config, server Server, log zerolog.Logger) *Dispatcher {
	parser := newParser(cfg.Flavor)
	return &Dispatcher{
		parser: parser, log: log,
		asm: &assembler{flavor: cfg.Flavor, limit: cfg.BufferBytes, dir: cfg.SpillDir, log: log},
		dec: newDecoder(cfg, parser, server, log), unknown: make(map[replication.EventType]bool),
	}
}

// Handle handles one event, undecoded as the server sent it. It returns a transaction when the event ends one with
// something in it for us; the caller closes it. It waits for the server when a table's columns have to be read. After an
// error the stream has to start again: with ErrMalformed for an event that can't be read, ErrNoTransaction for a start
// that was no boundary, or an error of ctx.
func (d *Dispatcher) Handle(ctx context.Context, ev *replication.BinlogEvent) (*Transaction, error) {
	t, err := d.handle(ctx, ev)
	return d.waited(t), err
}

// Progress returns an empty transaction when a boundary has moved beyond what was handed out, nil when it has not.
func (d *Dispatcher) Progress() *Transaction { return d.waited(d.asm.progress()) }

// HasProgress reports whether Progress may return something.
func (d *Dispatcher) HasProgress() bool { return d.asm.untold() }

// CaughtUp reports whether the server said with the last event that it has nothing more to send.
func (d *Dispatcher) CaughtUp() bool { return d.caughtUp }

// Read returns up to where the binlog was read, and whether a transaction is open there.
func (d *Dispatcher) Read() (file string, pos uint64, open bool) {
	return d.asm.file, d.asm.pos, d.asm.txn != nil
}

// Discard drops the open transaction, if there is one, and frees what it holds.
func (d *Dispatcher) Discard() { d.asm.discard() }

// waited notes on a transaction how long the server was waited for since the one before.
func (d *Dispatcher) waited(t *Transaction) *Transaction {
	if t != nil {
		t.Waited, d.dec.waited = d.dec.waited, 0
	}
	return t
}

func (d *Dispatcher) handle(ctx context.Context, ev *replication.BinlogEvent) (*Transaction, error) {
	d.caughtUp = ev.Header.EventType == replication.HEARTBEAT_EVENT || ev.Header.EventType == replication.HEARTBEAT_LOG_EVENT_V2
	if rotate, ok := ev.Event.(*replication.RotateEvent); ok {
		d.rotate(rotate)
		return nil, nil
	}
	d.advance(ev.Header)
	return d.event(ctx, ev, false)
}

// advance moves the place behind the event. The event tells the lower 32 bits only.
func (d *Dispatcher) advance(h *replication.EventHeader) {
	if h.LogPos == 0 || h.Flags&replication.LOG_EVENT_ARTIFICIAL_F != 0 {
		return
	}
	a := d.asm
	pos := a.pos&^math.MaxUint32 | uint64(h.LogPos)
	if pos < a.pos && a.pos-pos > math.MaxUint32/2 {
		pos += 1 << 32
	}
	if pos > a.pos {
		a.pos = pos
	}
}

// rotate follows the binlog into the next file. The server also sends a made-up rotate event first of all.
func (d *Dispatcher) rotate(e *replication.RotateEvent) {
	a := d.asm
	file := string(e.NextLogName)
	if d.fresh {
		// Where the server begins to read: with GTIDs, before the place where we want to go on.
		d.fresh, a.file, a.pos = false, file, e.Position
		return
	}
	if file == a.file && e.Position <= a.pos {
		return
	}
	a.file, a.pos = file, e.Position
	if a.txn == nil {
		a.boundary()
	}
}

// event handles an event, inside a compressed transaction or not.
func (d *Dispatcher) event(ctx context.Context, ev *replication.BinlogEvent, inside bool) (*Transaction, error) {
	switch ev.Header.EventType {
	case replication.TABLE_MAP_EVENT:
		if d.asm.txn == nil {
			return nil, ErrNoTransaction
		}
		return nil, d.dec.tableMap(ev, inside)
	case replication.WRITE_ROWS_EVENTv0, replication.UPDATE_ROWS_EVENTv0, replication.DELETE_ROWS_EVENTv0,
		replication.WRITE_ROWS_EVENTv1, replication.UPDATE_ROWS_EVENTv1, replication.DELETE_ROWS_EVENTv1,
		replication.WRITE_ROWS_EVENTv2, replication.UPDATE_ROWS_EVENTv2, replication.DELETE_ROWS_EVENTv2,
		replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1, replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1,
		replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1, replication.PARTIAL_UPDATE_ROWS_EVENT:
		if d.asm.txn == nil {
			return nil, ErrNoTransaction
		}
		return nil, d.dec.rows(ctx, ev, inside, d.asm.txn)
	case replication.XID_EVENT:
		d.stamp(ev)
		return d.commit(ctx)
	case replication.GTID_EVENT, replication.ANONYMOUS_GTID_EVENT, replication.GTID_TAGGED_LOG_EVENT:
		return nil, d.mysqlGTID(ev, inside)
	case replication.MARIADB_GTID_EVENT:
		return nil, d.mariadbGTID(ev, inside)
	case replication.QUERY_EVENT, replication.MARIADB_QUERY_COMPRESSED_EVENT:
		return d.query(ctx, ev, inside)
	case replication.EXECUTE_LOAD_QUERY_EVENT:
		return nil, d.load(ev, inside)
	case replication.XA_PREPARE_LOG_EVENT:
		return d.xaPrepare(ev, inside), nil
	case replication.TRANSACTION_PAYLOAD_EVENT:
		return d.payload(ctx, ev)
	default:
		return d.aside(ev)
	}
}

// commit ends the open transaction.
func (d *Dispatcher) commit(ctx context.Context) (*Transaction, error) {
	if txn := d.asm.txn; txn != nil && len(txn.unproven) > 0 {
		if err := d.dec.prove(ctx, txn); err != nil {
			return nil, err
		}
	}
	return d.asm.commit(), nil
}

// aside handles the events that are no part of a transaction, or say nothing to us.
func (d *Dispatcher) aside(ev *replication.BinlogEvent) (*Transaction, error) {
	switch ev.Header.EventType {
	case replication.FORMAT_DESCRIPTION_EVENT:
		return nil, d.format(ev)
	case replication.PREVIOUS_GTIDS_EVENT, replication.MARIADB_GTID_LIST_EVENT:
		return nil, d.listed(ev)
	case replication.HEARTBEAT_EVENT, replication.HEARTBEAT_LOG_EVENT_V2, replication.STOP_EVENT:
		if d.asm.txn == nil {
			d.asm.boundary()
		}
		return nil, nil
	case replication.INCIDENT_EVENT:
		d.log.Error().Str("position", fmt.Sprintf("%s:%d", d.asm.file, d.asm.pos)).
			Msg("the server notes that events are missing from its binlog: the sweeper looks for their rows")
		return d.incident(), nil
	case replication.ROWS_QUERY_EVENT, replication.INTVAR_EVENT, replication.RAND_EVENT, replication.USER_VAR_EVENT,
		replication.BEGIN_LOAD_QUERY_EVENT, replication.APPEND_BLOCK_EVENT, replication.DELETE_FILE_EVENT,
		replication.IGNORABLE_EVENT, replication.TRANSACTION_CONTEXT_EVENT, replication.VIEW_CHANGE_EVENT,
		replication.MARIADB_ANNOTATE_ROWS_EVENT, replication.MARIADB_BINLOG_CHECKPOINT_EVENT,
		replication.MARIADB_START_ENCRYPTION_EVENT:
		return nil, nil
	default:
		if !d.unknown[ev.Header.EventType] && ev.Header.Flags&replication.LOG_EVENT_IGNORABLE_F == 0 {
			d.unknown[ev.Header.EventType] = true
			d.log.Warn().Uint8("event_type", byte(ev.Header.EventType)).Msg("unknown binlog event is passed over")
		}
		return nil, nil
	}
}

// incident makes the sweeper look. It ends whatever was open.
func (d *Dispatcher) incident() *Transaction {
	if d.asm.txn == nil {
		d.asm.begin(gtid.ID{})
	}
	d.asm.txn.miss(words.MissedIncident, 1)
	return d.asm.commit()
}

func (d *Dispatcher) format(ev *replication.BinlogEvent) error {
	if _, err := d.parser.parse(ev, false); err != nil {
		return err
	}
	// A file begins: after a restart of the server table ids begin anew, and a transaction that was open is lost.
	d.dec.reset()
	d.asm.discard()
	return nil
}

// listed reads the set of transactions before the file, if the set is not known yet. Streams that were started by GTID
// know theirs, and it may be ahead of what the file says.
func (d *Dispatcher) listed(ev *replication.BinlogEvent) error {
	a := d.asm
	if !a.learn || a.txn != nil {
		return nil
	}
	event, err := d.parser.parse(ev, false)
	if err != nil {
		return err
	}
	switch e := event.(type) {
	case *replication.PreviousGTIDsEvent:
		a.executed = e.GTIDSets
	case *replication.MariadbGTIDListEvent:
		set, err := gtid.Parse(position.MariaDB, "")
		if err != nil {
			return err
		}
		for _, one := range e.GTIDs {
			set.AddOne(gtid.MariaDB(one)) // of each domain the last one is the newest
		}
		a.executed = set.String()
	}
	if a.executed != "" {
		a.delta.Clear()
		a.boundary()
	}
	return nil
}

// stamp gives the open transaction the time of its last statement, the commit, unless its GTID event told it exactly.
func (d *Dispatcher) stamp(ev *replication.BinlogEvent) {
	if txn := d.asm.txn; txn != nil && !txn.exact && ev.Header.Timestamp != 0 {
		txn.committed = time.Unix(int64(ev.Header.Timestamp), 0)
	}
}

func (d *Dispatcher) mysqlGTID(ev *replication.BinlogEvent, inside bool) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = malformed(ev.Header, "it ends too early")
		}
	}()
	var tagged replication.GtidTaggedLogEvent
	e := &tagged.GTIDEvent
	decode := e.Decode
	if ev.Header.EventType == replication.GTID_TAGGED_LOG_EVENT {
		decode = tagged.Decode
	}
	if err := decode(d.parser.body(ev, inside)); err != nil {
		return malformed(ev.Header, err.Error())
	}
	id := gtid.ID{}
	if ev.Header.EventType != replication.ANONYMOUS_GTID_EVENT {
		sid, err := uuid.FromBytes(e.SID)
		if err != nil {
			return malformed(ev.Header, err.Error())
		}
		id = gtid.MySQL(sid, e.Tag.String(), e.GNO)
	}
	txn := d.asm.begin(id)
	at := e.OriginalCommitTimestamp
	if at == 0 {
		at = e.ImmediateCommitTimestamp
	}
	if at != 0 {
		txn.committed, txn.exact = time.UnixMicro(int64(at)), true
	}
	return nil
}

func (d *Dispatcher) mariadbGTID(ev *replication.BinlogEvent, inside bool) error {
	id, flags, ok := mariadbGTID(ev, d.parser.body(ev, inside))
	if !ok {
		return malformed(ev.Header, "it ends too early")
	}
	txn := d.asm.begin(gtid.MariaDB(id))
	txn.standalone = flags&mariadbStandalone != 0
	txn.began = !txn.standalone
	txn.xa = flags&mariadbPreparedXA != 0
	return nil
}

// payload handles the events of a compressed transaction. They have no place of their own: the transaction ends where
// the event that holds it ends.
func (d *Dispatcher) payload(ctx context.Context, ev *replication.BinlogEvent) (*Transaction, error) {
	var ended *Transaction
	err := payloadEvents(ev.Header, d.parser.body(ev, false), func(inner *replication.BinlogEvent) error {
		t, err := d.event(ctx, inner, true)
		if t != nil {
			ended = t
		}
		return err
	})
	if err != nil && ended != nil {
		return nil, closeBoth(err, ended)
	}
	return ended, err
}

// StartAt prepares for a stream that begins at a position. It drops the open transaction.
func (d *Dispatcher) StartAt(p position.Position) error {
	d.asm.discard()
	delta, err := gtid.Parse(p.Flavor, "")
	if err != nil {
		return err
	}
	a := d.asm
	a.flavor, a.file, a.pos, a.delta = p.Flavor, p.File, p.Pos, delta
	a.end = position.End{File: p.File, Pos: p.Pos}
	a.learn, a.executed, a.moved = p.GTID == "", "", false
	d.dec.reset()
	d.fresh, d.caughtUp = true, false
	return nil
}
