// Package metrics is what Prometheus sees of the relay: every metric's name, help, labels and buckets in one place.
//
// A Registry holds one Source for each configured source; the pipeline calls methods on a Source's fields and needs no
// import of the Prometheus client. The package guarantees that a scrape never blocks the pipeline, that the number of
// topic labels is bounded, and that a value nobody knows yet is left out of the scrape instead of being a wrong zero.
// What the numbers mean is the business of those who set them.
package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Namespace begins every metric's name.
const Namespace = "outbox_relay"

// scrapesAtOnce bounds concurrent scrapes: two Prometheus servers and a person; more answer 503.
const scrapesAtOnce = 4

// Registry holds the metrics of one process.
type Registry struct {
	version string
	prom    *prometheus.Registry

	mu      sync.Mutex
	sources map[string]*Source
}

// New returns a Registry with the Go runtime's and the process' own metrics; version becomes a label of build_info.
func New(version string) *Registry {
	r := &Registry{
		version: strings.ToValidUTF8(version, "?"),
		prom:    prometheus.NewRegistry(),
		sources: make(map[string]*Source),
	}
	// A fresh registry has nothing these could clash with, so neither can fail.
	_ = r.prom.Register(collectors.NewGoCollector())
	_ = r.prom.Register(collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return r
}

// Source returns the metrics of the source called name, the same ones on every call.
func (r *Registry) Source(name string) *Source {
	name = strings.ToValidUTF8(name, "?")
	r.mu.Lock()
	defer r.mu.Unlock()
	if s, ok := r.sources[name]; ok {
		return s
	}
	b := builder{source: name}
	s := newSource(&b, r.version)
	// The names differ by their source label and TestDefinitions proves that they are valid, so Register cannot refuse.
	_ = b.register(r.prom)
	r.sources[name] = s
	return s
}

// Handler answers a scrape, in the text format or, when asked, in OpenMetrics or protobuf (with native histograms).
func (r *Registry) Handler() http.Handler {
	return promhttp.HandlerFor(r.prom, promhttp.HandlerOpts{
		ErrorHandling:       promhttp.ContinueOnError,
		MaxRequestsInFlight: scrapesAtOnce,
		EnableOpenMetrics:   true,
	})
}

// Gatherer gives the registry to those who read it without HTTP, such as tests.
func (r *Registry) Gatherer() prometheus.Gatherer { return r.prom }

func (b *builder) register(to prometheus.Registerer) error {
	var errs []error
	for i, c := range b.collectors {
		if err := to.Register(c); err != nil {
			errs = append(errs, fmt.Errorf("register metric %s: %w", b.definitions[i].name, err))
		}
	}
	return errors.Join(errs...)
}
