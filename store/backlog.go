package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Backlog returns the refs of a topic's first due rows by id, without their bodies: a drain reads many once and claims
// them batch by batch, instead of searching the whole backlog for each batch. It may return fewer than the limit while
// there are more; only an empty answer says that nothing is left.
func (s *Store) Backlog(ctx context.Context, q Query) ([]outbox.Ref, error) {
	if q.Limit <= 0 {
		q.Limit = 50 * defaultLimit
	}
	var refs []outbox.Ref
	for _, table := range s.Tables() {
		if len(refs) >= q.Limit {
			break
		}
		some := q
		some.Limit = q.Limit - len(refs)
		var found []outbox.Ref
		err := s.OnTable(ctx, s.scan, "read due rows of", table.Table, func(ctx context.Context, conn *sql.Conn, t *Table) (err error) {
			for _, all := range []bool{false, true} {
				found, err = ReadRefs(ctx, conn, t, s.topicQuery(t, some, t.Col(words.ColumnID)+","+t.Col(words.ColumnMsgID), all))
				if err != nil || len(found) > 0 {
					return err
				}
			}
			return nil
		})
		if unlessGone(err) != nil {
			return nil, err
		}
		refs = append(refs, found...)
	}
	return refs, nil
}

// oldest returns the topic's oldest row if that one is due: of several tables, of each the oldest.
func (s *Store) oldest(ctx context.Context, q Query) ([]outbox.Row, error) {
	var found []outbox.Row
	for _, table := range s.Tables() {
		first := q
		first.Early, first.Limit = true, 1
		rows, err := s.tableCandidates(ctx, table.Table, first)
		if unlessGone(err) != nil {
			return nil, err
		}
		if len(rows) > 0 && rows[0].Status == outbox.Failed && !q.Early {
			due, err := s.isDue(ctx, rows[0].Ref())
			if err != nil {
				return nil, err
			}
			if !due {
				continue
			}
		}
		found = append(found, rows...)
	}
	return found, nil
}

// isDue asks the database whether a row's time has come.
func (s *Store) isDue(ctx context.Context, ref outbox.Ref) (due bool, err error) {
	err = s.OnTable(ctx, s.work, "look up rows of", ref.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
		return conn.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+t.From()+t.ByID()+" WHERE "+t.These([]outbox.Ref{ref})+
			" AND ("+t.nextRetry().sendable()+")").Scan(&due)
	})
	return due, err
}

// headLimit is how many of the first due rows are searched for a topic's before all are.
const headLimit = 2000

// topicQuery reads a topic's first due rows by id. The ids are found in the index, and only then the rows are read. With
// all, every due row is looked at, which takes seconds when there are millions. Without, only the first ones by id of
// whatever topic are, which costs a tenth, because the index alone tells their order; in a long backlog of this topic that
// is enough, and what it finds are the topic's first rows just the same.
func (s *Store) topicQuery(t *Table, q Query, list string, all bool) string {
	id := t.Col(words.ColumnID)
	topic := t.ExactTopic() + "=" + mysql.Literal(q.Only)
	search := s.dueRanges(t, q, true)
	outside := topic + " AND " + search
	limit := max(q.Limit, headLimit)
	if all {
		search += " AND " + topic
		limit = q.Limit
	} else {
		search = s.dueRanges(t, q, false)
	}
	return fmt.Sprintf("SELECT %s FROM %s JOIN (SELECT %s AS candidate FROM %s%s WHERE %s ORDER BY %s LIMIT %d) AS some ON %s=some.candidate WHERE %s ORDER BY %s LIMIT %d",
		list, t.From(), id, t.From(), t.ByDue(), search, id, limit, id, outside, id, q.Limit)
}

// dueRanges renders the condition of due rows over all ranges of the index; the grace needs the row itself.
func (s *Store) dueRanges(t *Table, q Query, grace bool) string {
	var ranges []string
	for _, status := range q.statuses() {
		is := t.Col(words.ColumnStatus) + "=" + s.Number(status)
		if status == outbox.Failed && q.Early {
			ranges = append(ranges, "("+is+")")
			continue
		}
		without := is + " AND " + t.nextRetry().none()
		if grace {
			without += t.grace(q, status)
		}
		if status == outbox.Failed || !q.Deferred {
			ranges = append(ranges, "("+without+")")
		}
		ranges = append(ranges, "("+is+" AND "+t.nextRetry().due()+")")
	}
	return "(" + strings.Join(ranges, " OR ") + ")"
}

// ReadRefs runs a query whose columns are id and msg_id.
func ReadRefs(ctx context.Context, q mysql.Querier, t *Table, query string) ([]outbox.Ref, error) {
	rows, err := q.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	var refs []outbox.Ref
	for rows.Next() {
		var id, msgID sql.RawBytes
		if err := rows.Scan(&id, &msgID); err != nil {
			return nil, err
		}
		number, err := t.ParseID(string(id))
		if err != nil {
			return nil, err
		}
		refs = append(refs, outbox.Ref{Table: t.Table, ID: number, MsgID: string(msgID)})
	}
	return refs, rows.Err()
}
