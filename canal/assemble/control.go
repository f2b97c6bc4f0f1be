package assemble

import (
	"fmt"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/google/uuid"

	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/words"
)

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

// stamp gives the open transaction the time of its last statement, the commit, unless its GTID event has it exactly.
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
