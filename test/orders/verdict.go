package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// verdict compares the two services' databases.
type verdict struct {
	Paid    int // orders
	Entries int // points given
	Missing int // paid orders without points
	Twice   int // points given again
	Phantom int // points for an order that is not paid
	Wrong   int // points of another amount
	Sums    int // accounts that do not add up
}

func (v verdict) String() string {
	return fmt.Sprintf("paid orders %d, points given %d; missing %d, twice %d, phantom %d, wrong amount %d, wrong account %d",
		v.Paid, v.Entries, v.Missing, v.Twice, v.Phantom, v.Wrong, v.Sums)
}

// ok reports whether each paid order has its points exactly once.
func (v verdict) ok() bool {
	return v.Paid > 0 && v.Entries == v.Paid && v.Missing+v.Twice+v.Phantom+v.Wrong+v.Sums == 0
}

// judge waits, no longer than limit, until the points have caught up, and judges.
func (s *servers) judge(ctx context.Context, limit time.Duration) (v verdict, err error) {
	db, err := s.open("")
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	orders, entry, account := s.shop+".orders", s.loyalty+".entry", s.loyalty+".account"
	questions := []struct {
		into  *int
		query string
	}{
		{&v.Paid, "SELECT COUNT(*) FROM " + orders + " WHERE paid"},
		{&v.Entries, "SELECT COUNT(*) FROM " + entry},
		{&v.Missing, "SELECT COUNT(*) FROM " + orders + " o LEFT JOIN " + entry + " e ON e.order_id = o.id WHERE o.paid AND e.id IS NULL"},
		{&v.Twice, "SELECT COUNT(*) - COUNT(DISTINCT order_id) FROM " + entry},
		{&v.Phantom, "SELECT COUNT(*) FROM " + entry + " e LEFT JOIN " + orders + " o ON o.id = e.order_id AND o.paid WHERE o.id IS NULL"},
		{&v.Wrong, "SELECT COUNT(*) FROM " + entry + " e JOIN " + orders + " o ON o.id = e.order_id WHERE e.points <> o.cents DIV 100 OR e.customer <> o.customer"},
		{&v.Sums, "SELECT COUNT(*) FROM " + account + " a WHERE points <> (SELECT SUM(points) FROM " + entry + " e WHERE e.customer = a.customer)"},
	}
	deadline := time.Now().Add(limit)
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		for _, q := range questions {
			if err := db.QueryRowContext(ctx, q.query).Scan(q.into); err != nil {
				return v, fmt.Errorf("judge: %w", err)
			}
		}
		if v.ok() || time.Now().After(deadline) {
			return v, nil
		}
		select {
		case <-ctx.Done():
			return v, ctx.Err()
		case <-tick.C:
		}
	}
}
