package acks

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
	"example.com/outbox-relay/store"
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
	store.Message
	// MarkedAt is the update_time, in whole seconds. Zero when the database can't tell.
	MarkedAt time.Time

	due string // the next_retry_time, for a store.Spot
}

// scanWindow is how many index entries one query looks at. On an ordinary server that takes 20 to 50 ms.
const scanWindow = 20_000

// lane is one of the two lanes of a table's sent messages.
type lane struct {
	table outbox.Table
	store.Lane
}

func lanes(tables []store.Table) []lane {
	all := make([]lane, 0, 2*len(tables))
	for i := range tables {
		for _, timed := range []bool{false, true} {
			all = append(all, lane{table: tables[i].Table, Lane: store.Lane{Status: outbox.Sent, Timed: timed}})
		}
	}
	return all
}

// ListUnreported returns sent messages that have not been reported, of each table the ones without a next_retry_time first,
// by id. It looks at no more than so many sent messages; complete tells that there are no others.
func (a *Acks) ListUnreported(ctx context.Context, q UnreportedQuery, limit, look int) (found []SentMessage, complete bool, err error) {
	for _, l := range lanes(a.store.Tables()) {
		var at store.Spot
		for ended := false; !ended; look -= scanWindow {
			if look <= 0 || len(found) >= limit {
				return found, false, nil
			}
			var some []SentMessage
			some, at, ended, err = a.lookOn(ctx, q, l, at, limit-len(found), false)
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
	spots map[lane]store.Spot
	heads map[lane]*SentMessage
}

// NewUnreportedScan begins at the start of the tables.
func NewUnreportedScan(q UnreportedQuery) *UnreportedScan {
	return &UnreportedScan{query: q, spots: map[lane]store.Spot{}, heads: map[lane]*SentMessage{}}
}

// Restart lets the scan begin anew: a message that was sent late may lie before where it has looked.
func (x *UnreportedScan) Restart() { clear(x.spots); clear(x.heads) }

// OldestUnreported returns the oldest message of the scan's query, with its content, nil when there is none. It looks at
// so many further sent messages at most; complete tells that it has looked at all, so that the answer is certain.
func (a *Acks) OldestUnreported(ctx context.Context, x *UnreportedScan, look int) (oldest *SentMessage, complete bool, err error) {
	complete = true
	for _, l := range lanes(a.store.Tables()) {
		if err := a.dropReported(ctx, x, l); err != nil {
			return nil, false, err
		}
		for ended := false; x.heads[l] == nil && !ended; look -= scanWindow {
			if look <= 0 {
				complete = false
				break
			}
			var found []SentMessage
			var at store.Spot
			found, at, ended, err = a.lookOn(ctx, x.query, l, x.spots[l], 1, true)
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
func (a *Acks) dropReported(ctx context.Context, x *UnreportedScan, l lane) error {
	head := x.heads[l]
	if head == nil {
		return nil
	}
	var age sql.NullInt64
	gone := false
	err := a.store.OnTable(ctx, a.store.Work(), "look up rows of", l.table, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
		err := conn.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(SECOND,"+t.Col(words.ColumnCreateTime)+",NOW()) FROM "+t.From()+t.ByID()+" WHERE "+
			t.These([]outbox.Ref{head.Ref()})+" AND "+a.unreported(t, x.query)).Scan(&age)
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
func (a *Acks) unreported(t *store.Table, q UnreportedQuery) string {
	parts := []string{t.Col(words.ColumnStatus) + "=" + a.store.Number(outbox.Sent)}
	if q.Topic != "" {
		parts = append(parts, t.ExactTopic()+"="+mysql.Literal(q.Topic))
	}
	if q.For > 0 {
		parts = append(parts, t.Col(words.ColumnUpdateTime)+"<=NOW()-"+mysql.Interval(q.For))
	}
	if q.Shared {
		parts = append(parts, "NOT EXISTS (SELECT 1 FROM "+outbox.QuoteTable(a.cfg.of(t.Table))+" AS a WHERE a.msg_id=CONVERT("+
			t.From()+"."+t.Col(words.ColumnMsgID)+" USING utf8mb4) COLLATE utf8mb4_bin AND a.consumer_group="+mysql.Literal(q.Group)+")")
	}
	return strings.Join(parts, " AND ")
}

// lookOn looks at the next window of a lane. It returns what it found there, at most limit messages, the place to go on
// from, and whether the lane has ended.
func (a *Acks) lookOn(ctx context.Context, q UnreportedQuery, l lane, at store.Spot, limit int, contents bool) (found []SentMessage, next store.Spot, ended bool, err error) {
	err = a.store.OnTable(ctx, a.store.Scan(), "look for unreported rows of", l.table, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
		found, next, ended = nil, at, false
		end, n, err := a.windowEnd(ctx, conn, t, l, at)
		if err != nil {
			return err
		}
		if ended = n < scanWindow; n == 0 {
			return nil
		}
		next = end
		stretch := a.store.Behind(t, l.Lane, at) + " AND " + t.UpTo(l.Lane, end) + " AND " + a.unreported(t, q)
		found, err = a.readSent(ctx, conn, t, fmt.Sprintf("SELECT %s,UNIX_TIMESTAMP(%s),COALESCE(CONCAT(%s),'') FROM %s%s WHERE %s ORDER BY %s LIMIT %d",
			t.MessageList(contents), t.Col(words.ColumnUpdateTime), t.Col(words.ColumnNextRetryTime), t.From(), t.ByDue(), stretch, t.Order(l.Lane), limit))
		if len(found) == limit {
			last := &found[limit-1]
			next, ended = store.SpotAt(last.ID, last.due), false
		}
		return err
	})
	return found, next, ended, err
}

// windowEnd finds the last entry of the next window and how many it has. The index alone tells.
func (a *Acks) windowEnd(ctx context.Context, conn *sql.Conn, t *store.Table, l lane, at store.Spot) (end store.Spot, n int, err error) {
	next := t.Col(words.ColumnNextRetryTime)
	rows, err := conn.QueryContext(ctx, fmt.Sprintf("SELECT COALESCE(CONCAT(%s),''),%s FROM %s%s WHERE %s ORDER BY %s LIMIT %d",
		next, t.Col(words.ColumnID), t.From(), t.ByDue(), a.store.Behind(t, l.Lane, at), t.Order(l.Lane), scanWindow))
	if err != nil {
		return end, 0, err
	}
	defer closeRows(rows)
	var due, id string // of the last row
	for ; rows.Next(); n++ {
		if err := rows.Scan(&due, &id); err != nil {
			return end, 0, err
		}
	}
	if err := rows.Err(); err != nil || n == 0 {
		return end, 0, err
	}
	number, err := t.ParseID(id)
	return store.SpotAt(number, due), n, err
}

// readSent runs a query whose columns are messageList's, and the times of update_time and next_retry_time.
func (a *Acks) readSent(ctx context.Context, conn *sql.Conn, t *store.Table, query string) (found []SentMessage, err error) {
	rows, err := conn.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	for rows.Next() {
		var m SentMessage
		var marked sql.NullFloat64
		if m.Message, err = a.store.ScanMessage(rows, t, &marked, &m.due); err != nil {
			return nil, err
		}
		if marked.Float64 > 0 {
			m.MarkedAt = time.Unix(int64(marked.Float64), 0)
		}
		found = append(found, m)
	}
	return found, rows.Err()
}
