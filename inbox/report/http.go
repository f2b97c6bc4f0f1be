package report

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"
)

// HTTP reports to the relay's console.
type HTTP struct {
	// URLs are the consoles of the relays, such as http://relay-1:9180; console.prefix belongs to them. Only the leader of a
	// source takes reports, so name all relays: they are tried in turn.
	URLs []string
	// Token is the relay's console.token.
	Token string
	// Client is used for the requests; nil is one with a time limit of 30 s.
	Client *http.Client
}

// Path is where the console takes reports.
const Path = "/api/v1/acks"

// ErrRefused is an answer that trying again does not change: a wrong token, an unknown source, reports that are switched off.
var ErrRefused = errors.New("the relay refuses reports")

const (
	requestTimeout = 30 * time.Second
	maxAnswer      = 64 << 10
)

// Send implements Sender.
func (h *HTTP) Send(ctx context.Context, r Report) error {
	_, err := h.Report(ctx, r)
	return err
}

// Report sends a report and returns what came of its messages. ErrInvalid and ErrRefused are for a person; after any other
// error it may be sent again.
func (h *HTTP) Report(ctx context.Context, r Report) (Counts, error) {
	body, err := r.Encode()
	if err != nil {
		return Counts{}, err
	}
	if len(h.URLs) == 0 {
		return Counts{}, fmt.Errorf("%w: no URL of a relay is given", ErrRefused)
	}
	var errs []error
	for _, url := range h.URLs {
		counts, err := h.post(ctx, url, body)
		if err == nil || errors.Is(err, ErrInvalid) || errors.Is(err, ErrRefused) || ctx.Err() != nil {
			return counts, err
		}
		errs = append(errs, err)
	}
	return Counts{}, errors.Join(errs...)
}

func (h *HTTP) post(ctx context.Context, url string, body []byte) (counts Counts, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimSuffix(url, "/")+Path, bytes.NewReader(body))
	if err != nil {
		return counts, fmt.Errorf("%w: the URL of a relay can't be used; write http://host:9180", ErrRefused)
	}
	req.Header.Set("Authorization", "Bearer "+h.Token)
	req.Header.Set("Content-Type", "application/json")
	client := h.Client
	if client == nil {
		client = http.DefaultClient
	}
	resp, err := client.Do(req)
	if err != nil {
		return counts, fmt.Errorf("report to the relay: %w", err)
	}
	defer func() { err = errors.Join(err, resp.Body.Close()) }()
	answer, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return counts, fmt.Errorf("read the relay's answer: %w", err)
	}
	if err := refusal(resp.StatusCode, answer); err != nil {
		return counts, err
	}
	if err := json.Unmarshal(answer, &counts); err != nil {
		return counts, fmt.Errorf("read the relay's answer: %w; is it a relay that listens there?", err)
	}
	return counts, nil
}

// refusal makes an error of an answer that is not OK.
func refusal(code int, answer []byte) error {
	text := fmt.Sprintf("%d %s", code, strings.TrimSpace(string(answer)))
	switch code {
	case http.StatusOK:
		return nil
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge:
		return fmt.Errorf("%w: the relay answered %s", ErrInvalid, text)
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusNotFound, http.StatusMethodNotAllowed:
		return fmt.Errorf("%w: it answered %s", ErrRefused, text)
	}
	return fmt.Errorf("report to the relay: it answered %s", text)
}
