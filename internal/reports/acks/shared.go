package acks

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// ackSet says by msg_id which groups have reported.
type ackSet map[string][]string

// consumeShared takes a group's report of messages that several groups have to report. A message becomes consumed with the
// last of the reports; who has reported is forgotten then, so that the table holds only what is still waited for.
func (a *Acks) consumeShared(ctx context.Context, refs []outbox.Ref, group string, required []string) (counts report.Counts, err error) {
	for _, g := range store.ByTable(byID(refs)) {
		var taken report.Counts
		err := a.store.OnTable(ctx, a.pool, "take reports of rows of", g.Table, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
			return mysql.Transact(ctx, conn, func(tx *sql.Tx) (err error) {
				taken, err = a.consumeSharedIn(ctx, tx, t, g.Refs, group, required)
				return err
			})
		})
		if err != nil {
			return counts, a.aboutAcks(g.Table, err)
		}
		counts.Add(taken)
	}
	return counts, nil
}

// aboutAcks adds what to do when the ack table is missing.
func (a *Acks) aboutAcks(messages outbox.Table, err error) error {
	if errors.Is(err, mysql.ErrGone) || errors.Is(err, mysql.ErrPrivilege) {
		return fmt.Errorf("%w; acks.groups needs the table %s and SELECT, INSERT, DELETE on it: outbox-relay init --print-sql", err, a.cfg.of(messages))
	}
	return err
}

func (a *Acks) consumeSharedIn(ctx context.Context, tx *sql.Tx, t *store.Table, refs []outbox.Ref, group string, required []string) (counts report.Counts, err error) {
	// Two groups that report at the same time do not see each other's report. Whoever locks the message second waits, and
	// sees the first one's then.
	open, err := store.ReadRefs(ctx, tx, t, "SELECT "+t.Col(words.ColumnID)+","+t.Col(words.ColumnMsgID)+" FROM "+t.From()+t.ByID()+" WHERE "+t.These(refs)+
		" AND "+t.Col(words.ColumnStatus)+" IN ("+a.reportable()+") FOR UPDATE")
	counts.Already += len(refs) - len(open)
	if err != nil || len(open) == 0 {
		return counts, err
	}
	acks := a.cfg.of(t.Table)
	before, err := readAcks(ctx, tx, acks, " WHERE msg_id IN ("+msgIDList(open)+")")
	if err != nil {
		return counts, err
	}
	var complete, fresh []outbox.Ref
	for _, ref := range open {
		reported := before[ref.MsgID]
		isNew := !slices.Contains(reported, group)
		if isNew {
			reported = append(reported, group)
		}
		switch {
		case hasAll(reported, required):
			complete = append(complete, ref)
			counts.Consumed++
		case isNew:
			fresh = append(fresh, ref)
			counts.Waiting++
		default:
			counts.Already++
		}
	}
	if err := insertAcks(ctx, tx, acks, fresh, group); err != nil {
		return counts, err
	}
	return counts, a.complete(ctx, tx, t, complete)
}

// complete moves messages that all groups have reported to consumed. Their rows are locked.
func (a *Acks) complete(ctx context.Context, tx *sql.Tx, t *store.Table, refs []outbox.Ref) error {
	if len(refs) == 0 {
		return nil
	}
	_, err := tx.ExecContext(ctx, "UPDATE "+t.From()+t.ByID()+" SET "+a.consumes(t)+" WHERE "+t.These(refs)+
		" AND "+t.Col(words.ColumnStatus)+" IN ("+a.reportable()+")")
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM "+outbox.QuoteTable(a.cfg.of(t.Table))+" WHERE msg_id IN ("+msgIDList(refs)+")")
	return err
}

func hasAll(reported, required []string) bool {
	return !slices.ContainsFunc(required, func(group string) bool { return !slices.Contains(reported, group) })
}

func insertAcks(ctx context.Context, tx *sql.Tx, acks outbox.Table, refs []outbox.Ref, group string) error {
	if len(refs) == 0 {
		return nil
	}
	values := make([]string, len(refs))
	for i, ref := range refs {
		values[i] = "(" + mysql.Literal(ref.MsgID) + "," + mysql.Literal(group) + ",NOW())"
	}
	_, err := tx.ExecContext(ctx, "INSERT IGNORE INTO "+outbox.QuoteTable(acks)+" (msg_id,consumer_group,reported_at) VALUES "+
		strings.Join(values, ","))
	return err
}

func msgIDList(refs []outbox.Ref) string {
	ids := make([]string, len(refs))
	for i, ref := range refs {
		ids[i] = ref.MsgID
	}
	return mysql.Literals(ids)
}

// closeRows frees the session for its next statement. What Close could report, rows.Err has reported before. (The linter knows
// only a helper of the package itself.)
func closeRows(rows *sql.Rows) { _ = rows.Close() }

func readAcks(ctx context.Context, q mysql.Querier, acks outbox.Table, where string) (ackSet, error) {
	rows, err := q.QueryContext(ctx, "SELECT msg_id,consumer_group FROM "+outbox.QuoteTable(acks)+where)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	found := ackSet{}
	for rows.Next() {
		var msgID, group string
		if err := rows.Scan(&msgID, &group); err != nil {
			return nil, err
		}
		found[msgID] = append(found[msgID], group)
	}
	return found, rows.Err()
}
