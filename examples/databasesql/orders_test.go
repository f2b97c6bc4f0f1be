package orders

import (
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"

	"example.com/outbox-relay/outbox"
)

// database returns the empty database that EXAMPLE_DSN names, with the tables that the example needs.
func database(t *testing.T) *sql.DB {
	t.Helper()
	dsn := os.Getenv("EXAMPLE_DSN")
	if dsn == "" {
		t.Fatal("EXAMPLE_DSN names no database; run `make test TEST=./test/examples`")
	}
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	for _, statement := range []string{
		"CREATE TABLE orders (id BIGINT PRIMARY KEY AUTO_INCREMENT, number VARCHAR(400) NOT NULL UNIQUE, amount BIGINT NOT NULL)",
		outbox.Schema(outbox.Table{Name: "local_message"}, outbox.AllColumns()),
	} {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	return db
}

// count returns how many rows a table has.
func count(t *testing.T, db *sql.DB, table string) (n int) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestPay(t *testing.T) {
	db := database(t)
	if err := Pay(t.Context(), db, "4711", 100); err != nil {
		t.Fatal(err)
	}
	// The number is taken: neither an order nor a message more.
	if err := Pay(t.Context(), db, "4711", 100); err == nil {
		t.Fatal("an order was stored twice")
	}
	// A message that can't be sent takes the order back.
	if err := Pay(t.Context(), db, strings.Repeat("9", 300), 100); !errors.Is(err, outbox.ErrInvalid) {
		t.Fatalf("a key of 300 characters was taken: %v", err)
	}
	if orders, messages := count(t, db, "orders"), count(t, db, "local_message"); orders != 1 || messages != 1 {
		t.Fatalf("%d orders and %d messages", orders, messages)
	}
	// The pool is no transaction.
	if _, err := outbox.Put(t.Context(), db, outbox.Message{Topic: "orders", Body: 1}); !errors.Is(err, outbox.ErrNoTx) {
		t.Fatalf("the pool was taken: %v", err)
	}
}
