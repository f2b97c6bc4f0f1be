package metrics_test

import (
	"flag"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"
	dto "github.com/prometheus/client_model/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/words"
)

var update = flag.Bool("update", false, "write docs/METRICS.md")

// promised is the list that dashboards depend on, with the labels beside source. A name is changed here only together
// with a line in the CHANGELOG.
var promised = map[string][]string{
	"build_info": {"version", "go_version"}, "leader": nil, "source_connected": nil,
	"source_reconnects_total": {"reason"}, "source_lag_seconds": nil, "source_lag_bytes": nil,
	"binlog_headroom_seconds": nil, "transactions_total": {"outcome"}, "stream_skipped_total": {"reason"}, "stream_missed_total": {"reason"},
	"sweep_sent_total": {"reason"},
	"recoveries_total": {"kind"}, "recovery_rows": {"kind", "outcome"}, "last_recovery_timestamp_seconds": {"kind"}, "messages_published_total": {"topic", "origin"},
	"messages_failed_total": {"topic", "reason"}, "messages_dead_total": {"topic", "reason"},
	"duplicates_suppressed_total": {"by"}, "order_violations_total": nil, "parked_messages": nil, "parked_keys": nil,
	"commit_to_ack_seconds": {"topic"}, "publish_seconds": {"topic"}, "in_flight_messages": nil,
	"in_flight_bytes": nil, "unmarked_messages": nil, "backpressure_seconds_total": nil, "mark_seconds": nil,
	"checkpoint_age_seconds": nil, "checkpoint_saves_total": {"result"}, "sweep_rows_total": {"result"},
	"sweep_seconds": nil, "table_rows": {"status"}, "oldest_pending_seconds": nil, "acks_total": {"result", "via"},
	"acks_behind_records": nil, "oldest_unreported_seconds": {"topic", "group"}, "group_read_past_oldest": {"topic", "group"},
}

// touch gives every series of a source a value.
func touch(m *metrics.Source) {
	topic := m.Topic("orders")
	m.Leader.SetBool(true)
	m.Connected.SetBool(true)
	m.Reconnects.WithLabelValues("read timeout").Inc()
	for _, g := range []*metrics.Gauge{m.LagSeconds, m.LagBytes, m.HeadroomSeconds, m.CheckpointAge, m.OldestPending} {
		g.Set(1)
	}
	m.Transactions.WithLabelValues("messages").Inc()
	m.StreamSkipped.WithLabelValues("xa").Inc()
	m.Recoveries.WithLabelValues("purged").Inc()
	m.RecoveryRows.WithLabelValues("purged", words.RowsReadAgain).Set(12)
	m.LastRecovery.WithLabelValues("purged").Set(1.7e9)
	m.Published.WithLabelValues(topic, words.OriginStream).Inc()
	m.Failed.WithLabelValues(topic, "unknown topic").Inc()
	m.Dead.WithLabelValues(topic, "too large").Inc()
	m.CommitToAck.WithLabelValues(topic).Observe(.0021)
	m.Publish.WithLabelValues(topic).Observe(.0012)
	m.Mark.Observe(.01)
	m.Sweep.Observe(.3)
	m.SweepRows.WithLabelValues("sent").Inc()
	m.TableRows.WithLabelValues("pending").Set(3)
	m.Acks.Count(words.ViaKafka, words.AckConsumed, 3)
	m.Acks.Behind.Set(0)
	m.Acks.OldestUnreported.WithLabelValues(topic, "points").Set(60)
	m.Acks.ReadPast.WithLabelValues(topic, "points").Set(1)
}

func families(t *testing.T, reg *metrics.Registry) map[string]*dto.MetricFamily {
	t.Helper()
	gathered, err := reg.Gatherer().Gather()
	require.NoError(t, err)
	out := make(map[string]*dto.MetricFamily)
	for _, f := range gathered {
		out[f.GetName()] = f
	}
	return out
}

func scrape(t *testing.T, reg *metrics.Registry) string {
	t.Helper()
	server := httptest.NewServer(reg.Handler())
	defer server.Close()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL, http.NoBody)
	require.NoError(t, err)
	resp, err := server.Client().Do(req)
	require.NoError(t, err)
	defer func() { require.NoError(t, resp.Body.Close()) }()
	body, err := io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.Equal(t, http.StatusOK, resp.StatusCode, string(body))
	return string(body)
}

func TestEveryPromisedMetricIsScrapedWithItsLabels(t *testing.T) {
	t.Parallel()
	reg := metrics.New("1.2.3")
	touch(reg.Source("shop"))
	got := families(t, reg)
	for name, labels := range promised {
		f, ok := got[metrics.Namespace+"_"+name]
		if !assert.Truef(t, ok, "%s is missing", name) {
			continue
		}
		want := append([]string{"source"}, labels...)
		for _, series := range f.GetMetric() {
			var have []string
			for _, l := range series.GetLabel() {
				have = append(have, l.GetName())
				if l.GetName() == "source" {
					assert.Equal(t, "shop", l.GetValue(), name)
				}
			}
			assert.ElementsMatch(t, want, have, name)
		}
	}
	assert.Contains(t, got, "go_goroutines")
	assert.Contains(t, got, "process_resident_memory_bytes")
}

// Every family that the scrape holds stands in the page, and the other way round.
func TestScrapeAgreesWithThePage(t *testing.T) {
	t.Parallel()
	reg := metrics.New("1.2.3")
	touch(reg.Source("shop"))
	page := metrics.Table()
	rows := strings.Count(page, "\n| `")
	for name, f := range families(t, reg) {
		if !strings.HasPrefix(name, metrics.Namespace) {
			continue
		}
		row := fmt.Sprintf("| `%s` | %s |", name, strings.ToLower(f.GetType().String()))
		assert.Contains(t, page, row)
		rows--
	}
	assert.Zero(t, rows, "rows of the page that no scrape shows")
}

func TestPromlint(t *testing.T) {
	t.Parallel()
	reg := metrics.New("1.2.3")
	touch(reg.Source("a"))
	touch(reg.Source("b"))
	problems, err := promlint.New(strings.NewReader(scrape(t, reg))).Lint()
	require.NoError(t, err)
	assert.Empty(t, problems)
}

func TestSeveralSourcesStandSideBySide(t *testing.T) {
	t.Parallel()
	reg := metrics.New("1.2.3")
	a, b := reg.Source("a"), reg.Source("b")
	assert.Same(t, a, reg.Source("a"))
	a.InFlight.Set(3)
	b.InFlight.Set(4)
	text := scrape(t, reg)
	assert.Contains(t, text, `outbox_relay_in_flight_messages{source="a"} 3`)
	assert.Contains(t, text, `outbox_relay_in_flight_messages{source="b"} 4`)
	assert.Contains(t, text, `outbox_relay_checkpoint_saves_total{result="fenced",source="a"} 0`)
}

func TestNamesThatAreNoUTF8DoNotBreakTheScrape(t *testing.T) {
	t.Parallel()
	reg := metrics.New("v\xff")
	m := reg.Source("s\xff")
	m.Published.WithLabelValues(m.Topic("t\xff"), words.OriginSweep).Inc()
	assert.Contains(t, scrape(t, reg), `messages_published_total{origin="sweep",source="s?",topic="t?"} 1`)
}

func TestGauge(t *testing.T) {
	t.Parallel()
	reg := metrics.New("1")
	m := reg.Source("s")
	const line = "\noutbox_relay_source_lag_bytes{"
	assert.NotContains(t, scrape(t, reg), line, "unknown is left out")

	m.LagBytes.Add(2)
	m.LagBytes.Add(-0.5)
	assert.Contains(t, scrape(t, reg), line+`source="s"} 1.5`)

	value := 7.0
	m.LagBytes.SetFunc(func() float64 { return value })
	assert.Contains(t, scrape(t, reg), line+`source="s"} 7`)
	value = math.NaN()
	assert.NotContains(t, scrape(t, reg), line)
	m.LagBytes.SetFunc(nil)
	assert.InDelta(t, 1.5, m.LagBytes.Value(), 0)

	m.Leader.SetBool(true)
	assert.InDelta(t, 1, m.Leader.Value(), 0)
	m.Leader.SetBool(false)
	assert.Zero(t, m.Leader.Value())
}

func TestGaugeAddLosesNothing(t *testing.T) {
	t.Parallel()
	m := metrics.New("1").Source("s")
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 1000 {
				m.InFlight.Add(1)
			}
		})
	}
	wg.Wait()
	assert.InDelta(t, 8000, m.InFlight.Value(), 0)
}

func TestTopicLabelsAreCapped(t *testing.T) {
	t.Parallel()
	m := metrics.New("1").Source("s")
	assert.Equal(t, metrics.NoTopic, m.Topic(""))
	assert.Equal(t, metrics.OtherTopic, m.Topic(strings.Repeat("x", 250)))
	var wg sync.WaitGroup
	for worker := range 8 {
		wg.Go(func() {
			for i := range metrics.MaxTopics {
				m.Topic(fmt.Sprintf("topic-%d", (i*7+worker)%400))
			}
		})
	}
	wg.Wait()
	own := 0
	for i := range 400 {
		name := fmt.Sprintf("topic-%d", i)
		switch got := m.Topic(name); got {
		case name:
			own++
		default:
			assert.Equal(t, metrics.OtherTopic, got)
		}
	}
	assert.Equal(t, metrics.MaxTopics, own)
}

func TestPageIsUpToDate(t *testing.T) {
	t.Parallel()
	const page = "../../docs/METRICS.md"
	if *update {
		require.NoError(t, os.WriteFile(page, []byte(metrics.Table()), 0o644))
	}
	have, err := os.ReadFile(page)
	require.NoError(t, err)
	assert.Equal(t, metrics.Table(), string(have), "run: go test ./internal/metrics -update")
}

func BenchmarkMessage(b *testing.B) {
	m := metrics.New("1").Source("s")
	for b.Loop() {
		topic := m.Topic("orders")
		m.Published.WithLabelValues(topic, words.OriginStream).Inc()
		m.CommitToAck.WithLabelValues(topic).Observe(.0021)
		m.InFlight.Add(1)
	}
}
