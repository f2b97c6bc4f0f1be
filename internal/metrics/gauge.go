package metrics

import (
	"math"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
)

// Gauge is a value that goes up and down, either set or read by a function on each scrape. While the value is NaN
// ("not known") the scrape leaves it out. All methods may be called concurrently.
type Gauge struct {
	desc *prometheus.Desc
	bits atomic.Uint64
	read atomic.Pointer[func() float64]
}

func newGauge(name, help string, constant prometheus.Labels, value float64) *Gauge {
	g := &Gauge{desc: prometheus.NewDesc(name, help, nil, constant)}
	g.Set(value)
	return g
}

// Set stores a value; NaN makes the gauge unknown.
func (g *Gauge) Set(value float64) { g.bits.Store(math.Float64bits(value)) }

// SetBool stores 1 for true and 0 for false.
func (g *Gauge) SetBool(value bool) {
	if value {
		g.Set(1)
		return
	}
	g.Set(0)
}

// Add adds to the value; an unknown value counts as zero.
func (g *Gauge) Add(delta float64) {
	for {
		old := g.bits.Load()
		value := math.Float64frombits(old)
		if math.IsNaN(value) {
			value = 0
		}
		if g.bits.CompareAndSwap(old, math.Float64bits(value+delta)) {
			return
		}
	}
}

// SetFunc makes every scrape ask read, which must be quick, must not block and is called concurrently; NaN is "not
// known". It replaces what was Set; nil goes back to that.
func (g *Gauge) SetFunc(read func() float64) {
	if read == nil {
		g.read.Store(nil)
		return
	}
	g.read.Store(&read)
}

// Value returns what a scrape would show, NaN when that is nothing.
func (g *Gauge) Value() float64 {
	if read := g.read.Load(); read != nil {
		return (*read)()
	}
	return math.Float64frombits(g.bits.Load())
}

// Describe implements prometheus.Collector.
func (g *Gauge) Describe(to chan<- *prometheus.Desc) { to <- g.desc }

// Collect implements prometheus.Collector.
func (g *Gauge) Collect(to chan<- prometheus.Metric) {
	value := g.Value()
	if math.IsNaN(value) {
		return
	}
	metric, err := prometheus.NewConstMetric(g.desc, prometheus.GaugeValue, value)
	if err != nil {
		metric = prometheus.NewInvalidMetric(g.desc, err)
	}
	to <- metric
}
