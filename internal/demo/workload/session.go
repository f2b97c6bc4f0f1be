package workload

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"time"

	"example.com/outbox-relay/internal/oracle"
)

// session is one of the writers.
type session struct {
	w   *Writer
	gen generator
	due time.Time // when the next transaction may start, at a bounded rate
}

// retryPause is how long a writer waits after a failed transaction: the server may be away.
const retryPause = 50 * time.Millisecond

func (s *session) run(ctx context.Context) error {
	for ctx.Err() == nil && s.w.begin() {
		rollback := s.gen.chance(s.w.cfg.Rollbacks)
		size := s.gen.size()
		taken := 0
		if !rollback {
			if taken = s.w.take(size); taken == 0 {
				return nil
			}
			size = taken
		}
		if !s.pace(ctx, size) {
			return nil
		}
		committed, err := s.transaction(ctx, size, rollback)
		if gaveUp := s.w.done(taken, committed, err); gaveUp != nil {
			return gaveUp
		}
		if err != nil {
			s.due = time.Now().Add(retryPause)
			if !pause(ctx, retryPause) {
				return nil
			}
		}
	}
	return nil
}

// pace waits for this writer's turn. A writer that has fallen far behind does not catch up by a burst.
func (s *session) pace(ctx context.Context, rows int) bool {
	if s.w.cfg.Rate == 0 {
		return true
	}
	now := time.Now()
	if s.due.Before(now.Add(-time.Second)) {
		s.due = now
	}
	wait := s.due.Sub(now)
	s.due = s.due.Add(time.Duration(float64(rows) * float64(s.w.cfg.Writers) / s.w.cfg.Rate * float64(time.Second)))
	return wait <= 0 || pause(ctx, wait)
}

// pause reports false when the context ended first.
func pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// transaction does one and enters it into the ledger. Its statements do not end with ctx: whoever stops the run should
// not leave outcomes unknown.
//
// Until COMMIT is sent any failure means rolled back for certain. An error from COMMIT, even the server's own, is taken
// for unknown: a server that goes down may have written the binlog already.
func (s *session) transaction(ctx context.Context, size int, rollback bool) (committed int, err error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.w.cfg.TxnTimeout)
	defer cancel()
	txn := oracle.Transaction{Outcome: oracle.RolledBack, Begun: time.Now()}
	tx, err := s.w.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, fmt.Errorf("begin: %w", err)
	}
	err = s.fill(ctx, tx, &txn, size)
	if err != nil || rollback {
		_ = tx.Rollback() // whether it arrives or not: nothing was committed
		return 0, s.enter(txn, err)
	}
	txn.Sent = time.Now()
	err = tx.Commit()
	txn.Done = time.Now()
	if err != nil {
		txn.Outcome = oracle.Unknown
		s.gen.generation++
		return len(txn.Messages), s.enter(txn, fmt.Errorf("commit: %w", err))
	}
	txn.Outcome = oracle.Committed
	return len(txn.Messages), s.enter(txn, nil)
}

func (s *session) enter(txn oracle.Transaction, err error) error {
	if broken := s.w.ledger.Add(txn); broken != nil {
		return broken
	}
	return err
}

// fill writes the business row and the messages, and sometimes some more that a savepoint takes back.
func (s *session) fill(ctx context.Context, tx *sql.Tx, txn *oracle.Transaction, size int) error {
	if s.w.cfg.Orders != "" {
		_, err := tx.ExecContext(ctx, `INSERT INTO `+quote(s.w.cfg.Orders)+` (order_no, amount, note, create_time) VALUES (?, ?, ?, NOW())`,
			fmt.Sprintf("%s-%d-%d", s.w.cfg.Prefix, s.gen.writer, s.gen.made), s.gen.rnd.IntN(10_000), texts[s.gen.rnd.IntN(len(texts))])
		if err != nil {
			return fmt.Errorf("insert order: %w", err)
		}
	}
	before := size
	savepoint := s.gen.chance(s.w.cfg.Savepoints)
	if savepoint {
		before = s.gen.rnd.IntN(size + 1)
	}
	if err := s.insert(ctx, tx, &txn.Messages, before); err != nil || !savepoint {
		return err
	}
	if _, err := tx.ExecContext(ctx, "SAVEPOINT s1"); err != nil {
		return fmt.Errorf("savepoint: %w", err)
	}
	if err := s.insert(ctx, tx, &txn.Undone, 1+s.gen.rnd.IntN(3)); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "ROLLBACK TO SAVEPOINT s1"); err != nil {
		return fmt.Errorf("rollback to savepoint: %w", err)
	}
	return s.insert(ctx, tx, &txn.Messages, size-before)
}

// insert writes n new messages in statements of several rows, a statement for each run of rows of one table.
func (s *session) insert(ctx context.Context, tx *sql.Tx, into *[]oracle.Message, n int) error {
	now := time.Now()
	var rows []draft
	limit := 1 + s.gen.rnd.IntN(s.w.cfg.Batch)
	for range n {
		d, err := s.gen.next(now)
		if err != nil {
			return err
		}
		if len(rows) > 0 && (len(rows) == limit || rows[0].Table != d.Table) {
			if err := s.statement(ctx, tx, rows); err != nil {
				return err
			}
			rows = rows[:0]
		}
		rows = append(rows, d)
		*into = append(*into, d.Message)
	}
	if len(rows) == 0 {
		return nil
	}
	return s.statement(ctx, tx, rows)
}

func (s *session) statement(ctx context.Context, tx *sql.Tx, rows []draft) error {
	columns, tuple := "msg_id, topic, msg_content, status, next_retry_time, create_time, update_time", "(?, ?, ?, 0, FROM_UNIXTIME(?), NOW(), NOW()"
	key, headers := s.w.cfg.Key == KeyColumn, s.w.cfg.Headers > 0
	if key {
		columns, tuple = columns+", msg_key", tuple+", ?"
	}
	if headers {
		columns, tuple = columns+", headers, trace_parent", tuple+", ?, ?"
	}
	if s.w.cfg.Staged > 0 {
		columns, tuple = columns+", body_ref", tuple+", ?"
	}
	args := make([]any, 0, 8*len(rows))
	for i := range rows {
		d := &rows[i]
		var due any
		if !d.Due.IsZero() {
			due = d.Due.Unix()
		}
		content, ref := d.content, ""
		if d.staged {
			place, err := s.w.cfg.Stage(ctx, d.MsgID, []byte(content))
			if err != nil {
				return fmt.Errorf("stage a body: %w", err)
			}
			content, ref = "", place.String()
		}
		args = append(args, d.MsgID, d.Topic, content, due)
		if key {
			args = append(args, null(d.key))
		}
		if headers {
			args = append(args, null(d.headers), null(d.trace))
		}
		if s.w.cfg.Staged > 0 {
			args = append(args, null(ref))
		}
	}
	_, err := tx.ExecContext(ctx, `INSERT INTO `+quote(rows[0].Table)+` (`+columns+`) VALUES `+
		strings.Repeat(tuple+"), ", len(rows)-1)+tuple+")", args...)
	if err != nil {
		return fmt.Errorf("insert messages: %w", err)
	}
	return nil
}

// null turns "" into NULL.
func null(s string) any {
	if s == "" {
		return nil
	}
	return s
}
