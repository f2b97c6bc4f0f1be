package assemble

import (
	"example.com/outbox-relay/outbox"
)

// net counts the rows that are pending after all changes.
func (b *rowBuffer) net() (int, error) {
	if len(b.changes) == 0 && b.odd == 0 {
		return b.count(), nil
	}
	n := 0
	var failed error
	b.pending(func(_ outbox.Row, err error) bool {
		if err != nil {
			failed = err
			return false
		}
		n++
		return true
	})
	return n, failed
}

// pending yields the rows that are pending after all changes. Each is yielded as it stands at the end.
func (b *rowBuffer) pending(yield func(outbox.Row, error) bool) {
	index := 0
	visit := func(row *outbox.Row) bool {
		index++
		if len(b.changes) > 0 && !b.apply(row, index) {
			return true
		}
		if row.Status != outbox.Pending {
			return true
		}
		return yield(*row, nil)
	}
	for i := range b.rows {
		row := &b.rows[i]
		if len(b.changes) > 0 {
			changed := b.rows[i] // the row is read more than once
			row = &changed
		}
		if !visit(row) {
			return
		}
	}
	if b.spill == nil {
		return
	}
	if err := b.spill.each(visit); err != nil {
		yield(outbox.Row{}, err)
	}
}

// apply makes the changes that came after the row was inserted; inserted counts the rows up to and with it. It reports
// whether the row is still there.
func (b *rowBuffer) apply(row *outbox.Row, inserted int) bool {
	after := -1 // the last change applied
	for {
		key := rowKey{table: row.Table, id: row.ID}
		moved := false
		for _, i := range b.byRow[key] {
			c := &b.changes[i]
			if i <= after || c.before < inserted {
				continue
			}
			if c.update == nil {
				return false
			}
			after = i
			c.update(row)
			if row.ID != key.id {
				moved = true
				break
			}
		}
		if !moved {
			return true
		}
	}
}

// some returns the first rows of a table that are pending after all changes.
func (b *rowBuffer) some(t outbox.Table) (rows []outbox.Row, err error) {
	const few = 20
	b.pending(func(row outbox.Row, failed error) bool {
		if err = failed; failed == nil && row.Table == t {
			rows = append(rows, row)
		}
		return err == nil && len(rows) < few
	})
	return rows, err
}
