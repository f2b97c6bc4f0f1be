package metrics

import (
	"math"

	"github.com/prometheus/client_golang/prometheus"
)

// What becomes of a reported message (acks_total).
const (
	AckConsumed  = "consumed"  // its status became consumed
	AckWaiting   = "waiting"   // the group has reported, others have not
	AckAlready   = "already"   // it was reported before
	AckUnknown   = "unknown"   // no such message: archived, another source's, or never there
	AckAmbiguous = "ambiguous" // several topics have the msg_id and the report names none
	AckIgnored   = "ignored"   // a dead letter, discarded, or of a foreign status
	AckStranger  = "stranger"  // the group is none of those that have to report
	AckJunk      = "junk"      // a report that can't be read: counted once, whatever it holds
)

// By which way reports come (acks_total).
const (
	ViaKafka = "kafka"
	ViaHTTP  = "http"
	ViaSQL   = "sql"
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
		label{name: "result", values: []string{AckConsumed, AckWaiting, AckAlready, AckUnknown, AckAmbiguous, AckIgnored, AckStranger, AckJunk}},
		label{name: "via", values: []string{ViaKafka, ViaHTTP, ViaSQL}})
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
