package acks

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
	"example.com/outbox-relay/store"
)

// Cursor is where a pass over the ack tables goes on; the zero value is the beginning.
type Cursor struct {
	table int
	after string
}

// settleLimit is how many reports one call of Settle looks at, and orphanAge how old a report must be before it is
// forgotten because no message has its id.
const (
	settleLimit = 5000
	orphanAge   = "INTERVAL 1 DAY"
)

// Settle completes what consumers have written into an ack table with SQL of their own, and forgets what is there for
// nothing: reports of messages that are consumed already, and day-old ones of messages that are not there. It looks at a
// bounded number of reports and returns where to go on, also with an error, which concerns one table only; the zero cursor when
// all have been looked at.
func (a *Acks) Settle(ctx context.Context, rules Rules, from Cursor) (counts report.Counts, next Cursor, err error) {
	tables := a.store.Tables()
	if from.table >= len(tables) {
		return counts, Cursor{}, nil
	}
	if from.table+1 < len(tables) {
		next.table = from.table + 1
	}
	name := tables[from.table].Table
	page, err := a.ackPage(ctx, name, from.after)
	if err != nil {
		return counts, next, a.aboutAcks(name, err)
	}
	if page.last != "" {
		next = Cursor{table: from.table, after: page.last}
	}
	counts, err = a.settle(ctx, rules, name, page)
	return counts, next, err
}

// ackPage is a part of an ack table.
type ackPage struct {
	acks ackSet
	old  map[string]bool // msg_ids whose reports are all older than orphanAge
	last string          // the last msg_id when there is more, else ""
}

func (a *Acks) ackPage(ctx context.Context, messages outbox.Table, after string) (page ackPage, err error) {
	err = a.store.OnTable(ctx, a.store.Scan(), "read reports of", messages, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
		page = ackPage{acks: ackSet{}, old: map[string]bool{}}
		rows, err := conn.QueryContext(ctx, fmt.Sprintf("SELECT msg_id,consumer_group,reported_at<NOW()-%s FROM %s WHERE msg_id>%s ORDER BY msg_id,consumer_group LIMIT %d",
			orphanAge, outbox.QuoteTable(a.cfg.of(t.Table)), mysql.Literal(after), settleLimit))
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
func (a *Acks) settle(ctx context.Context, rules Rules, name outbox.Table, page ackPage) (counts report.Counts, err error) {
	ids := slices.Sorted(maps.Keys(page.acks))
	if len(ids) == 0 {
		return counts, nil
	}
	found := map[string][]reportedRow{}
	if err := a.reportedIn(ctx, name, ids, "", found); err != nil {
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
		taken, err := a.settleTopic(ctx, refs, rules.Groups[topic])
		counts.Add(taken)
		if err != nil {
			return counts, err
		}
	}
	return counts, a.forgetAcks(ctx, name, forget)
}

// settleTopic completes messages. Where the configuration names no group, any report is enough.
func (a *Acks) settleTopic(ctx context.Context, refs []outbox.Ref, required []string) (report.Counts, error) {
	group := ""
	if len(required) > 0 {
		group = required[0]
	}
	return a.consumeShared(ctx, refs, group, required)
}

func (a *Acks) forgetAcks(ctx context.Context, messages outbox.Table, ids []string) error {
	sort.Strings(ids)
	for some := range slices.Chunk(ids, store.BatchSize) {
		err := a.store.OnTable(ctx, a.pool, "forget reports of", messages, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
			_, err := conn.ExecContext(ctx, "DELETE FROM "+outbox.QuoteTable(a.cfg.of(t.Table))+" WHERE msg_id IN ("+mysql.Literals(some)+")")
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
func (a *Acks) Reported(ctx context.Context, refs []outbox.Ref) (map[outbox.Ref][]string, error) {
	found := map[outbox.Ref][]string{}
	for _, g := range store.ByTable(refs) {
		err := a.store.OnTable(ctx, a.store.Work(), "read reports of", g.Table, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
			acks, err := readAcks(ctx, conn, a.cfg.of(t.Table), " WHERE msg_id IN ("+msgIDList(g.Refs)+") ORDER BY consumer_group")
			for _, ref := range g.Refs {
				if groups := acks[ref.MsgID]; len(groups) > 0 {
					found[ref] = groups
				}
			}
			return err
		})
		// To a user without rights on it, a table that does not exist is one that he may not read.
		if err != nil && !errors.Is(err, mysql.ErrGone) && !errors.Is(err, mysql.ErrPrivilege) {
			return nil, err
		}
	}
	return found, nil
}
