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

// UnreportedQuery chooses sent messages that have not been reported.
type UnreportedQuery struct {
	// Topic, as rows name it; "" is every topic.
	Topic string
	// Group asks for what this group has not reported, where several groups have to (Shared). Otherwise a sent message is
	// one that nobody has reported.
	Group  string
	Shared bool
	// For leaves out messages that were sent, or changed otherwise, less long ago, by the database's clock.
	For time.Duration
}

// SentMessage is a message with the time at which it was marked as sent.
type SentMessage struct {
	Message
	// MarkedAt is the update_time, in whole seconds. Zero when the database can't tell.
	MarkedAt time.Time

	due string // the next_retry_time as the server compares it
}

// scanWindow is how many index entries one query looks at. On an ordinary server that takes 20 to 50 ms.
const scanWindow = 20_000

// lane is one of the two stretches of the index (status, next_retry_time) that hold a table's sent messages: without a
// next_retry_time in the order of their ids, and those that were deferred or refused before, in the order of that time.
type lane struct {
	table outbox.Table
	timed bool
}

// spot is a place in a lane: behind this entry.
type spot struct{ due, id string }

func lanes(tables []Table) []lane {
	all := make([]lane, 0, 2*len(tables))
	for i := range tables {
		all = append(all, lane{table: tables[i].Table}, lane{table: tables[i].Table, timed: true})
	}
	return all
}

// ListUnreported returns sent messages that have not been reported, of each table the ones without a next_retry_time first,
// by id. It looks at no more than so many sent messages; complete tells that there are no others.
func (s *Store) ListUnreported(ctx context.Context, q UnreportedQuery, limit, look int) (found []SentMessage, complete bool, err error) {
	for _, l := range lanes(s.Tables()) {
		var at spot
		for ended := false; !ended; look -= scanWindow {
			if look <= 0 || len(found) >= limit {
				return found, false, nil
			}
			var some []SentMessage
			some, at, ended, err = s.lookOn(ctx, q, l, at, limit-len(found), false)
			if err != nil {
				return nil, false, err
			}
			found = append(found, some...)
		}
	}
	return found, true, nil
}

// UnreportedScan keeps the oldest message that has not been reported. It remembers where it has looked, so that a call looks
// at what has changed since the last one and a last window, not at what the table holds. One goroutine uses it.
type UnreportedScan struct {
	query UnreportedQuery
	spots map[lane]spot
	heads map[lane]*SentMessage
}

// NewUnreportedScan begins at the start of the tables.
func NewUnreportedScan(q UnreportedQuery) *UnreportedScan {
	return &UnreportedScan{query: q, spots: map[lane]spot{}, heads: map[lane]*SentMessage{}}
}

// Restart lets the scan begin anew: a message that was sent late may lie before where it has looked.
func (x *UnreportedScan) Restart() { clear(x.spots); clear(x.heads) }

// OldestUnreported returns the oldest message of the scan's query, with its content, nil when there is none. It looks at
// so many further sent messages at most; complete tells that it has looked at all, so that the answer is certain.
func (s *Store) OldestUnreported(ctx context.Context, x *UnreportedScan, look int) (oldest *SentMessage, complete bool, err error) {
	complete = true
	for _, l := range lanes(s.Tables()) {
		if err := s.dropReported(ctx, x, l); err != nil {
			return nil, false, err
		}
		for ended := false; x.heads[l] == nil && !ended; look -= scanWindow {
			if look <= 0 {
				complete = false
				break
			}
			var found []SentMessage
			var at spot
			found, at, ended, err = s.lookOn(ctx, x.query, l, x.spots[l], 1, true)
			if err != nil {
				return nil, false, err
			}
			// A window is left behind only when it is full and has nothing: messages are not sent exactly in the order of
			// their ids, so the last one is looked at again each time.
			switch {
			case len(found) > 0:
				x.heads[l] = &found[0]
			case !ended:
				x.spots[l] = at
			}
		}
		if head := x.heads[l]; head != nil && (oldest == nil || head.Age > oldest.Age) {
			oldest = head
		}
	}
	return oldest, complete, nil
}

// dropReported forgets a lane's oldest message once it has been reported, and brings its age up to date otherwise.
func (s *Store) dropReported(ctx context.Context, x *UnreportedScan, l lane) error {
	head := x.heads[l]
	if head == nil {
		return nil
	}
	var age sql.NullInt64
	gone := false
	err := s.OnTable(ctx, s.work, "look up rows of", l.table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
		err := conn.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(SECOND,"+t.Col(words.ColumnCreateTime)+",NOW()) FROM "+t.From()+t.ByID()+" WHERE "+
			t.These([]outbox.Ref{head.Ref()})+" AND "+s.unreported(t, x.query)).Scan(&age)
		if gone = errors.Is(err, sql.ErrNoRows); gone {
			return nil
		}
		return err
	})
	if err != nil {
		return err
	}
	if gone {
		delete(x.heads, l)
		return nil
	}
	head.Age = time.Duration(age.Int64) * time.Second
	return nil
}

// unreported renders the condition of a sent message that has not been reported.
func (s *Store) unreported(t *Table, q UnreportedQuery) string {
	parts := []string{t.Col(words.ColumnStatus) + "=" + s.Number(outbox.Sent)}
	if q.Topic != "" {
		parts = append(parts, t.ExactTopic()+"="+mysql.Literal(q.Topic))
	}
	if q.For > 0 {
		parts = append(parts, t.Col(words.ColumnUpdateTime)+"<=NOW()-"+mysql.Interval(q.For))
	}
	if q.Shared {
		parts = append(parts, "NOT EXISTS (SELECT 1 FROM "+outbox.QuoteTable(s.cfg.ackTable(t.Table))+" AS a WHERE a.msg_id=CONVERT("+
			t.From()+"."+t.Col(words.ColumnMsgID)+" USING utf8mb4) COLLATE utf8mb4_bin AND a.consumer_group="+mysql.Literal(q.Group)+")")
	}
	return strings.Join(parts, " AND ")
}

// lookOn looks at the next window of a lane. It returns what it found there, at most limit messages, the place to go on
// from, and whether the lane has ended.
func (s *Store) lookOn(ctx context.Context, q UnreportedQuery, l lane, at spot, limit int, contents bool) (found []SentMessage, next spot, ended bool, err error) {
	err = s.OnTable(ctx, s.scan, "look for unreported rows of", l.table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
		found, next, ended = nil, at, false
		end, n, err := s.windowEnd(ctx, conn, t, l, at)
		if err != nil {
			return err
		}
		if ended = n < scanWindow; n == 0 {
			return nil
		}
		next = end
		stretch := s.stretch(t, l, at) + t.upTo(l, end) + " AND " + s.unreported(t, q)
		found, err = s.readSent(ctx, conn, t, fmt.Sprintf("SELECT %s,UNIX_TIMESTAMP(%s),COALESCE(CONCAT(%s),'') FROM %s%s WHERE %s ORDER BY %s LIMIT %d",
			t.MessageList(contents), t.Col(words.ColumnUpdateTime), t.Col(words.ColumnNextRetryTime), t.From(), t.ByDue(), stretch, t.order(l), limit))
		if len(found) == limit {
			last := &found[limit-1]
			next, ended = spot{due: last.due, id: t.FormatID(last.ID)}, false
		}
		return err
	})
	return found, next, ended, err
}

// windowEnd finds the last entry of the next window and how many it has. The index alone tells.
func (s *Store) windowEnd(ctx context.Context, conn *sql.Conn, t *Table, l lane, at spot) (end spot, n int, err error) {
	due := t.Col(words.ColumnNextRetryTime)
	rows, err := conn.QueryContext(ctx, fmt.Sprintf("SELECT COALESCE(CONCAT(%s),''),%s FROM %s%s WHERE %s ORDER BY %s LIMIT %d",
		due, t.Col(words.ColumnID), t.From(), t.ByDue(), s.stretch(t, l, at), t.order(l), scanWindow))
	if err != nil {
		return end, 0, err
	}
	defer closeRows(rows)
	var id, text sql.RawBytes
	for ; rows.Next(); n++ {
		if err := rows.Scan(&text, &id); err != nil {
			return end, 0, err
		}
		end = spot{due: string(text), id: string(id)}
	}
	return end, n, rows.Err()
}

// order is the lane's, as the index has it.
func (t *Table) order(l lane) string {
	if l.timed {
		return t.Col(words.ColumnNextRetryTime) + "," + t.Col(words.ColumnID)
	}
	return t.Col(words.ColumnID)
}

// stretch renders the lane behind a place.
func (s *Store) stretch(t *Table, l lane, at spot) string {
	due, id := t.Col(words.ColumnNextRetryTime), t.Col(words.ColumnID)
	sent := t.Col(words.ColumnStatus) + "=" + s.Number(outbox.Sent) + " AND " + due
	switch {
	case !l.timed && at.id == "":
		return sent + " IS NULL"
	case !l.timed:
		return sent + " IS NULL AND " + id + ">" + at.id
	case at.id == "":
		return sent + " IS NOT NULL"
	}
	return sent + ">=" + mysql.Literal(at.due) + " AND (" + due + ">" + mysql.Literal(at.due) + " OR " + id + ">" + at.id + ")"
}

// upTo renders the end of a window.
func (t *Table) upTo(l lane, end spot) string {
	due, id := t.Col(words.ColumnNextRetryTime), t.Col(words.ColumnID)
	if !l.timed {
		return " AND " + id + "<=" + end.id
	}
	return " AND " + due + "<=" + mysql.Literal(end.due) + " AND (" + due + "<" + mysql.Literal(end.due) + " OR " + id + "<=" + end.id + ")"
}

// readSent runs a query whose columns are messageList's, and the times of update_time and next_retry_time.
func (s *Store) readSent(ctx context.Context, conn *sql.Conn, t *Table, query string) (found []SentMessage, err error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	for rows.Next() {
		var m SentMessage
		var marked sql.NullFloat64
		if m.Message, err = s.ScanMessage(rows, t, &marked, &m.due); err != nil {
			return nil, err
		}
		if marked.Float64 > 0 {
			m.MarkedAt = time.Unix(int64(marked.Float64), 0)
		}
		found = append(found, m)
	}
	return found, rows.Err()
}
