package console

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"time"
)

const (
	clientTimeout = 5 * time.Second
	// maxAnswer bounds what a client reads, whoever answers at that address.
	maxAnswer = 4 << 20
)

// ErrOff is returned by a Client when the configuration has no console to ask.
var ErrOff = errors.New("the console is switched off: set console.listen")

// Client asks the console of a running relay; the zero value asks nobody.
type Client struct {
	base, token string
	http        *http.Client
}

// NewClient returns a client for the console that cfg describes. An address that listens everywhere is asked on
// loopback.
func NewClient(cfg Config) *Client {
	c := &Client{token: cfg.Token, http: &http.Client{
		Timeout:       clientTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		// Neither a proxy from the environment nor kept connections: this is one question to a neighbour.
		Transport: &http.Transport{DisableKeepAlives: true},
	}}
	host, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil {
		return c
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	c.base = "http://" + net.JoinHostPort(host, port) + cfg.Prefix
	return c
}

// Status returns what /api/v1/status says.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var status Status
	code, body, err := c.get(ctx, "/api/v1/status")
	if err != nil {
		return status, err
	}
	if code == http.StatusUnauthorized {
		return status, errors.New("the console does not accept the token: use the running relay's console.token")
	}
	if code != http.StatusOK {
		return status, fmt.Errorf("ask the relay for its status: it answered %d", code)
	}
	if err := json.Unmarshal(body, &status); err != nil {
		return status, fmt.Errorf("read the relay's status: %w; is it a relay that listens there?", err)
	}
	return status, nil
}

// Live returns nil when /livez says ok.
func (c *Client) Live(ctx context.Context) error { return c.healthy(ctx, "/livez") }

// Ready returns nil when /readyz says ok.
func (c *Client) Ready(ctx context.Context) error { return c.healthy(ctx, "/readyz") }

func (c *Client) healthy(ctx context.Context, path string) error {
	code, body, err := c.get(ctx, path)
	if err != nil {
		return err
	}
	if code != http.StatusOK {
		return fmt.Errorf("%s answered %d: %s", path, code, strings.TrimSpace(string(body)))
	}
	return nil
}

func (c *Client) get(ctx context.Context, path string) (code int, body []byte, err error) {
	if c.base == "" {
		return 0, nil, ErrOff
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base+path, http.NoBody)
	if err != nil {
		return 0, nil, fmt.Errorf("ask the relay: %w", err)
	}
	if c.token != "" {
		req.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, nil, fmt.Errorf("ask the relay: %w; is it running?", err)
	}
	body, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return 0, nil, fmt.Errorf("read the relay's answer: %w", err)
	}
	return resp.StatusCode, body, nil
}
