package console

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/internal/reports"
)

// Reporter is a source that takes consumers' reports. A source that is none refuses them.
type Reporter interface {
	// Report takes a report, or returns one of the errors of acks and report. It may be called concurrently.
	Report(ctx context.Context, r report.Report) (report.Counts, error)
}

// acks takes a report. It changes rows, so it is never open to everybody: without a configured token it is refused.
func (c *Console) acks(w http.ResponseWriter, r *http.Request) {
	if c.cfg.Token == "" {
		http.Error(w, "refused: reports change rows, so they need a token: set console.token", http.StatusForbidden)
		return
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, report.MaxBytes))
	if err != nil {
		if _, tooLarge := errors.AsType[*http.MaxBytesError](err); tooLarge {
			http.Error(w, "the report is too large: send fewer msg_ids at a time", http.StatusRequestEntityTooLarge)
			return
		}
		http.Error(w, "the report did not arrive whole: send it again", http.StatusBadRequest)
		return
	}
	rep, err := report.Decode(body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if name := r.URL.Query().Get("source"); name != "" {
		rep.Source = name
	}
	source, problem := c.reporter(rep.Source)
	if problem != "" {
		http.Error(w, problem, http.StatusNotFound)
		return
	}
	counts, err := source.Report(r.Context(), rep)
	if err != nil {
		c.refuseReport(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(counts); err != nil {
		c.log.Debug().Err(err).Msg("the answer to a report was not taken")
	}
}

// reporter finds the source that a report is for: the one that it names, or the only one.
func (c *Console) reporter(name string) (Reporter, string) {
	names := make([]string, len(c.sources))
	for i, s := range c.sources {
		names[i] = s.Name()
		if s.Name() != name && (name != "" || len(c.sources) > 1) {
			continue
		}
		if reporter, ok := s.(Reporter); ok {
			return reporter, ""
		}
		return nil, reports.ErrOff.Error()
	}
	if name == "" {
		return nil, `several sources are relayed: name one by "source" in the report (the outbox_source header of the messages): ` + strings.Join(names, ", ")
	}
	return nil, "no such source is relayed here; there are: " + strings.Join(names, ", ")
}

// refuseReport answers what the consumer is to do. What went wrong with the database is in the log, not in the answer.
func (c *Console) refuseReport(w http.ResponseWriter, err error) {
	switch {
	case errors.Is(err, report.ErrInvalid):
		http.Error(w, err.Error(), http.StatusBadRequest)
	case errors.Is(err, reports.ErrOff):
		http.Error(w, err.Error(), http.StatusNotFound)
	case errors.Is(err, reports.ErrNotLeading):
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
	case errors.Is(err, reports.ErrBusy):
		w.Header().Set("Retry-After", "1")
		http.Error(w, err.Error(), http.StatusTooManyRequests)
	default:
		c.log.Error().Err(err).Msg("a report could not be taken")
		w.Header().Set("Retry-After", "5")
		http.Error(w, "the report could not be taken, see the relay's log: send it again", http.StatusServiceUnavailable)
	}
}
