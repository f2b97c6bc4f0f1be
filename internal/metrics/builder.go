package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Native histograms beside the classic buckets: resolution and the bound on their size. They are sent only to a scraper
// that asks for protobuf.
const (
	nativeFactor     = 1.1
	nativeMaxBuckets = 100
	nativeReset      = time.Hour
)

// label is one variable label. values, when given, are all it can have: the series then exist from the start, so that a
// rate or an increase over the first event is not lost.
type label struct {
	name   string
	values []string
}

// definition is a metric as docs/METRICS.md tells it.
type definition struct {
	name, kind, help string
	labels           []label
}

// builder makes the metrics of one source and remembers what it made, for registering and for the documentation.
type builder struct {
	source      string
	definitions []definition
	collectors  []prometheus.Collector
}

func (b *builder) add(d definition, c prometheus.Collector) {
	b.definitions = append(b.definitions, d)
	b.collectors = append(b.collectors, c)
}

func (b *builder) constant() prometheus.Labels { return prometheus.Labels{"source": b.source} }

func (b *builder) counter(name, help string) prometheus.Counter {
	c := prometheus.NewCounter(prometheus.CounterOpts{
		Namespace: Namespace, Name: name, Help: help, ConstLabels: b.constant(),
	})
	b.add(definition{name: name, kind: "counter", help: help}, c)
	return c
}

func (b *builder) counters(name, help string, labels ...label) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Namespace: Namespace, Name: name, Help: help, ConstLabels: b.constant(),
	}, names(labels))
	if len(labels) == 1 {
		for _, v := range labels[0].values {
			c.WithLabelValues(v)
		}
	}
	b.add(definition{name: name, kind: "counter", help: help, labels: labels}, c)
	return c
}

// gauge starts at value; NaN is "not known yet".
func (b *builder) gauge(name, help string, value float64) *Gauge {
	g := newGauge(prometheus.BuildFQName(Namespace, "", name), help, b.constant(), value)
	b.add(definition{name: name, kind: "gauge", help: help}, g)
	return g
}

func (b *builder) gauges(name, help string, labels ...label) *prometheus.GaugeVec {
	g := prometheus.NewGaugeVec(prometheus.GaugeOpts{
		Namespace: Namespace, Name: name, Help: help, ConstLabels: b.constant(),
	}, names(labels))
	b.add(definition{name: name, kind: "gauge", help: help, labels: labels}, g)
	return g
}

func (b *builder) histogram(name, help string, buckets []float64) prometheus.Histogram {
	h := prometheus.NewHistogram(b.histogramOpts(name, help, buckets))
	b.add(definition{name: name, kind: "histogram", help: help}, h)
	return h
}

func (b *builder) histograms(name, help string, buckets []float64, labels ...label) *prometheus.HistogramVec {
	h := prometheus.NewHistogramVec(b.histogramOpts(name, help, buckets), names(labels))
	b.add(definition{name: name, kind: "histogram", help: help, labels: labels}, h)
	return h
}

func (b *builder) histogramOpts(name, help string, buckets []float64) prometheus.HistogramOpts {
	return prometheus.HistogramOpts{
		Namespace: Namespace, Name: name, Help: help, ConstLabels: b.constant(), Buckets: buckets,
		NativeHistogramBucketFactor:     nativeFactor,
		NativeHistogramMaxBucketNumber:  nativeMaxBuckets,
		NativeHistogramMinResetDuration: nativeReset,
	}
}

func names(labels []label) []string {
	out := make([]string, len(labels))
	for i, l := range labels {
		out[i] = l.name
	}
	return out
}
