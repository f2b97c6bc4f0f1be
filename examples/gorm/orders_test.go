package orders

import (
	"database/sql"
	"errors"
	"os"
	"strings"
	"testing"

	_ "github.com/go-sql-driver/mysql"
	"gorm.io/driver/mysql"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

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
	t.Run("plain", func(t *testing.T) { try(t, db, "4711", false) })
	t.Run("prepared", func(t *testing.T) { try(t, db, "4712", true) })
	if orders, messages := count(t, db, "orders"), count(t, db, "local_message"); orders != 2 || messages != 2 {
		t.Fatalf("%d orders and %d messages", orders, messages)
	}
}

// try pays with gorm set up in one of the ways that change what its ConnPool is.
func try(t *testing.T, db *sql.DB, number string, prepare bool) {
	t.Helper()
	g, err := gorm.Open(mysql.New(mysql.Config{Conn: db}), &gorm.Config{PrepareStmt: prepare, Logger: logger.Discard})
	if err != nil {
		t.Fatal(err)
	}
	if err := Pay(t.Context(), g, Order{Number: number, Amount: 100}); err != nil {
		t.Fatal(err)
	}
	// The number is taken: neither an order nor a message more.
	if err := Pay(t.Context(), g, Order{Number: number, Amount: 100}); err == nil {
		t.Fatal("an order was stored twice")
	}
	// A message that can't be sent takes the order back.
	if err := Pay(t.Context(), g, Order{Number: strings.Repeat("9", 300)}); !errors.Is(err, outbox.ErrInvalid) {
		t.Fatalf("a key of 300 characters was taken: %v", err)
	}
	// The pool is no transaction.
	if _, err := outbox.Put(t.Context(), g.Statement.ConnPool, outbox.Message{Topic: "orders", Body: 1}); !errors.Is(err, outbox.ErrNoTx) {
		t.Fatalf("the pool was taken: %v", err)
	}
}
