package outbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"example.com/outbox-relay/outbox"
)

// A business row and its message, both or neither.
func Example() {
	pay := func(ctx context.Context, db *sql.DB, order string) error {
		return outbox.Within(ctx, db, func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "UPDATE orders SET paid = 1 WHERE number = ?", order); err != nil {
				return err
			}
			receipt, err := outbox.Put(ctx, tx, outbox.Message{
				ID: "order-" + order + "-paid", Topic: "orders", Key: order, Body: map[string]string{"order_id": order},
			})
			if receipt.Duplicate {
				fmt.Println("announced before")
			}
			return err
		})
	}
	_ = pay
}

// A service keeps one Box for each table.
func ExampleNew() {
	box, err := outbox.New(outbox.Config{
		Table:  outbox.Table{Name: "outbox_events"},
		Limits: outbox.Limits{Body: 1 << 20}, // the column is a MEDIUMTEXT
		Text:   true,                         // bodies may be XML
	})
	fmt.Println(box != nil, err)
	_, err = outbox.New(outbox.Config{ChunkRows: -1})
	fmt.Println(err)
	// Output:
	// true <nil>
	// outbox: ChunkRows is -1 and may be 0 (the default) to 8000
}

// What a message becomes, without a database.
func ExampleBox_Row() {
	box, err := outbox.New(outbox.Config{})
	if err != nil {
		panic(err)
	}
	row, err := box.Row(context.Background(), outbox.Message{
		ID: "order-4711-paid", Topic: "orders", Key: "4711",
		Body:    struct{ Amount int }{100},
		Headers: map[string]string{"tenant": "eu"},
	})
	fmt.Printf("%s %s %s %s %s %v\n", row.MsgID, row.Topic, row.Key, row.Content, row.Headers, err)
	// Output:
	// order-4711-paid orders 4711 {"Amount":100} {"tenant":"eu"} <nil>
}

// A message that could never be sent is refused before anything is written, with everything that is wrong with it.
func ExampleInvalidError() {
	box, err := outbox.New(outbox.Config{})
	if err != nil {
		panic(err)
	}
	_, err = box.Row(context.Background(), outbox.Message{
		Topic: "order paid", Body: json.RawMessage(`{"amount":}`), NotBefore: time.Now(),
	})
	fmt.Println(errors.Is(err, outbox.ErrInvalid))
	fmt.Println(err)
	// Output:
	// true
	// message without a sound id and topic: Topic may have only ASCII letters, digits, dot, underscore and hyphen; Body is no JSON from byte 11 on; set Config.Text to send other text
}

// The table with the optional columns for the key and the headers.
func ExampleSchema() {
	fmt.Println(outbox.Schema(outbox.Table{Name: "local_message"}, outbox.SchemaOptions{Key: true, Headers: true, IfNotExists: true}))
	// Output:
	// CREATE TABLE IF NOT EXISTS `local_message` (
	//   `id` BIGINT PRIMARY KEY AUTO_INCREMENT,
	//   `msg_id` VARCHAR(64) NOT NULL,
	//   `topic` VARCHAR(64) NOT NULL,
	//   `msg_content` TEXT NOT NULL,
	//   `status` TINYINT NOT NULL,
	//   `retry_count` INT DEFAULT 0,
	//   `next_retry_time` DATETIME,
	//   `create_time` DATETIME NOT NULL,
	//   `update_time` DATETIME NOT NULL,
	//   `msg_key` VARCHAR(255) NULL,
	//   `headers` TEXT NULL,
	//   UNIQUE KEY `uk_msg_id` (`msg_id`),
	//   KEY `idx_status_retry` (`status`, `next_retry_time`)
	// )
}
