package store

import (
	"context"
	"database/sql"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// MarkSent moves rows to sent, if they are still pending or failed. Call it only for rows whose record Kafka has acked
// with acks=all. It waits for a row that is in the binlog but not yet readable, and may be repeated. The number of rows
// that the server says it changed is for metrics only.
func (s *Store) MarkSent(ctx context.Context, refs []outbox.Ref) (changed int64, err error) {
	return s.Update(ctx, s.marks, "mark rows sent in", refs, s.open(), func(t *Table) string {
		return s.Becomes(t, outbox.Sent) + "," + t.Touched()
	})
}

// Failure is one message that could not be sent, and what follows from it.
type Failure struct {
	outbox.Ref
	// Delay is how long to wait before the next try.
	Delay time.Duration
	// Error is kept in last_error where the table has it. It must hold no payload.
	Error string
	// MaxRetries is how many failures a message may have; one more and it is dead.
	MaxRetries int
	// Memory makes it safe to repeat MarkFailed after an error: give each failure one, and the same again. Without it a
	// repeated call counts the failure again, if only the answer to the first was lost.
	Memory *Memory
}

// Memory is how the row of a failure stood when MarkFailed first looked at it. Its zero value has not looked yet; it is for
// one caller at a time.
type Memory struct {
	looked  bool
	retries int64
	// closed tells that the row was no longer the relay's.
	closed bool
}

// look remembers the row as it stands now, unless it was remembered before.
func (m *Memory) look(now counted) {
	if !m.looked {
		*m = Memory{looked: true, retries: now.retries, closed: !now.open}
	}
}

// MarkFailed counts a failure of each message: it becomes failed and due after its delay, or dead when its retries are
// spent. Rows that are no longer pending or failed are left alone. It returns the messages that became dead. It may be
// repeated with failures that have a Memory.
func (s *Store) MarkFailed(ctx context.Context, failures []Failure) ([]outbox.Ref, error) {
	var dead []outbox.Ref
	for _, g := range failuresByTable(failures) {
		some, err := s.failSome(ctx, g)
		if err != nil {
			return dead, err
		}
		dead = append(dead, some...)
	}
	return dead, nil
}

// failSome counts the failures of one batch in one transaction. When the answer to a commit is lost the batch is tried
// again, and the retry_count that the first try saw tells whether its work has been done. That is what Memory keeps.
func (s *Store) failSome(ctx context.Context, g failureGroup) (dead []outbox.Ref, err error) {
	err = s.OnTable(ctx, s.work, "mark rows failed in", g.table, func(ctx context.Context, conn *sql.Conn, t *Table) error {
		return mysql.Transact(ctx, conn, func(tx *sql.Tx) (err error) {
			dead, err = s.failIn(ctx, tx, t, g.failures)
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	return dead, nil
}

// failIn counts failures inside a transaction.
func (s *Store) failIn(ctx context.Context, tx *sql.Tx, t *Table, failures []Failure) (dead []outbox.Ref, err error) {
	counts, err := s.lockCounts(ctx, tx, t, failures)
	if err != nil {
		return nil, err
	}
	for _, f := range failures {
		now, ok := counts[f.Ref]
		if !ok {
			continue
		}
		f.Memory.look(now)
		if f.Memory.closed {
			continue
		}
		spent := f.Memory.retries+1 > int64(f.MaxRetries)
		if spent {
			dead = append(dead, f.Ref)
		}
		if now.retries > f.Memory.retries || !now.open {
			continue // done by the try whose answer was lost
		}
		if err := s.countFailure(ctx, tx, t, f, spent); err != nil {
			return nil, err
		}
	}
	return dead, nil
}

// counted is what MarkFailed needs to know of a row.
type counted struct {
	retries int64
	open    bool
}

// lockCounts locks the rows and reads how often each has failed. Rows of other statuses are left out, but for the ones
// that an unanswered try of this same call has made dead.
func (s *Store) lockCounts(ctx context.Context, tx *sql.Tx, t *Table, failures []Failure) (map[outbox.Ref]counted, error) {
	refs := make([]outbox.Ref, len(failures))
	for i, f := range failures {
		refs[i] = f.Ref
	}
	found := map[outbox.Ref]counted{}
	status := t.Col(words.ColumnStatus)
	query := "SELECT " + t.Col(words.ColumnID) + "," + t.Col(words.ColumnMsgID) + ",COALESCE(" + t.Col(words.ColumnRetryCount) + ",0)," + status + " IN (" + s.open() + ") FROM " +
		t.From() + t.ByID() + " WHERE " + t.Col(words.ColumnID) + " IN (" + t.IDs(refs) + ") AND " + status + " IN (" + s.open() + "," +
		strconv.Itoa(s.number(outbox.Dead)) + ") FOR UPDATE"
	rows, err := tx.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer closeRows(rows)
	for rows.Next() {
		var id, msgID sql.RawBytes
		var c counted
		if err := rows.Scan(&id, &msgID, &c.retries, &c.open); err != nil {
			return nil, err
		}
		number, err := t.ParseID(string(id))
		if err != nil {
			return nil, err
		}
		ref := outbox.Ref{Table: failures[0].Table, ID: number, MsgID: string(msgID)}
		found[ref] = c
	}
	return found, rows.Err()
}

func (s *Store) countFailure(ctx context.Context, tx *sql.Tx, t *Table, f Failure, dead bool) error {
	set := []string{s.Becomes(t, outbox.Failed), t.nextRetry().set(dueIn(f.Delay))}
	if dead {
		set = []string{s.Becomes(t, outbox.Dead), t.nextRetry().set(noTime)}
	}
	set = append(set, t.Col(words.ColumnRetryCount)+"=COALESCE("+t.Col(words.ColumnRetryCount)+",0)+1", t.Touched())
	if t.HasLastError {
		set = append(set, t.Col(words.ColumnLastError)+"="+mysql.Literal(t.FitError(f.Error)))
	}
	_, err := tx.ExecContext(ctx, "UPDATE "+t.From()+t.ByID()+" SET "+strings.Join(set, ",")+" WHERE "+t.These([]outbox.Ref{f.Ref})+
		" AND "+t.Col(words.ColumnStatus)+" IN ("+s.open()+")")
	return err
}

// MarkDead moves messages that can never be sent to dead, with the reason. A person decides about them.
func (s *Store) MarkDead(ctx context.Context, failures []Failure) error {
	for _, f := range failures {
		_, err := s.Update(ctx, s.work, "mark rows dead in", []outbox.Ref{f.Ref}, s.open(), func(t *Table) string {
			set := s.Becomes(t, outbox.Dead) + "," + t.nextRetry().set(noTime) + "," + t.Touched()
			if t.HasLastError {
				set += "," + t.Col(words.ColumnLastError) + "=" + mysql.Literal(t.FitError(f.Error))
			}
			return set
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// FitError cuts a text to what the last_error column takes, and makes it valid UTF-8.
func (t *Table) FitError(text string) string {
	text = strings.ToValidUTF8(text, "?")
	limit := int(t.cols[words.ColumnLastError].Chars)
	if strings.HasSuffix(t.cols[words.ColumnLastError].Type, "text") {
		limit /= 4 // the length is in bytes here
	}
	if limit <= 0 || utf8.RuneCountInString(text) <= limit {
		return text
	}
	return string([]rune(text)[:limit])
}

// failureGroup is the failures of one table, few enough for one transaction.
type failureGroup struct {
	table    outbox.Table
	failures []Failure
}

func failuresByTable(failures []Failure) []failureGroup {
	const most = 200 // each is one UPDATE in the transaction
	index := map[outbox.Table]int{}
	var groups []failureGroup
	for _, f := range failures {
		if f.Memory == nil {
			f.Memory = new(Memory) // the store itself tries more than once
		}
		i, ok := index[f.Table]
		if !ok || len(groups[i].failures) == most {
			i = len(groups)
			index[f.Table] = i
			groups = append(groups, failureGroup{table: f.Table})
		}
		groups[i].failures = append(groups[i].failures, f)
	}
	return groups
}
