package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// AckCursor is where a pass over the ack tables goes on; the zero value is the beginning.
type AckCursor struct {
	table int
	after string
}

// settleLimit is how many reports one call of SettleAcks looks at, and orphanAge how old a report must be before it is
// forgotten because no message has its id.
const (
	settleLimit = 5000
	orphanAge   = "INTERVAL 1 DAY"
)

// SettleAcks completes what consumers have written into an ack table with SQL of their own, and forgets what is there for
// nothing: reports of messages that are consumed already, and day-old ones of messages that are not there. It looks at a
// bounded number of reports and returns where to go on, also with an error, which concerns one table only; the zero cursor when
// all have been looked at.
func (s *Store) SettleAcks(ctx context.Context, rules AckRules, from AckCursor) (counts report.Counts, next AckCursor, err error) {
	tables := s.Tables()
	if from.table >= len(tables) {
		return counts, AckCursor{}, nil
	}
	if from.table+1 < len(tables) {
		next.table = from.table + 1
	}
	name := tables[from.table].Table
	page, err := s.ackPage(ctx, name, from.after)
	if err != nil {
		return counts, next, s.aboutAcks(name, err)
	}
	if page.last != "" {
		next = AckCursor{table: from.table, after: page.last}
	}
	counts, err = s.settle(ctx, rules, name, page)
	return counts, next, err
}

// ackPage is a part of an ack table.
type ackPage struct {
	acks ackSet
	old  map[string]bool // msg_ids whose reports are all older than orphanAge
	last string          // the last msg_id when there is more, else ""
}

func (s *Store) ackPage(ctx context.Context, messages outbox.Table, after string) (page ackPage, err error) {
	err = s.OnTable(ctx, s.scan, "read reports of", messages, func(ctx context.Context, conn *sql.Conn, t *Table) error {
		page = ackPage{acks: ackSet{}, old: map[string]bool{}}
		rows, err := conn.QueryContext(ctx, fmt.Sprintf("SELECT msg_id,consumer_group,reported_at<NOW()-%s FROM %s WHERE msg_id>%s ORDER BY msg_id,consumer_group LIMIT %d",
			orphanAge, outbox.QuoteTable(s.cfg.ackTable(t.Table)), mysql.Literal(after), settleLimit))
		if err != nil {
			return err
		}
		defer closeRows(rows)
		n, last := 0, ""
		for ; rows.Next(); n++ {
			var group string
			var old bool
			if err := rows.Scan(&last, &group, &old); err != nil {
				return err
			}
			before, seen := page.old[last]
			page.old[last] = old && (before || !seen)
			page.acks[last] = append(page.acks[last], group)
		}
		if n == settleLimit {
			if len(page.acks) > 1 {
				delete(page.acks, last) // cut in its middle: it begins the next page
				last = slices.Max(slices.Collect(maps.Keys(page.acks)))
			}
			page.last = last
		}
		return rows.Err()
	})
	return page, err
}

// settle looks at the messages of a page.
func (s *Store) settle(ctx context.Context, rules AckRules, name outbox.Table, page ackPage) (counts report.Counts, err error) {
	ids := slices.Sorted(maps.Keys(page.acks))
	if len(ids) == 0 {
		return counts, nil
	}
	found := map[string][]reportedRow{}
	if err := s.reportedIn(ctx, name, ids, "", found); err != nil {
		return counts, err
	}
	complete := map[string][]outbox.Ref{}
	var forget []string
	for _, id := range ids {
		rows := found[id]
		if len(rows) == 0 {
			if page.old[id] {
				forget = append(forget, id)
			}
			continue
		}
		row := rows[0]
		required := rules.Groups[row.topic]
		switch {
		case row.status == outbox.Consumed:
			forget = append(forget, id)
		case row.status != outbox.Pending && row.status != outbox.Sent && row.status != outbox.Failed:
		case len(required) > 0 && hasAll(page.acks[id], required), len(required) == 0:
			complete[row.topic] = append(complete[row.topic], row.ref)
		}
	}
	for topic, refs := range complete {
		taken, err := s.settleTopic(ctx, refs, rules.Groups[topic])
		counts.Add(taken)
		if err != nil {
			return counts, err
		}
	}
	return counts, s.forgetAcks(ctx, name, forget)
}

// settleTopic completes messages. Where the configuration names no group, any report is enough.
func (s *Store) settleTopic(ctx context.Context, refs []outbox.Ref, required []string) (report.Counts, error) {
	group := ""
	if len(required) > 0 {
		group = required[0]
	}
	return s.consumeShared(ctx, refs, group, required)
}

func (s *Store) forgetAcks(ctx context.Context, messages outbox.Table, ids []string) error {
	sort.Strings(ids)
	for some := range slices.Chunk(ids, BatchSize) {
		err := s.OnTable(ctx, s.acks, "forget reports of", messages, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			_, err := conn.ExecContext(ctx, "DELETE FROM "+outbox.QuoteTable(s.cfg.ackTable(t.Table))+" WHERE msg_id IN ("+mysql.Literals(some)+")")
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// Reported returns which groups have reported a message and are kept, because others have not. A table without an ack table
// has none.
func (s *Store) Reported(ctx context.Context, refs []outbox.Ref) (map[outbox.Ref][]string, error) {
	found := map[outbox.Ref][]string{}
	for _, g := range ByTable(refs) {
		err := s.OnTable(ctx, s.work, "read reports of", g.Table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
			acks, err := readAcks(ctx, conn, s.cfg.ackTable(t.Table), " WHERE msg_id IN ("+msgIDList(g.Refs)+") ORDER BY consumer_group")
			for _, ref := range g.Refs {
				if groups := acks[ref.MsgID]; len(groups) > 0 {
					found[ref] = groups
				}
			}
			return err
		})
		// To a user without rights on it, a table that does not exist is one that he may not read.
		if err != nil && !errors.Is(err, ErrGone) && !errors.Is(err, ErrPrivilege) {
			return nil, err
		}
	}
	return found, nil
}
