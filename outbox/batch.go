package outbox

import (
	"context"
	"fmt"
	"strconv"
)

// PutAll writes messages in their order within the caller's transaction, in one INSERT for up to Config.ChunkRows messages and
// Config.ChunkBytes bytes, and returns a receipt for each. All are checked before the first is sent. A chunk with an ID of the
// caller's costs a second round trip, which tells duplicates; it is a consistent read, so a REPEATABLE READ transaction has
// its snapshot from then on. An ID that occurs twice among the messages is a duplicate the second time. On an error some may
// have been written: the caller must roll back.
func (b *Box) PutAll(ctx context.Context, tx Execer, messages []Message) ([]Receipt, error) {
	if err := b.CheckTx(tx); err != nil {
		return nil, fmt.Errorf("put %d messages: %w", len(messages), err)
	}
	drafts, wants, err := b.drafts(ctx, messages)
	if err != nil || len(messages) == 0 {
		return nil, err
	}
	s, err := b.shape(ctx, tx, wants)
	if err != nil {
		return nil, fmt.Errorf("put %d messages: %w", len(messages), err)
	}
	for i := range drafts {
		if err := b.fit(&drafts[i], s); err != nil {
			return nil, fmt.Errorf("message %d of %d, %s: %w", i+1, len(messages), subject(&messages[i]), err)
		}
	}
	receipts := make([]Receipt, len(drafts))
	fresh := markTwins(drafts, receipts)
	for len(fresh) > 0 {
		n := b.chunk(drafts, fresh)
		if err := b.writeChunk(ctx, tx, drafts, fresh[:n], receipts); err != nil {
			return nil, fmt.Errorf("put messages %d to %d of %d: %w", fresh[0]+1, fresh[n-1]+1, len(messages), err)
		}
		fresh = fresh[n:]
	}
	return receipts, nil
}

// drafts prepares all messages, or tells the first that can't be.
func (b *Box) drafts(ctx context.Context, messages []Message) ([]draft, variant, error) {
	drafts := make([]draft, len(messages))
	var wants variant
	for i := range messages {
		d, err := b.draft(ctx, &messages[i])
		if err != nil {
			return nil, 0, fmt.Errorf("message %d of %d, %s: %w", i+1, len(messages), subject(&messages[i]), err)
		}
		drafts[i] = d
		wants |= d.wants
	}
	return drafts, wants, nil
}

// markTwins fills in the receipts and returns the indexes of what is to be written: all but those whose ID came before.
func markTwins(drafts []draft, receipts []Receipt) []int {
	fresh := make([]int, 0, len(drafts))
	seen := map[string]bool{}
	for i := range drafts {
		receipts[i].ID = drafts[i].id
		if drafts[i].wants&once != 0 {
			if seen[drafts[i].id] {
				receipts[i].Duplicate = true
				continue
			}
			seen[drafts[i].id] = true
		}
		fresh = append(fresh, i)
	}
	return fresh
}

// chunk returns how many of the messages go into the next statement.
func (b *Box) chunk(drafts []draft, indexes []int) int {
	bytes := 0
	for n, i := range indexes {
		bytes += drafts[i].size()
		if n > 0 && (n == b.cfg.ChunkRows || bytes > b.cfg.ChunkBytes) {
			return n
		}
	}
	return len(indexes)
}

func (b *Box) writeChunk(ctx context.Context, tx Execer, drafts []draft, indexes []int, receipts []Receipt) (err error) {
	var wants variant
	for _, i := range indexes {
		wants |= drafts[i].wants
	}
	queryer, canAsk := tx.(Queryer)
	if len(indexes) == 1 || wants&once != 0 && !canAsk {
		for _, i := range indexes {
			if receipts[i], err = b.write(ctx, tx, &drafts[i]); err != nil {
				return err
			}
		}
		return nil
	}
	args := make([]any, 0, maxArgs*len(indexes))
	for _, i := range indexes {
		args = drafts[i].args(args, wants)
	}
	result, err := tx.ExecContext(ctx, b.batch(wants, len(indexes)), args...)
	if err != nil {
		b.known.Store(nil) // a column may be gone
		return err
	}
	if wants&once == 0 {
		return nil
	}
	first, err := result.LastInsertId()
	if err != nil {
		return fmt.Errorf("which were duplicates? %w", err)
	}
	found, err := b.found(ctx, queryer, drafts, indexes, first)
	if err != nil {
		return fmt.Errorf("which were duplicates? %w", err)
	}
	return b.settle(ctx, tx, drafts, indexes, found, receipts)
}

// settle fills in what was a duplicate. Where a message can't be seen in the table, a row is in the way that is spelled otherwise, was
// committed after this transaction's snapshot, or has the same value in another unique key: another INSERT of it alone
// tells. So does one of a message whose id was made just now.
func (b *Box) settle(ctx context.Context, tx Execer, drafts []draft, indexes []int, found map[string]bool, receipts []Receipt) (err error) {
	for _, i := range indexes {
		ours, visible := found[drafts[i].id]
		if ours || visible && drafts[i].wants&once != 0 {
			receipts[i].Duplicate = !ours
			continue
		}
		if receipts[i], err = b.write(ctx, tx, &drafts[i]); err != nil {
			return err
		}
	}
	return nil
}

// found looks up the rows of a statement: true for those that it has inserted, false for those that were there. The server reserves
// the ids of one statement in one go, from the first on; no other transaction can have one of them.
func (b *Box) found(ctx context.Context, tx Queryer, drafts []draft, indexes []int, first int64) (map[string]bool, error) {
	args := make([]any, len(indexes))
	for n, i := range indexes {
		args[n] = drafts[i].id
	}
	rows, err := tx.QueryContext(ctx, b.find(len(indexes)), args...)
	if err != nil {
		return nil, err
	}
	defer rows.Close() //nolint:errcheck // rows.Err has what matters
	ids, step := make(map[string]string, len(indexes)), uint64(1)
	for rows.Next() {
		var id, msgID string
		if err := rows.Scan(&id, &msgID, &step); err != nil {
			return nil, err
		}
		ids[msgID] = id
	}
	if err := rows.Err(); err != nil {
		return nil, err
	}
	found, reach := make(map[string]bool, len(ids)), step*b.reach(drafts, indexes, ids, first)
	for msgID, text := range ids {
		id, err := strconv.ParseUint(text, 10, 64)
		found[msgID] = err == nil && first > 0 && id >= uint64(first) && id-uint64(first) < reach
	}
	return found, nil
}

// reach returns how many ids the statement can have used from the first on. The rows before the one that got the first id were
// duplicates, and may have used up an id each.
func (b *Box) reach(drafts []draft, indexes []int, ids map[string]string, first int64) uint64 {
	text := strconv.FormatInt(first, 10)
	for n, i := range indexes {
		if ids[drafts[i].id] == text {
			return uint64(len(indexes) - n)
		}
	}
	return uint64(len(indexes))
}
