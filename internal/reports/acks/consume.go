package acks

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Consume takes a report: it moves the messages to consumed, if they are pending, sent or failed and nobody else has to
// report them. A report may overtake the mark of the message, and even its commit, as far as other sessions can see: a
// message that can't be read yet is waited for. Reports may be repeated, and an error means that some may have been
// taken.
func (a *Acks) Consume(ctx context.Context, rules Rules, r report.Report) (counts report.Counts, err error) {
	ids := slices.Clone(r.MsgIDs)
	slices.Sort(ids)
	for some := range slices.Chunk(slices.Compact(ids), store.BatchSize) {
		part := r
		part.MsgIDs = some
		taken, err := a.consumeSome(ctx, rules, part)
		counts.Add(taken)
		if err != nil {
			return counts, err
		}
	}
	return counts, nil
}

// reportedRow is a row that a report names.
type reportedRow struct {
	ref    outbox.Ref
	topic  string
	status outbox.Status
}

func (a *Acks) consumeSome(ctx context.Context, rules Rules, r report.Report) (counts report.Counts, err error) {
	found, err := a.reported(ctx, r.MsgIDs)
	if err != nil {
		return counts, err
	}
	var alone []outbox.Ref
	shared := map[string][]outbox.Ref{} // by topic: those that several groups must report
	for _, id := range r.MsgIDs {
		rows := slices.DeleteFunc(found[id], func(row reportedRow) bool { return r.Topic != "" && rules.topicOf(row.topic) != r.Topic })
		switch {
		case len(rows) == 0:
			counts.Unknown++
			continue
		case r.Topic == "" && slices.ContainsFunc(rows, func(row reportedRow) bool { return row.topic != rows[0].topic }):
			counts.Ambiguous++
			continue
		}
		for _, row := range rows {
			groups := rules.Groups[row.topic]
			switch {
			case row.status == outbox.Consumed:
				counts.Already++
			case row.status != outbox.Pending && row.status != outbox.Sent && row.status != outbox.Failed:
				counts.Ignored++
			case len(groups) > 0 && !slices.Contains(groups, r.Group):
				counts.Stranger++
			case len(groups) > 1:
				shared[row.topic] = append(shared[row.topic], row.ref)
			default:
				alone = append(alone, row.ref)
			}
		}
	}
	if len(alone) > 0 {
		changed, err := a.store.Update(ctx, a.pool, "mark rows consumed in", byID(alone), a.reportable(), a.consumes)
		changed = min(changed, int64(len(alone)))
		counts.Consumed += int(changed)
		counts.Already += len(alone) - int(changed) // somebody was quicker
		if err != nil {
			return counts, err
		}
	}
	for topic, refs := range shared {
		taken, err := a.consumeShared(ctx, refs, r.Group, rules.Groups[topic])
		counts.Add(taken)
		if err != nil {
			return counts, err
		}
	}
	return counts, nil
}

// reportable renders the statuses that a report moves a row out of. Pending and failed are among them because a report may
// overtake the mark; dead and discarded ones are a person'a.
func (a *Acks) reportable() string {
	return a.store.Numbers([]outbox.Status{outbox.Pending, outbox.Sent, outbox.Failed})
}

func (a *Acks) consumes(t *store.Table) string {
	return a.store.Becomes(t, outbox.Consumed) + "," + t.Touched()
}

// byID sorts refs in the order in which an UPDATE by primary key locks their rows, which is also the marker's: two
// statements that lock the same rows in different orders deadlock.
func byID(refs []outbox.Ref) []outbox.Ref {
	slices.SortFunc(refs, func(a, b outbox.Ref) int {
		switch {
		case a.ID < b.ID:
			return -1
		case a.ID > b.ID:
			return 1
		}
		return 0
	})
	return refs
}

// reported looks for messages by msg_id in all tables. What no table shows is looked for again by a locking read: with
// semi-synchronous replication a message is in Kafka, and may be consumed, seconds before its row can be read, while a
// locking read waits for the transaction that holds it.
func (a *Acks) reported(ctx context.Context, ids []string) (map[string][]reportedRow, error) {
	found := make(map[string][]reportedRow, len(ids))
	wanted := ids
	for _, locking := range []string{"", " LOCK IN SHARE MODE"} {
		for _, table := range a.store.Tables() {
			err := a.reportedIn(ctx, table.Table, wanted, locking, found)
			if err != nil && !errors.Is(err, mysql.ErrGone) { // a table that is gone has nothing that could be reported
				return nil, err
			}
		}
		wanted = slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return len(found[id]) > 0 })
		if len(wanted) == 0 {
			break
		}
	}
	return found, nil
}

func (a *Acks) reportedIn(ctx context.Context, name outbox.Table, ids []string, locking string, found map[string][]reportedRow) error {
	wanted := make(map[string]bool, len(ids))
	for _, id := range ids {
		wanted[id] = true
	}
	var some []reportedRow
	err := a.store.OnTable(ctx, a.pool, "look up reported rows of", name, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
		some = nil
		list := make([]string, len(ids))
		for i, id := range ids {
			list[i] = t.QuoteMsgID(id)
		}
		for part := range slices.Chunk(list, store.BatchSize) {
			query := "SELECT " + t.Col(words.ColumnID) + "," + t.Col(words.ColumnMsgID) + "," + t.Col(words.ColumnTopic) + "," + t.Col(words.ColumnStatus) + " FROM " + t.From() + t.ByMsgID() +
				" WHERE " + t.Col(words.ColumnMsgID) + " IN (" + strings.Join(part, ",") + ")" + locking
			rows, err := a.readReported(ctx, conn, t, query)
			if err != nil {
				return err
			}
			some = append(some, rows...)
		}
		return nil
	})
	for _, row := range some {
		// The column's collation may take more for the same than is the same.
		if wanted[row.ref.MsgID] {
			found[row.ref.MsgID] = append(found[row.ref.MsgID], row)
		}
	}
	return err
}

func (a *Acks) readReported(ctx context.Context, conn *sql.Conn, t *store.Table, query string) (found []reportedRow, err error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	for rows.Next() {
		var id, msgID, topic sql.RawBytes
		var status sql.NullInt64
		if err := rows.Scan(&id, &msgID, &topic, &status); err != nil {
			return nil, err
		}
		number, err := t.ParseID(string(id))
		if err != nil {
			return nil, err
		}
		row := reportedRow{ref: outbox.Ref{Table: t.Table, ID: number, MsgID: string(msgID)}, topic: string(topic), status: outbox.Foreign}
		if status.Valid {
			row.status = a.store.StatusOf(status.Int64)
		}
		found = append(found, row)
	}
	return found, rows.Err()
}
