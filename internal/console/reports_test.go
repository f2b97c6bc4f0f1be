package console_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/internal/console"
	"example.com/outbox-relay/internal/reports"
)

// reporter is a source that takes reports.
type reporter struct {
	*source
	err error

	mu    sync.Mutex
	taken []report.Report
}

func (r *reporter) Report(_ context.Context, rep report.Report) (report.Counts, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.taken = append(r.taken, rep)
	return report.Counts{Consumed: len(rep.MsgIDs), Unknown: 1}, r.err
}

func newReporter(name string) *reporter {
	s := leading()
	s.name = name
	return &reporter{source: s}
}

func postReport(t *testing.T, c *console.Console, path, body, auth string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequestWithContext(t.Context(), http.MethodPost, path, strings.NewReader(body))
	if auth != "" {
		req.Header.Set("Authorization", "Bearer "+auth)
	}
	rec := httptest.NewRecorder()
	c.Handler().ServeHTTP(rec, req)
	return rec
}

const aReport = `{"group":"points","msg_ids":["a","b"]}`

func TestAcks(t *testing.T) {
	t.Parallel()
	shop := newReporter("shop")
	rec := postReport(t, newConsole(console.Config{Token: token}, shop), report.Path, aReport, token)
	require.Equal(t, http.StatusOK, rec.Code, rec.Body.String())
	var counts report.Counts
	require.NoError(t, json.Unmarshal(rec.Body.Bytes(), &counts))
	assert.Equal(t, report.Counts{Consumed: 2, Unknown: 1}, counts)
	for _, name := range []string{"consumed", "already", "unknown", "waiting", "ambiguous", "ignored", "stranger"} {
		assert.Contains(t, rec.Body.String(), `"`+name+`":`)
	}
	assert.Equal(t, []report.Report{{Group: "points", MsgIDs: []string{"a", "b"}}}, shop.taken)
}

func TestAcksAreRefused(t *testing.T) {
	t.Parallel()
	shop := newReporter("shop")
	for name, tt := range map[string]struct {
		cfg        console.Config
		body, auth string
		code       int
		says       string
	}{
		"NoTokenConfigured":      {console.Config{}, aReport, "", http.StatusForbidden, "console.token"},
		"NoTokenConfiguredGiven": {console.Config{}, aReport, "x", http.StatusForbidden, "console.token"},
		"NoTokenGiven":           {console.Config{Token: token}, aReport, "", http.StatusUnauthorized, "Bearer"},
		"WrongToken":             {console.Config{Token: token}, aReport, "x", http.StatusUnauthorized, "Bearer"},
		"Junk":                   {console.Config{Token: token}, "{", token, http.StatusBadRequest, "not a usable report"},
		"NoIDs":                  {console.Config{Token: token}, `{"group":"g"}`, token, http.StatusBadRequest, "msg_ids is empty"},
		"TwoReports":             {console.Config{Token: token}, aReport + aReport, token, http.StatusBadRequest, "not a usable report"},
		"TooLarge":               {console.Config{Token: token}, `{"msg_ids":["` + strings.Repeat("x", report.MaxBytes) + `"]}`, token, http.StatusRequestEntityTooLarge, "too large"},
		"OtherSource":            {console.Config{Token: token}, `{"source":"bar","msg_ids":["a"]}`, token, http.StatusNotFound, "shop"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rec := postReport(t, newConsole(tt.cfg, shop), report.Path, tt.body, tt.auth)
			assert.Equal(t, tt.code, rec.Code)
			assert.Contains(t, rec.Body.String(), tt.says)
			assert.NotContains(t, rec.Body.String(), token)
		})
	}
	t.Cleanup(func() { assert.Empty(t, shop.taken, "nothing refused may reach the source") })
}

func TestAcksOfSeveralSources(t *testing.T) {
	t.Parallel()
	a, b := newReporter("a"), newReporter("b")
	c := newConsole(console.Config{Token: token, Prefix: "/relay"}, a, b, leading())
	rec := postReport(t, c, "/relay"+report.Path, aReport, token)
	assert.Equal(t, http.StatusNotFound, rec.Code)
	assert.Contains(t, rec.Body.String(), "a, b")
	assert.Equal(t, http.StatusOK, postReport(t, c, "/relay"+report.Path+"?source=b", aReport, token).Code)
	assert.Equal(t, http.StatusOK, postReport(t, c, "/relay"+report.Path, `{"source":"a","msg_ids":["x"]}`, token).Code)
	assert.Len(t, a.taken, 1)
	assert.Len(t, b.taken, 1)
	rec = postReport(t, c, "/relay"+report.Path+"?source=shop", aReport, token)
	assert.Equal(t, http.StatusNotFound, rec.Code)
	assert.Contains(t, rec.Body.String(), "acks.enabled")
}

func TestAcksErrors(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		err  error
		code int
		says string
	}{
		{reports.ErrNotLeading, http.StatusServiceUnavailable, "does not lead"},
		{reports.ErrBusy, http.StatusTooManyRequests, "larger ones"},
		{reports.ErrOff, http.StatusNotFound, "acks.enabled"},
		{report.ErrInvalid, http.StatusBadRequest, "not a usable report"},
		{errors.New("dial 10.0.0.7:3306: refused"), http.StatusServiceUnavailable, "see the relay's log"},
	} {
		shop := newReporter("shop")
		shop.err = tt.err
		rec := postReport(t, newConsole(console.Config{Token: token}, shop), report.Path, aReport, token)
		assert.Equal(t, tt.code, rec.Code, tt.says)
		assert.Contains(t, rec.Body.String(), tt.says)
		assert.NotContains(t, rec.Body.String(), "10.0.0.7")
		assert.Equal(t, tt.code == http.StatusServiceUnavailable || tt.code == http.StatusTooManyRequests, rec.Header().Get("Retry-After") != "")
	}
}

// The consumer's client and the console understand each other, through a standby and a relay that is gone.
func TestReportingClient(t *testing.T) {
	t.Parallel()
	leader, standby := newReporter("shop"), newReporter("shop")
	standby.err = reports.ErrNotLeading
	var urls []string
	for _, r := range []*reporter{standby, leader} {
		server := httptest.NewServer(newConsole(console.Config{Token: token, Prefix: "/relay"}, r).Handler())
		t.Cleanup(server.Close)
		urls = append(urls, server.URL+"/relay/")
	}
	client := &report.HTTP{URLs: append([]string{"http://127.0.0.1:1"}, urls...), Token: token, Client: &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	counts, err := client.Report(t.Context(), report.Report{Group: "points", MsgIDs: []string{"a"}})
	require.NoError(t, err)
	assert.Equal(t, 1, counts.Consumed)
	client.Token = "wrong"
	_, err = client.Report(t.Context(), report.Report{MsgIDs: []string{"a"}})
	require.Error(t, err)
	assert.NotContains(t, err.Error(), "wrong", "tokens stay out of errors")
	client.URLs = urls[1:]
	require.ErrorIs(t, client.Send(t.Context(), report.Report{MsgIDs: []string{"a"}}), report.ErrRefused)
	require.ErrorIs(t, client.Send(t.Context(), report.Report{}), report.ErrInvalid)
	client.Token, client.URLs = token, urls[:1]
	err = client.Send(t.Context(), report.Report{MsgIDs: []string{"a"}})
	require.ErrorContains(t, err, "503")
	require.NotErrorIs(t, err, report.ErrRefused)
}
