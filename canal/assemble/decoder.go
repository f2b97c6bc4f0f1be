package assemble

import (
	"bytes"
	"context"
	"time"

	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/rs/zerolog"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry/trouble"
)

// decoder turns rows events into changes of a transaction's rowBuffer.
type decoder struct {
	parser   *parser
	mapper   *mapper
	patterns mysql.Patterns
	statuses outbox.Statuses
	log      zerolog.Logger
	// closing ends what waits.
	closing <-chan struct{}

	// tables are the tables of the binlog by their ids, nil for tables that are none of ours. A server gives a table a
	// new id whenever its definition changes.
	tables map[uint64]*tableState
	// lastWarned bounds the logging of what is left to the sweeper.
	lastWarned time.Time
	// waiting is called with what is waited for, "" when that is over; waited adds up the time.
	waiting func(what string)
	waited  time.Duration
	columns *trouble.Log // of reading them
}

func newDecoder(cfg Config, parser *parser, server Server, log zerolog.Logger) *decoder {
	return &decoder{
		parser: parser, mapper: &mapper{server: server, names: fieldNames(cfg.Columns)}, patterns: cfg.Tables,
		statuses: cfg.Statuses, log: log, closing: cfg.Closing, waiting: cfg.Waiting,
		columns: trouble.New(log, trouble.Texts{
			Fails: "can't read a table's columns, waiting: grant SELECT on it if that is missing, " +
				"end the session that has locked it",
			Works: "the table's columns could be read", Level: zerolog.WarnLevel,
		}),
	}
}

// tableState is what is known of one of our tables under one id.
type tableState struct {
	table   outbox.Table
	raw     []byte // the TABLE_MAP it was made from
	parsed  *replication.TableMapEvent
	mapping *mapping
	maker   rowMaker
	// unmapped says why there is no mapping; it is tried again after retryAt.
	unmapped *unmapped
	retryAt  time.Time
}

// maxTables bounds the ids kept: temporary and altered tables bring new ones for ever.
const maxTables = 10_000

// Pauses of the decoder.
const (
	unmappedPause = 5 * time.Second
	warnPause     = 30 * time.Second
	waitingPause  = time.Second           // a wait becomes part of State
	visibleWait   = 10 * time.Millisecond // between looks for a row that is committed but not yet visible
	visibleTries  = 50
)

func (d *decoder) reset() { d.tables = make(map[uint64]*tableState) }

// forget drops what was learnt of our tables' columns, after a statement that may have changed them.
func (d *decoder) forget() {
	for id, st := range d.tables {
		if st != nil {
			delete(d.tables, id)
		}
	}
}

// tableMap notes a TABLE_MAP event. Other tables' are not decoded.
func (d *decoder) tableMap(ev *replication.BinlogEvent, inside bool) error {
	body := d.parser.body(ev, inside)
	id, ok := tableID(body)
	if !ok {
		return malformed(ev.Header, "it has no table id")
	}
	st, known := d.tables[id]
	if known && st == nil {
		return nil
	}
	if !known {
		database, name, ok := tableName(body)
		if !ok {
			return malformed(ev.Header, "it has no table name")
		}
		if len(d.tables) >= maxTables {
			d.reset()
		}
		t := outbox.Table{Database: string(database), Name: string(name)}
		if !d.patterns.Match(t) {
			d.tables[id] = nil
			return nil
		}
		st = &tableState{table: t, maker: rowMaker{table: t, statuses: d.statuses}}
		d.tables[id] = st
	}
	// The library forgets its tables at the end of each statement.
	event, err := d.parser.parse(ev, inside)
	if err != nil {
		return err
	}
	tm, ok := event.(*replication.TableMapEvent)
	if !ok {
		return malformed(ev.Header, "not a table map")
	}
	st.parsed = tm
	if !bytes.Equal(body, st.raw) {
		st.raw, st.mapping, st.unmapped = body, nil, nil
	}
	return nil
}

// rows decodes a rows event into the transaction. An error means that the event is malformed or that ctx ended; rows
// that can't be mapped are counted in the transaction.
func (d *decoder) rows(ctx context.Context, ev *replication.BinlogEvent, inside bool, txn *openTransaction) error {
	id, ok := tableID(d.parser.body(ev, inside))
	if !ok {
		return malformed(ev.Header, "it has no table id")
	}
	st, known := d.tables[id]
	switch {
	case !known && !dummyTable(id):
		return malformed(ev.Header, "no table map came before it")
	case st == nil:
		return nil
	}
	txn.touched = true
	kind := kindOf(ev.Header.EventType)
	if kind == replication.EnumRowsEventTypeDelete && (txn.xa || txn.rows.count() == 0) {
		return nil // a delete of rows that are not of this transaction: the archive's are passed over undecoded
	}
	event, err := d.parser.parse(ev, inside)
	if err != nil {
		return err
	}
	rows, ok := event.(*replication.RowsEvent)
	if !ok {
		return malformed(ev.Header, "not a rows event")
	}
	job := &rowsJob{decoder: d, st: st, event: rows, view: d.parser.rows, txn: txn, kind: kind}
	if txn.xa {
		txn.xaRows += job.count()
		return nil
	}
	return job.run(ctx)
}

// kindOf returns whether rows are inserted, updated or deleted.
func kindOf(t replication.EventType) replication.EnumRowsEventType {
	switch t {
	case replication.WRITE_ROWS_EVENTv0, replication.WRITE_ROWS_EVENTv1, replication.WRITE_ROWS_EVENTv2,
		replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1:
		return replication.EnumRowsEventTypeInsert
	case replication.DELETE_ROWS_EVENTv0, replication.DELETE_ROWS_EVENTv1, replication.DELETE_ROWS_EVENTv2,
		replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1:
		return replication.EnumRowsEventTypeDelete
	default:
		return replication.EnumRowsEventTypeUpdate
	}
}

// mappingOf returns the table's mapping. When the server can't be queried for the columns it waits and tries again:
// to skip the rows would lose them. It returns nil when the rows can't be mapped.
func (d *decoder) mappingOf(ctx context.Context, st *tableState) (*mapping, error) {
	if st.mapping != nil {
		return st.mapping, nil
	}
	if st.unmapped != nil && time.Now().Before(st.retryAt) {
		return nil, nil //nolint:nilnil // no mapping is an answer
	}
	mp, err := waitFor(ctx, d, st, func() (*mapping, error) { return d.mapper.mapTable(ctx, st.table, st.parsed) })
	if u, ok := asUnmapped(err); ok {
		st.unmapped, st.retryAt = u, time.Now().Add(unmappedPause)
		return nil, nil //nolint:nilnil // no mapping is an answer
	}
	if err != nil {
		return nil, err
	}
	st.mapping, st.unmapped = mp, nil
	return mp, nil
}

// warn logs that rows are left to the sweeper, not too often.
func (d *decoder) warn(t outbox.Table, rows int, detail string) {
	if now := time.Now(); now.Sub(d.lastWarned) > warnPause {
		d.lastWarned = now
		d.log.Warn().Str("table", t.String()).Int("rows", rows).Str("error", detail).Msg("rows are left to the sweeper")
	}
}
