package console

import (
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/http"
	"strings"
	"time"

	"example.com/outbox-relay/inbox/report"
)

// Handler answers all of the console's pages, under the configured prefix.
func (c *Console) Handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+c.cfg.Prefix+"/livez", c.livez)
	mux.HandleFunc("GET "+c.cfg.Prefix+"/readyz", c.readyz)
	mux.Handle("GET "+c.cfg.Prefix+"/metrics", c.protected(c.metrics))
	mux.Handle("GET "+c.cfg.Prefix+"/api/v1/status", c.protected(http.HandlerFunc(c.status)))
	mux.Handle("POST "+c.cfg.Prefix+report.Path, c.protected(http.HandlerFunc(c.acks)))
	return withHeaders(mux)
}

// withHeaders keeps caches and browsers from doing something clever with what is only a picture of now.
func withHeaders(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		w.Header().Set("X-Content-Type-Options", "nosniff")
		next.ServeHTTP(w, r)
	})
}

// protected lets through those who show the token.
func (c *Console) protected(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.authorised(r) {
			w.Header().Set("WWW-Authenticate", `Bearer realm="outbox-relay"`)
			http.Error(w, "unauthorised: send the header Authorization: Bearer TOKEN with the value of console.token", http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// authorised compares digests, so that the time it takes tells neither the token's bytes nor its length.
func (c *Console) authorised(r *http.Request) bool {
	if c.cfg.Token == "" {
		return true
	}
	headers := r.Header.Values("Authorization")
	if len(headers) != 1 {
		return false
	}
	scheme, token, ok := strings.Cut(headers[0], " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return false
	}
	want, got := sha256.Sum256([]byte(c.cfg.Token)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(want[:], got[:]) == 1
}

// Status is what /api/v1/status answers. The sources' states are in the form that each of them gave.
type Status struct {
	Version string         `json:"version"`
	Started time.Time      `json:"started"`
	Ready   bool           `json:"ready"`
	Sources []SourceStatus `json:"sources"`
}

// SourceStatus is one source's part of Status.
type SourceStatus struct {
	Name   string          `json:"name"`
	Ready  bool            `json:"ready"`
	Checks []CheckStatus   `json:"checks"`
	Status json.RawMessage `json:"status"`
}

// CheckStatus is a Check in JSON.
type CheckStatus struct {
	Name     string `json:"name"`
	OK       bool   `json:"ok"`
	Degraded bool   `json:"degraded,omitempty"`
	Error    string `json:"error,omitempty"`
	Detail   string `json:"detail,omitempty"`
}

func (c *Console) status(w http.ResponseWriter, _ *http.Request) {
	page := Status{Version: c.cfg.Version, Started: c.started.UTC(), Ready: true, Sources: make([]SourceStatus, 0, len(c.sources))}
	for _, s := range c.sources {
		state, err := json.Marshal(s.Status())
		if err != nil {
			c.log.Error().Err(err).Str("source", s.Name()).Msg("status cannot be shown")
			http.Error(w, "the status of source "+s.Name()+" cannot be shown; see the log", http.StatusInternalServerError)
			return
		}
		one := SourceStatus{Name: s.Name(), Ready: true, Checks: []CheckStatus{}, Status: state}
		for _, check := range s.Ready() {
			one.Ready = one.Ready && check.passes()
			one.Checks = append(one.Checks, check.status())
		}
		page.Ready = page.Ready && one.Ready
		page.Sources = append(page.Sources, one)
	}
	w.Header().Set("Content-Type", "application/json")
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(page); err != nil {
		c.log.Debug().Err(err).Msg("status was not taken")
	}
}

func (c Check) status() CheckStatus {
	out := CheckStatus{Name: c.Name, OK: c.Err == nil, Degraded: c.Degraded && c.Err != nil, Detail: c.Detail}
	if c.Err != nil {
		out.Error = c.Err.Error()
	}
	return out
}
