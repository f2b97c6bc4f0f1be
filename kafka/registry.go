package kafka

import "github.com/rcrowley/go-metrics"

// noMetrics takes sarama's own metrics and drops them. sarama's default registry updates some twenty meters and
// histograms for each request and keeps a ticker goroutine for ever; nobody reads them, since ours are in package
// metrics. (metrics.UseNilMetrics would do the same for the whole process.)
type noMetrics struct{}

var _ metrics.Registry = noMetrics{}

// GetOrRegister returns a metric of the asked-for kind that does nothing.
func (noMetrics) GetOrRegister(_ string, metric any) any {
	switch make := metric.(type) {
	case func() metrics.Meter:
		return metrics.NilMeter{}
	case func() metrics.Histogram:
		return metrics.NilHistogram{}
	case func() metrics.Counter:
		return metrics.NilCounter{}
	case func() metrics.Gauge:
		return metrics.NilGauge{}
	case func() metrics.Timer:
		return metrics.NilTimer{}
	default:
		return make
	}
}

func (noMetrics) Each(func(string, any))            {}
func (noMetrics) Get(string) any                    { return nil }
func (noMetrics) GetAll() map[string]map[string]any { return nil }
func (noMetrics) Register(string, any) error        { return nil }
func (noMetrics) RunHealthchecks()                  {}
func (noMetrics) Unregister(string)                 {}
func (noMetrics) UnregisterAll()                    {}
