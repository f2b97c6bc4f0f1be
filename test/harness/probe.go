package harness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// Fetch returns the status code and the body of a path of the console; code 0 when it does not answer.
func (r *Relay) Fetch(path string) (code int, body string) {
	// Its own deadline: a test at its end still wants to know why.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.t.Context()), 3*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+r.Console+path, http.NoBody)
	if err != nil {
		return 0, err.Error()
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token)
	}
	resp, err := r.client.Do(req)
	if err != nil {
		return 0, err.Error()
	}
	defer func() { _ = resp.Body.Close() }()
	content, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(content)
}

// WaitReady waits until /readyz says yes. A process that ends meanwhile fails the test at once.
func (r *Relay) WaitReady(limit time.Duration) {
	r.t.Helper()
	Eventually(r.t, limit, "relay ready", func() (bool, string) {
		r.alive()
		code, body := r.Fetch("/readyz")
		return code == http.StatusOK, fmt.Sprintf("readyz %d %s", code, strings.TrimSpace(body))
	})
}

// WaitLeading waits until the relay leads its source and is ready.
func (r *Relay) WaitLeading(limit time.Duration) {
	r.t.Helper()
	Eventually(r.t, limit, "relay leads and is ready", func() (bool, string) {
		r.alive()
		if !r.Leads() {
			return false, "outbox_relay_leader is not 1"
		}
		// In this order: a relay that stands by is ready too, and one that has just got the lock is not yet.
		code, body := r.Fetch("/readyz")
		return code == http.StatusOK, fmt.Sprintf("readyz %d %s", code, strings.TrimSpace(body))
	})
}

// Leads tells whether the relay leads.
func (r *Relay) Leads() bool {
	m, err := r.Metrics()
	return err == nil && m.Sum("leader") > 0
}

// alive fails the test when the process is gone.
func (r *Relay) alive() {
	r.t.Helper()
	if r.gone() {
		r.t.Fatalf("the relay ended with %d", r.ExitCode())
	}
}

// Status returns the decoded /api/v1/status.
func (r *Relay) Status() (map[string]any, error) {
	code, body := r.Fetch("/api/v1/status")
	if code != http.StatusOK {
		return nil, fmt.Errorf("status: %d %s", code, body)
	}
	var status map[string]any
	if err := json.Unmarshal([]byte(body), &status); err != nil {
		return nil, fmt.Errorf("status: %w", err)
	}
	return status, nil
}

// Metrics is one scrape.
type Metrics map[string]*dto.MetricFamily

// Metrics scrapes the relay. A label value that is not documented is an error.
func (r *Relay) Metrics() (Metrics, error) {
	code, body := r.Fetch("/metrics")
	if code != http.StatusOK {
		return nil, fmt.Errorf("metrics: %d %s", code, tail(body, 200))
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	if err := Metrics(families).documented(); err != nil {
		return nil, err
	}
	return families, nil
}

// Sum adds up the series of a metric (its name without outbox_relay_) that have the labels given as name, value, name,
// value. A histogram counts its observations. A metric that is not there is zero.
func (m Metrics) Sum(name string, labels ...string) float64 {
	family := m["outbox_relay_"+name]
	if family == nil {
		return 0
	}
	total := 0.0
	for _, series := range family.GetMetric() {
		if !has(series, labels) {
			continue
		}
		total += series.GetCounter().GetValue() + series.GetGauge().GetValue() + series.GetUntyped().GetValue() +
			float64(series.GetHistogram().GetSampleCount())
	}
	return total
}

// Has tells whether there is a series of a metric with the labels.
func (m Metrics) Has(name string, labels ...string) bool {
	for _, series := range m["outbox_relay_"+name].GetMetric() {
		if has(series, labels) {
			return true
		}
	}
	return false
}

func has(series *dto.Metric, labels []string) bool {
	for i := 0; i+1 < len(labels); i += 2 {
		found := false
		for _, pair := range series.GetLabel() {
			found = found || pair.GetName() == labels[i] && pair.GetValue() == labels[i+1]
		}
		if !found {
			return false
		}
	}
	return true
}

// Memory is a process' resident memory in bytes.
type Memory struct{ Now, Peak uint64 }

// Memory reads the process' resident memory, at present and at its highest.
func (r *Relay) Memory() Memory {
	r.t.Helper()
	return ReadMemory(r.t, r.PID())
}

// ReadMemory reads a process' resident memory.
func ReadMemory(t testing.TB, pid int) Memory {
	t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Fatalf("read the relay's memory: %v", err)
	}
	var m Memory
	for line := range strings.Lines(string(content)) {
		name, rest, _ := strings.Cut(line, ":")
		kib, _ := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(rest), " kB"), 10, 64)
		switch name {
		case "VmRSS":
			m.Now = kib << 10
		case "VmHWM":
			m.Peak = kib << 10
		}
	}
	if m.Peak == 0 {
		t.Fatalf("no VmHWM in /proc/%d/status", pid)
	}
	return m
}

// clockTicks is Linux' USER_HZ, the unit of times in /proc: 100 on every platform that Go runs on.
const clockTicks = 100

// CPU reads how much processor time the process has used.
func (r *Relay) CPU() time.Duration {
	r.t.Helper()
	content, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", r.PID()))
	if err != nil {
		r.t.Fatalf("read the relay's cpu time: %v", err)
	}
	// After the name in brackets, which may hold anything: state is field 3, user time 14, system time 15.
	_, rest, _ := strings.Cut(string(content), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		r.t.Fatalf("read the relay's cpu time: %q", content)
	}
	user, _ := strconv.ParseInt(fields[11], 10, 64)
	system, _ := strconv.ParseInt(fields[12], 10, 64)
	return time.Duration(user+system) * time.Second / clockTicks
}
