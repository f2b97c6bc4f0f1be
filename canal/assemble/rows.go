package assemble

import (
	"context"

	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/canal/lean"
	"example.com/outbox-relay/canal/plain"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// rowsJob is the decoding of one rows event.
type rowsJob struct {
	decoder *decoder
	st      *tableState
	event   *replication.RowsEvent
	view    rowsView
	txn     *openTransaction
	kind    replication.EnumRowsEventType
}

func (j *rowsJob) run(ctx context.Context) error {
	mp, err := j.decoder.mappingOf(ctx, j.st)
	if err != nil {
		return err
	}
	if mp == nil {
		j.unmapped(j.st.unmapped)
		return nil
	}
	mark := j.txn.rows.mark()
	switch j.kind {
	case replication.EnumRowsEventTypeInsert:
		err = j.inserts(ctx, mp)
	case replication.EnumRowsEventTypeDelete:
		err = j.decode(mp, nil, j.visitDelete)
	default:
		err = j.updates(mp)
	}
	if err == nil {
		return nil
	}
	if u, ok := asUnmapped(err); ok {
		j.txn.rows.rollback(mark)
		j.unmapped(u)
		return nil
	}
	if ctx.Err() != nil || j.decoder.closed() {
		return err
	}
	// Reading it again would not help: what TCP delivered is what the server has.
	j.txn.rows.rollback(mark)
	j.unmapped(&unmapped{reason: words.MissedDecode, detail: "rows of " + j.st.table.String() + " can't be decoded: " + plain.Text(err)})
	return nil
}

func (j *rowsJob) decode(mp *mapping, keep func(before, after lean.Image) bool, visit func(before, after lean.Image) error) error {
	return j.decodeBy(mp.plan, keep, visit)
}

func (j *rowsJob) decodeBy(plan *lean.Plan, keep func(before, after lean.Image) bool, visit func(before, after lean.Image) error) error {
	data, pos, err := lean.Rows(j.view.kind, j.view.data, j.view.pos)
	if err != nil {
		return err
	}
	return plan.DecodeSome(j.event, data, pos, keep, visit)
}

// unmapped leaves the event's rows to the sweeper. Updates and deletes matter only to rows that the transaction
// inserted: these are then not known any more.
func (j *rowsJob) unmapped(u *unmapped) {
	if j.kind != replication.EnumRowsEventTypeInsert {
		if j.txn.rows.count() > 0 {
			j.txn.rows.giveUp(u.reason, nil)
		}
		return
	}
	n := j.count()
	j.txn.miss(u.reason, n)
	j.decoder.warn(j.st.table, n, u.detail)
}

// count returns how many rows the event has, 1 when that is not known.
func (j *rowsJob) count() int {
	plan, err := lean.NewPlan(j.st.parsed, nil)
	if err != nil {
		return 1
	}
	n := 0
	err = j.decodeBy(plan, func(_, _ lean.Image) bool {
		n++
		return false
	}, func(_, _ lean.Image) error { return nil })
	if err != nil {
		return max(n, 1)
	}
	return n
}

// inserts adds the event's rows to the transaction.
func (j *rowsJob) inserts(ctx context.Context, mp *mapping) error {
	if len(mp.unproven) > 0 {
		j.txn.unproven = append(j.txn.unproven, j.st)
	}
	var row outbox.Row
	return j.decode(mp, nil, func(_, after lean.Image) error {
		row = outbox.Row{Table: j.st.table}
		if j.event.ColumnBitmap1 != nil && !fullImage(after, mp) {
			_, err := waitFor(ctx, j.decoder, j.st, func() (struct{}, error) {
				return struct{}{}, j.decoder.mapper.fill(ctx, mp, j.st.table, after)
			})
			if err != nil {
				return err
			}
		}
		if !j.st.maker.apply(&row, after) {
			return &unmapped{reason: words.MissedColumns, detail: "a row of " + j.st.table.String() + " has no id"}
		}
		j.txn.rows.insert(&row)
		return nil
	})
}

// fullImage reports whether the image holds every field that the table has.
func fullImage(image lean.Image, mp *mapping) bool {
	for f := range numFields {
		if image[f].State == lean.Absent && mp.index[f] >= 0 {
			return false
		}
	}
	return true
}

// updates looks for rows that become due, and notes what happens to rows of this very transaction. When it has none,
// no row's text is decoded: the relay's own marks cost next to nothing.
func (j *rowsJob) updates(mp *mapping) error {
	own := j.txn.rows.count() > 0
	return j.decode(mp, func(before, after lean.Image) bool {
		if j.revives(before, after) {
			j.revived(before, after)
		}
		return own
	}, j.visitUpdate)
}

func (j *rowsJob) visitUpdate(before, after lean.Image) error {
	id, ok := idOf(&before[fieldID])
	if !ok {
		return &unmapped{reason: words.MissedColumns, detail: "an update of " + j.st.table.String() + " tells no id"}
	}
	image := append(lean.Image(nil), after...)
	size := 0
	for f := range image {
		size += len(image[f].Bytes) + 48
	}
	maker := &j.st.maker
	j.txn.rows.change(rowKey{table: j.st.table, id: id}, func(row *outbox.Row) { maker.apply(row, image) }, size)
	return nil
}

func (j *rowsJob) visitDelete(before, _ lean.Image) error {
	id, ok := idOf(&before[fieldID])
	if !ok {
		return &unmapped{reason: words.MissedColumns, detail: "a delete from " + j.st.table.String() + " tells no id"}
	}
	j.txn.rows.change(rowKey{table: j.st.table, id: id}, nil, 0)
	return nil
}
