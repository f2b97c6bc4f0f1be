package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Claim takes rows for sending: those of refs that are still pending or failed, still due, and locked by nobody else. It
// pushes their next_retry_time by the lease and commits before it returns, so no lock is held while the caller sends;
// should the caller die, the rows are due again after the lease. It returns the rows as they were before the push, by id
// within each table. A claim whose commit was not answered is lost until its lease is over.
func (s *Store) Claim(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error) {
	return s.claim(ctx, refs, lease, claimDue)
}

// claimable is which rows a claim takes.
type claimable uint8

const (
	claimDue    claimable = iota // due ones
	claimEarly                   // and failed ones before they are due
	claimParked                  // parked ones
)

// ClaimEarly is Claim, but takes failed rows whether they are due or not. It is for a topic that has just opened, and may
// take a row that another relay has claimed within its lease; only the leader may call it.
func (s *Store) ClaimEarly(ctx context.Context, refs []outbox.Ref, lease time.Duration) ([]outbox.Row, error) {
	return s.claim(ctx, refs, lease, claimEarly)
}

func (s *Store) claim(ctx context.Context, refs []outbox.Ref, lease time.Duration, which claimable) ([]outbox.Row, error) {
	var claimed []outbox.Row
	for _, g := range ByTable(refs) {
		patience := 5
		rows, err := s.claimSome(ctx, g, lease, which, &patience)
		claimed = append(claimed, rows...)
		if err != nil {
			return claimed, err
		}
	}
	return claimed, nil
}

// claimSome claims one batch. A server that can't skip locked rows waits for them instead; then the batch is halved until
// the locked rows are found and left out, or the patience is over and the rest is left for the next round.
func (s *Store) claimSome(ctx context.Context, g Group, lease time.Duration, which claimable, patience *int) ([]outbox.Row, error) {
	var claimed []outbox.Row
	unsure := map[outbox.Ref]bool{} // a commit that claimed them was not answered
	err := s.OnTable(ctx, s.work, "claim rows of", g.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
		claimed = nil
		var rows []outbox.Row
		committing := false
		err := mysql.Transact(ctx, conn, func(tx *sql.Tx) (err error) {
			rows, err = s.claimIn(ctx, tx, t, g.Refs, lease, which)
			committing = err == nil
			return err
		})
		switch {
		case err == nil:
			claimed = rows
		case committing:
			for i := range rows {
				unsure[rows[i].Ref()] = true
			}
		}
		return err
	})
	for i := range claimed {
		delete(unsure, claimed[i].Ref())
	}
	if err == nil && len(unsure) > 0 {
		return nil, &mysql.Error{Op: "claim rows of " + g.Table.String(), Class: ErrUnreachable, Text: fmt.Sprintf("the commit of a claim was not answered, %d rows wait until it ends", len(unsure))}
	}
	if s.Server().CanSkipLocked() || !errors.Is(err, ErrBusy) {
		return claimed, err
	}
	if *patience--; *patience < 0 || len(g.Refs) == 1 {
		return nil, nil
	}
	half := len(g.Refs) / 2
	for _, refs := range [][]outbox.Ref{g.Refs[:half], g.Refs[half:]} {
		rows, err := s.claimSome(ctx, Group{g.Table, refs}, lease, which, patience)
		claimed = append(claimed, rows...)
		if err != nil {
			return claimed, err
		}
	}
	return claimed, nil
}

func (s *Store) claimIn(ctx context.Context, tx *sql.Tx, t *Table, refs []outbox.Ref, lease time.Duration, which claimable) ([]outbox.Row, error) {
	wanted := make(map[uint64]string, len(refs))
	for _, ref := range refs {
		wanted[ref.ID] = ref.MsgID
	}
	rows, err := s.readRows(ctx, tx, t, s.claimQuery(t, refs, which))
	if err != nil {
		return nil, err
	}
	rows = slices.DeleteFunc(rows, func(row outbox.Row) bool { return wanted[row.ID] != row.MsgID })
	if len(rows) == 0 {
		return nil, nil
	}
	taken := make([]outbox.Ref, len(rows))
	for i := range rows {
		taken[i] = rows[i].Ref()
	}
	_, err = tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s%s SET %s,%s WHERE %s IN (%s)",
		t.From(), t.ByID(), t.nextRetry().set(dueIn(lease)), t.Touched(), t.Col(words.ColumnID), t.IDs(taken)))
	return rows, err
}

// claimQuery locks by primary key and in READ COMMITTED: records only, no gap that an INSERT would wait for.
func (s *Store) claimQuery(t *Table, refs []outbox.Ref, which claimable) string {
	condition := t.nextRetry().sendable()
	switch which {
	case claimDue:
	case claimEarly:
		condition += " OR " + t.Col(words.ColumnStatus) + "=" + s.Number(outbox.Failed)
	case claimParked:
		condition = s.isParked(t)
	}
	skip := ""
	if s.Server().CanSkipLocked() {
		skip = " SKIP LOCKED"
	}
	return fmt.Sprintf("SELECT %s FROM %s%s WHERE %s IN (%s) AND %s IN (%s) AND (%s) ORDER BY %s FOR UPDATE%s",
		t.selectList(), t.From(), t.ByID(), t.Col(words.ColumnID), t.IDs(refs), t.Col(words.ColumnStatus), s.open(), condition, t.Col(words.ColumnID), skip)
}
