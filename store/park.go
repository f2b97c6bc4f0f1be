package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// isParked renders the condition of parked rows.
func (s *Store) isParked(t *Table) string {
	return t.Col(words.ColumnStatus) + "=" + s.Number(outbox.Pending) + " AND " + t.nextRetry().parked()
}

// Parking is a row and the slot to park it in.
type Parking struct {
	outbox.Ref
	Slot Slot
}

// parkBatch is less than BatchSize, because each row comes with its time.
const parkBatch = 500

// Park leaves pending and failed rows in the table until somebody claims them by ClaimParked: they are pending, and due in a
// far future that tells their key. Their retry_count stays.
func (s *Store) Park(ctx context.Context, rows []Parking) error {
	byTable := map[outbox.Table][]Parking{}
	for _, p := range rows {
		byTable[p.Table] = append(byTable[p.Table], p)
	}
	for _, some := range byTable {
		for len(some) > 0 {
			n := min(len(some), parkBatch)
			if err := s.parkSome(ctx, some[:n]); err != nil {
				return err
			}
			some = some[n:]
		}
	}
	return nil
}

func (s *Store) parkSome(ctx context.Context, rows []Parking) error {
	refs := make([]outbox.Ref, len(rows))
	for i := range rows {
		refs[i] = rows[i].Ref
	}
	_, err := s.Update(ctx, s.marks, "park rows of", refs, s.open(), func(t *Table) string {
		var slot strings.Builder
		slot.WriteString("CASE " + t.Col(words.ColumnID))
		for _, p := range rows {
			slot.WriteString(" WHEN " + t.FormatID(p.ID) + " THEN " + string(p.Slot.value()))
		}
		slot.WriteString(" END")
		return s.Becomes(t, outbox.Pending) + "," + t.Touched() + "," + t.nextRetry().set(value(slot.String()))
	})
	return err
}

// Parked returns the first parked rows of a slot: of each table by id.
func (s *Store) Parked(ctx context.Context, slot Slot, limit int) ([]outbox.Row, error) {
	var found []outbox.Row
	for _, table := range s.Tables() {
		if len(found) >= limit {
			break
		}
		var some []outbox.Row
		err := s.OnTable(ctx, s.scan, "read parked rows of", table.Table, func(ctx context.Context, conn *sql.Conn, t *Table) (err error) {
			some, err = s.readRows(ctx, conn, t, fmt.Sprintf("SELECT %s FROM %s%s WHERE %s=%s AND %s ORDER BY %s LIMIT %d", t.selectList(), t.From(), t.ByDue(),
				t.Col(words.ColumnStatus), s.Number(outbox.Pending), t.nextRetry().parkedIn(slot), t.Col(words.ColumnID), limit-len(found)))
			return err
		})
		if unlessGone(err) != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

// ClaimParked is Claim for parked rows.
func (s *Store) ClaimParked(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error) {
	return s.claim(ctx, refs, lease, claimParked)
}

// ParkedSlots returns the slots in which rows are parked. Its cost grows with their number, not with that of the rows.
func (s *Store) ParkedSlots(ctx context.Context) ([]Slot, error) {
	var found []Slot
	err := s.eachTable(ctx, "look for parked rows of", func(ctx context.Context, conn *sql.Conn, t *Table) error {
		times, err := mysql.Texts(ctx, conn, "SELECT DISTINCT "+string(t.nextRetry())+" FROM "+t.From()+t.ByDue()+" WHERE "+s.isParked(t))
		for _, text := range times {
			if slot, ok := slotAt(text); ok {
				found = append(found, slot)
			}
		}
		return err
	})
	return found, err
}

// CountParked returns how many rows are parked, and of how many keys; at most CountCap rows of each table are counted.
func (s *Store) CountParked(ctx context.Context) (rows, keys int64, err error) {
	err = s.eachTable(ctx, "count parked rows of", func(ctx context.Context, conn *sql.Conn, t *Table) error {
		var n, k int64
		err := conn.QueryRowContext(ctx, fmt.Sprintf("SELECT COUNT(*), COUNT(DISTINCT due) FROM (SELECT %s AS due FROM %s%s WHERE %s LIMIT %d) AS some",
			t.nextRetry(), t.From(), t.ByDue(), s.isParked(t), CountCap)).Scan(&n, &k)
		rows, keys = rows+n, keys+k
		return err
	})
	return rows, keys, err
}

// DeadLetters returns the ids of the dead letters of each table that is there. It reads the index alone.
func (s *Store) DeadLetters(ctx context.Context) (map[outbox.Table][]uint64, error) {
	dead := map[outbox.Table][]uint64{}
	err := s.eachTable(ctx, "look for dead letters of", func(ctx context.Context, conn *sql.Conn, t *Table) error {
		texts, err := mysql.Texts(ctx, conn, "SELECT "+t.Col(words.ColumnID)+" FROM "+t.From()+t.ByDue()+" WHERE "+t.Col(words.ColumnStatus)+"="+s.Number(outbox.Dead))
		if err != nil {
			return err
		}
		ids := make([]uint64, len(texts))
		for i, text := range texts {
			if ids[i], err = t.ParseID(text); err != nil {
				return err
			}
		}
		dead[t.Table] = ids
		return nil
	})
	return dead, err
}

// deadBatch is how many dead letters are read at once, with their contents.
const deadBatch = 100

// ReadDead reads those of the rows with these ids that are dead letters, and hands each to visit.
func (s *Store) ReadDead(ctx context.Context, table outbox.Table, ids []uint64, visit func(*outbox.Row)) error {
	for len(ids) > 0 {
		refs := make([]outbox.Ref, min(len(ids), deadBatch))
		for i := range refs {
			refs[i].ID = ids[i]
		}
		ids = ids[len(refs):]
		var rows []outbox.Row
		err := s.OnTable(ctx, s.scan, "read dead letters of", table, func(ctx context.Context, conn *sql.Conn, t *Table) (err error) {
			rows, err = s.readRows(ctx, conn, t, "SELECT "+t.selectList()+" FROM "+t.From()+t.ByID()+" WHERE "+t.Col(words.ColumnID)+" IN ("+t.IDs(refs)+") AND "+
				t.Col(words.ColumnStatus)+"="+s.Number(outbox.Dead))
			return err
		})
		if err != nil {
			return err
		}
		for i := range rows {
			visit(&rows[i])
		}
	}
	return nil
}

// eachTable runs do on each table; one that is gone is left out.
func (s *Store) eachTable(ctx context.Context, op string, do func(context.Context, *sql.Conn, *Table) error) error {
	for _, table := range s.Tables() {
		if err := s.OnTable(ctx, s.scan, op, table.Table, do); err != nil && !errors.Is(err, ErrGone) {
			return err
		}
	}
	return nil
}
