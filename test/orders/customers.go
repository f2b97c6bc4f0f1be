package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"example.com/outbox-relay/examples/orders/order"
)

// customers order and pay over HTTP, each one order after the other. What fails they do again: the service may be dead for the moment.
type customers struct {
	url  string
	paid atomic.Int64
}

const (
	requestTime = 5 * time.Second
	retryPause  = 50 * time.Millisecond
)

// shop lets n customers order until stop is closed or limit orders are paid, and waits for the last payment.
func (c *customers) shop(ctx context.Context, n, limit int, stop <-chan struct{}) error {
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() {
			for errs[i] == nil && int(c.paid.Load()) < limit {
				select {
				case <-stop:
					return
				default:
					errs[i] = c.one(ctx, fmt.Sprintf("customer-%d", i))
				}
			}
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// one orders and pays.
func (c *customers) one(ctx context.Context, customer string) error {
	body, err := json.Marshal(order.Paid{Customer: customer, Cents: int64(100 + rand.IntN(100_000))})
	if err != nil {
		return err
	}
	var taken order.Paid
	if err := c.insist(ctx, "/orders", body, http.StatusCreated, &taken); err != nil {
		return err
	}
	if err := c.insist(ctx, fmt.Sprintf("/orders/%d/pay", taken.Order), nil, http.StatusNoContent, nil); err != nil {
		return err
	}
	c.paid.Add(1)
	return nil
}

// insist posts until the answer is the one that is wanted.
func (c *customers) insist(ctx context.Context, path string, body []byte, want int, into any) error {
	for ctx.Err() == nil {
		if c.post(ctx, path, body, want, into) == nil {
			return nil
		}
		timer := time.NewTimer(retryPause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		}
		timer.Stop()
	}
	return ctx.Err()
}

func (c *customers) post(ctx context.Context, path string, body []byte, want int, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	switch {
	case err != nil:
		return err
	case answer.StatusCode != want:
		return fmt.Errorf("%s: %s", path, answer.Status)
	case into == nil:
		return nil
	}
	return json.Unmarshal(text, into)
}
