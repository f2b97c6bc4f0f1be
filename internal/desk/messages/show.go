package messages

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"unicode/utf8"

	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// Story is a message's whole story.
type Story struct {
	Line
	Number      int64    `json:"status_number"`
	Key         string   `json:"key,omitempty"`
	Created     string   `json:"create_time"`
	Updated     string   `json:"update_time"`
	TraceParent string   `json:"trace_parent,omitempty"`
	BodyRef     string   `json:"body_ref,omitempty"`
	HeaderNames []string `json:"header_names,omitempty"`
	Route       *Route   `json:"route,omitempty"`
	// Refusal is why the message can never be sent as it is.
	Refusal       string `json:"refusal,omitempty"`
	RefusalReason string `json:"refusal_reason,omitempty"`
	// Archived is where the message lies when it is no longer in its table.
	Archived *Archived `json:"archived,omitempty"`
	// Stands says in words where the message stands and what to do about it.
	Stands []string `json:"stands"`
	// The next two only on demand.
	Headers *string `json:"headers,omitempty"`
	Content *string `json:"content,omitempty"`
}

// Route is the record that the message would become.
type Route struct {
	Topic string `json:"topic"`
	Key   string `json:"key"`
	Bytes int    `json:"record_bytes"`
}

// Stories are those of all messages of a name.
type Stories struct {
	Messages []Story `json:"messages"`
	// HistoryProblem is why the histories were not looked at, "" when they were.
	HistoryProblem string `json:"-"`
}

// Show returns the whole story of each message of a name, an id or a msg_id, also of archived ones. Contents and headers are
// left out unless content is set.
func Show(ctx context.Context, s *desk.Scope, rows *store.Store, name string, content bool) (Stories, error) {
	view := Stories{}
	found, err := rows.Show(ctx, name)
	if err != nil {
		return view, err
	}
	archived, problem, err := archivedStories(ctx, s, rows, name, content)
	if err != nil {
		return view, err
	}
	view.HistoryProblem = problem
	if len(found)+len(archived) == 0 {
		return view, fmt.Errorf("no message has the id or msg_id %q in the tables of source %s, nor in their histories; look for it with outbox-relay messages list", name, s.Source.Name)
	}
	route, err := router.New(wire.Router(s.Config, s.Source))
	if err != nil {
		return view, desk.Unusable(err)
	}
	checkpoints, err := s.Checkpoints()
	if err != nil {
		return view, err
	}
	defer func() { _ = checkpoints.Close() }() // only read, if at all
	taken, err := wire.Acks(s.Config, rows)
	if err != nil {
		return view, err
	}
	led := s.Leader(ctx, rows, checkpoints)
	for i := range found {
		m := &found[i]
		story := storyOf(rows, m, content)
		story.routed(route, m)
		if story.Stands, err = stands(ctx, rows, m, route, led, story.Refusal); err != nil {
			return view, err
		}
		reports, err := reportedBy(ctx, s.Config, taken, m)
		if err != nil {
			return view, err
		}
		story.Stands = append(story.Stands, reports...)
		view.Messages = append(view.Messages, story)
	}
	view.Messages = append(view.Messages, archived...)
	return view, nil
}

func storyOf(rows *store.Store, m *store.Message, content bool) Story {
	v := Story{
		Line: LineOf(rows, m), Number: m.Number, Key: printable(m.Key), Created: m.Created, Updated: m.Updated,
		TraceParent: m.TraceParent, BodyRef: m.BodyRef, HeaderNames: headerNames(m.Headers),
	}
	if content {
		body := printable(m.Content)
		v.Content = &body
		if len(m.Headers) > 0 {
			headers := printable(m.Headers)
			v.Headers = &headers
		}
	}
	return v
}

func (v *Story) routed(route *router.Router, m *store.Message) {
	row := m.Row
	if row.BodyRef != "" { // what it is, and what would be found in it, only Kafka knows
		row.Content = []byte("{}")
	}
	rec, err := route.Route(&row, words.PositionSweep)
	if err == nil {
		v.Route = &Route{Topic: rec.Topic, Key: printable(rec.Key), Bytes: rec.Size()}
		return
	}
	v.Refusal, v.RefusalReason = err.Error(), words.RefusedUnroutable
	if refusal, ok := errors.AsType[*router.Refusal](err); ok {
		v.RefusalReason = refusal.Reason
	}
}

// printable shows bytes that are no text as what they are.
func printable(b []byte) string {
	if utf8.Valid(b) {
		return string(b)
	}
	return fmt.Sprintf("%q", b)
}

// headerNames lists the names without the values, which are part of the payload.
func headerNames(text []byte) []string {
	if len(text) == 0 {
		return nil
	}
	var headers map[string]json.RawMessage
	if json.Unmarshal(text, &headers) != nil {
		return []string{"(no JSON object)"}
	}
	return slices.Sorted(maps.Keys(headers))
}
