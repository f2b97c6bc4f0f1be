package inbox_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/outbox"
)

var db *sql.DB // the service's pool

func ExampleInbox_Do() {
	ctx := context.Background()
	in, err := inbox.New(db, inbox.Config{Group: "points"})
	if err != nil {
		return
	}
	result, err := in.Do(ctx, inbox.Delivery{ID: "order-4711-paid"}, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "UPDATE account SET points = points + 10 WHERE id = 7")
		return err
	})
	switch {
	case errors.Is(err, inbox.ErrUnknown):
		// Deliver it again: the record tells whether it was committed.
	case err != nil:
		// Nothing was committed.
	case result == inbox.Duplicate:
		// It was handled before.
	}
}

func ExampleInbox_First() {
	ctx := context.Background()
	in, err := inbox.New(db, inbox.Config{Group: "points"})
	if err != nil {
		return
	}
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return
	}
	defer tx.Rollback() //nolint:errcheck // after the commit it does nothing
	first, err := in.First(ctx, tx, "order-4711-paid")
	if err != nil || !first {
		return
	}
	if _, err := tx.ExecContext(ctx, "UPDATE account SET points = points + 10 WHERE id = 7"); err != nil {
		return
	}
	_ = tx.Commit()
}

func ExampleInbox_Emit() {
	ctx := context.Background()
	box, err := outbox.New(outbox.Config{})
	if err != nil {
		return
	}
	in, err := inbox.New(db, inbox.Config{Group: "points", Outbox: box})
	if err != nil {
		return
	}
	_, _ = in.Do(ctx, inbox.Delivery{ID: "order-4711-paid"}, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "UPDATE account SET points = points + 10 WHERE id = 7"); err != nil {
			return err
		}
		_, err := in.Emit(ctx, tx, outbox.Message{Topic: "points-credited", Key: "7", Body: map[string]int{"points": 10}})
		return err
	})
}

func ExampleInbox_Purge() {
	ctx := context.Background()
	in, err := inbox.New(db, inbox.Config{Group: "points"})
	if err != nil {
		return
	}
	// The topic keeps messages for three days, the binlog for one, and nobody goes further back by hand.
	done, err := in.Purge(ctx, inbox.PurgeOptions{Replays: 3 * 24 * time.Hour})
	_, _ = done.Rows, err
}

func ExampleRetryAfter() {
	err := inbox.RetryAfter(30*time.Second, errors.New("the bank is busy"))
	d, ok := inbox.RetryDelay(fmt.Errorf("pay: %w", err))
	fmt.Println(d, ok, inbox.IsPermanent(err))
	// Output: 30s true false
}

func ExamplePermanent() {
	err := fmt.Errorf("read the body: %w", inbox.Permanent(errors.New("no JSON")))
	fmt.Println(err, inbox.IsPermanent(err))
	// Output: read the body: no JSON true
}

func ExampleSchema() {
	fmt.Println(inbox.Schema(inbox.SchemaOptions{}))
	// Output:
	// CREATE TABLE `consumed_message` (
	//   consumer_group VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	//   msg_id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
	//   topic VARCHAR(249) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
	//   partition_no INT NULL,
	//   record_offset BIGINT NULL,
	//   consumed_at DATETIME(3) NOT NULL,
	//   PRIMARY KEY (consumer_group, msg_id),
	//   KEY idx_group_consumed (consumer_group, consumed_at)
	// )
}
