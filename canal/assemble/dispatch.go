// Package assemble makes committed transactions of the events of a binlog.
//
// A Dispatcher gives each event its meaning. Events of other tables are passed over before they are decoded; rows of
// ours are decoded by their columns' names and gathered in bounded memory until the commit. What can't be read with
// certainty is counted in Transaction.Missed and left to the sweeper.
//
// It leaves to canal: connections, and from where to start. The server is queried for a table's columns alone.
package assemble

import (
	"context"
	"math"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/position"
)

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
		asm: &assembler{reading: reading{flavor: cfg.Flavor}, limit: cfg.BufferBytes, dir: cfg.SpillDir, log: log},
		dec: newDecoder(cfg, parser, server, log), unknown: make(map[replication.EventType]bool),
	}
}

// Handle handles one event, undecoded as the server sent it. It returns a transaction when the event ends one with
// something in it for us; the caller closes it. It waits for the server when a table's columns have to be read. After
// an error the stream has to start again: with ErrMalformed for an event that can't be read, ErrNoTransaction for a
// start that was no boundary, or an error of ctx.
func (d *Dispatcher) Handle(ctx context.Context, ev *replication.BinlogEvent) (*Transaction, error) {
	t, err := d.handle(ctx, ev)
	return d.waited(t), err
}

// Progress returns an empty transaction when a boundary has moved beyond what was handed out, nil when it has not.
func (d *Dispatcher) Progress() *Transaction { return d.waited(d.asm.progress()) }

// HasProgress reports whether Progress may return something.
func (d *Dispatcher) HasProgress() bool { return d.asm.unreported() }

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

// advance moves the position behind the event, which has the lower 32 bits only.
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
		// Where the server begins to read: with GTIDs, before the position where we want to go on.
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

// payload handles the events of a compressed transaction. They have no position of their own: the transaction ends
// where the event that holds it ends.
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
