// Package order is a service that takes orders, and tells others when one is paid.
package order

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"

	"example.com/outbox-relay/outbox"
)

// Topic is where Paid goes.
const Topic = "orders"

// Paid is the event: an order was paid.
type Paid struct {
	Order    int64  `json:"order"`
	Customer string `json:"customer"`
	Cents    int64  `json:"cents"`
}

// Schema returns the statements that make the service's tables.
func Schema() []string {
	return []string{
		`CREATE TABLE IF NOT EXISTS orders (id BIGINT PRIMARY KEY AUTO_INCREMENT, customer VARCHAR(64) NOT NULL, cents BIGINT NOT NULL, paid BOOLEAN NOT NULL)`,
		outbox.Schema(outbox.Table{Name: "local_message"}, outbox.SchemaOptions{Key: true, LastError: true, IfNotExists: true}),
	}
}

// Service takes orders over HTTP. It may be used concurrently.
type Service struct{ db *sql.DB }

// New returns a service that keeps its orders, and its messages, in db.
func New(db *sql.DB) *Service { return &Service{db: db} }

// Handler serves POST /orders, which answers with the order's number, and POST /orders/{id}/pay, which may be repeated.
func (s *Service) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /orders", s.take)
	mux.HandleFunc("POST /orders/{id}/pay", s.pay)
	return mux
}

func (s *Service) take(w http.ResponseWriter, r *http.Request) {
	var order Paid
	if err := json.NewDecoder(http.MaxBytesReader(w, r.Body, 1<<16)).Decode(&order); err != nil || order.Customer == "" {
		http.Error(w, `send {"customer": "...", "cents": 1}`, http.StatusBadRequest)
		return
	}
	result, err := s.db.ExecContext(r.Context(), "INSERT INTO orders (customer, cents, paid) VALUES (?, ?, FALSE)", order.Customer, order.Cents)
	if err == nil {
		order.Order, err = result.LastInsertId()
	}
	if err != nil {
		http.Error(w, "the order could not be written, try again", http.StatusServiceUnavailable)
		return
	}
	w.WriteHeader(http.StatusCreated)
	_ = json.NewEncoder(w).Encode(order) // the order is taken, whether or not the customer hears it
}

var errNoOrder = errors.New("no such order")

func (s *Service) pay(w http.ResponseWriter, r *http.Request) {
	id, err := strconv.ParseInt(r.PathValue("id"), 10, 64)
	if err == nil {
		err = s.Pay(r.Context(), id)
	}
	switch {
	case err == nil:
		w.WriteHeader(http.StatusNoContent)
	case errors.Is(err, errNoOrder), errors.Is(err, strconv.ErrSyntax):
		http.Error(w, errNoOrder.Error(), http.StatusNotFound)
	default:
		http.Error(w, "not known to be paid, try again", http.StatusServiceUnavailable)
	}
}

// Pay marks an order as paid and writes the message about it, both in one transaction: both happen, or neither. Paying twice is
// paying once.
func (s *Service) Pay(ctx context.Context, id int64) error {
	return outbox.Within(ctx, s.db, func(ctx context.Context, tx *sql.Tx) error {
		event := Paid{Order: id}
		var paid bool
		err := tx.QueryRowContext(ctx, "SELECT customer, cents, paid FROM orders WHERE id = ? FOR UPDATE", id).
			Scan(&event.Customer, &event.Cents, &paid)
		switch {
		case errors.Is(err, sql.ErrNoRows):
			return errNoOrder
		case err != nil || paid:
			return err
		}
		if _, err := tx.ExecContext(ctx, "UPDATE orders SET paid = TRUE WHERE id = ?", id); err != nil {
			return err
		}
		_, err = outbox.Put(ctx, tx, outbox.Message{
			ID: fmt.Sprintf("order-%d-paid", id), Topic: Topic, Key: event.Customer, Body: event,
		})
		return err
	})
}
