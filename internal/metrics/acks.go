package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/outbox-relay/internal/words"
)

// Acks is the metrics of consumers' reports.
type Acks struct {
	Reports *prometheus.CounterVec // result, via
	Behind  *Gauge                 // records
	// The last two have one series for each topic and group of acks.groups.
	OldestUnreported *prometheus.GaugeVec // topic, group; seconds
	ReadPast         *prometheus.GaugeVec // topic, group
}

func (a *Acks) metrics(b *builder) {
	topic, group := label{name: "topic"}, label{name: "group"}
	a.Reports = b.counters("acks_total", "Messages that consumers reported, by what came of it and by the way the report took. What consumers write with SQL themselves is not seen; counted there is what the relay completed.",
		label{name: "result", values: words.Acks()},
		label{name: "via", values: words.Vias()})
	a.Behind = b.gauge("acks_behind_records", "Records of the topic of reports that are not read yet.", math.NaN())
	a.OldestUnreported = b.gauges("oldest_unreported_seconds", "Seconds since the oldest message that the group has not reported was written; 0 when there is none. The relay leads and acks.groups names the topic and the group.", topic, group)
	a.ReadPast = b.gauges("group_read_past_oldest", "1 when the group's committed offset in Kafka lies behind that message: read and not reported. 0: not read yet. Left out when there is none, or it can't be told.", topic, group)
}

// Count counts reported messages.
func (a *Acks) Count(via, result string, n int) {
	if n > 0 {
		a.Reports.WithLabelValues(result, via).Add(float64(n))
	}
}

// Forget drops what only the leader knows.
func (a *Acks) Forget() {
	a.Behind.Set(math.NaN())
	a.OldestUnreported.Reset()
	a.ReadPast.Reset()
}
