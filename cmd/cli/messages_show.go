package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

func (a *app) showCommand() *cobra.Command {
	var content bool
	cmd := &cobra.Command{
		Use:   "show ID|MSG_ID",
		Short: "Tell a message's whole story",
		Long: `Tell a message's whole story: where it stands, since when, how often it was refused and why, where it would be routed, and
what keeps it from being sent. Its content and headers are shown only with --content.`,
		Example: `  outbox-relay messages show 4711
  outbox-relay messages show order-8f14 --content
  outbox-relay messages show 4711 -o json`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.withRows(cmd.Context(), func(s *desk.Scope, rows *store.Store) error {
				return a.show(cmd.Context(), s, rows, args[0], content)
			})
		},
	}
	cmd.Flags().BoolVar(&content, "content", false, "show the content and the headers too")
	return cmd
}

// storyView is a message's whole story.
type storyView struct {
	messageLine
	Number      int64      `json:"status_number"`
	Key         string     `json:"key,omitempty"`
	Created     string     `json:"create_time"`
	Updated     string     `json:"update_time"`
	TraceParent string     `json:"trace_parent,omitempty"`
	BodyRef     string     `json:"body_ref,omitempty"`
	HeaderNames []string   `json:"header_names,omitempty"`
	Route       *routeView `json:"route,omitempty"`
	// Refusal is why the message can never be sent as it is.
	Refusal       string `json:"refusal,omitempty"`
	RefusalReason string `json:"refusal_reason,omitempty"`
	// Archived is where the message lies when it is no longer in its table.
	Archived *archivedView `json:"archived,omitempty"`
	// Stands says in words where the message stands and what to do about it.
	Stands []string `json:"stands"`
	// The next two only on demand.
	Headers *string `json:"headers,omitempty"`
	Content *string `json:"content,omitempty"`
}

// routeView is the record that the message would become.
type routeView struct {
	Topic string `json:"topic"`
	Key   string `json:"key"`
	Bytes int    `json:"record_bytes"`
}

type storiesView struct {
	Messages []storyView `json:"messages"`
}

// Text writes one block for each message.
func (v storiesView) Text(p *render.Page) {
	for i := range v.Messages {
		p.Blank()
		v.Messages[i].text(p)
	}
}

func (v *storyView) text(p *render.Page) {
	p.Field("table", "%s", v.Table)
	p.Field("id", "%s", v.ID)
	p.Field("msg_id", "%s", v.MsgID)
	p.Field("topic", "%s", v.Topic)
	p.Field("key", "%s", v.Key)
	p.Field("status", "%s", v.Status)
	if v.Archived != nil {
		p.Field("archived", "in %s since %s", v.Archived.Table, v.Archived.At)
	}
	p.Field("retries", "%d", v.Retries)
	p.Field("created", "%s (%s ago)", v.Created, seconds(v.Age))
	p.Field("updated", "%s", v.Updated)
	if v.Due != nil {
		p.Field("next retry", "%s (%s)", v.NextRetry, dueText(*v.Due))
	}
	p.Field("last error", "%s", v.LastError)
	p.Field("size", "%s", human.Bytes(uint64(max(v.Bytes, 0))))
	p.Field("staged at", "%s", v.BodyRef)
	p.Field("headers", "%s", strings.Join(v.HeaderNames, ", "))
	p.Field("trace", "%s", v.TraceParent)
	if v.Route != nil {
		p.Field("goes to", "topic %s with key %s, %s at most", v.Route.Topic, v.Route.Key, human.Bytes(uint64(max(v.Route.Bytes, 0))))
	}
	if v.Refusal != "" {
		p.Field("can't go", "%s (%s)", v.Refusal, v.RefusalReason)
	}
	for _, line := range v.Stands {
		p.Line("- %s", line)
	}
	if v.Headers != nil {
		p.Line("headers: %s", *v.Headers)
	}
	if v.Content != nil {
		p.Line("content:")
		p.Line("%s", *v.Content)
	}
}

func (a *app) show(ctx context.Context, s *desk.Scope, rows *store.Store, name string, content bool) error {
	found, err := rows.Show(ctx, name)
	if err != nil {
		return err
	}
	archived, err := a.archivedStories(ctx, rows, name, content)
	if err != nil {
		return err
	}
	if len(found)+len(archived) == 0 {
		return fmt.Errorf("no message has the id or msg_id %q in the tables of source %s, nor in their histories; look for it with outbox-relay messages list", name, s.Source.Name)
	}
	route, err := router.New(wire.Router(s.Config, s.Source))
	if err != nil {
		return exit(ExitUsage, err)
	}
	checkpoints, err := s.Checkpoints()
	if err != nil {
		return err
	}
	defer func() { _ = checkpoints.Close() }() // only read, if at all
	led := s.Leader(ctx, rows, checkpoints)
	view := storiesView{}
	for i := range found {
		m := &found[i]
		story := storyOf(rows, m, content)
		story.routed(route, m)
		if story.Stands, err = stands(ctx, rows, m, route, led, story.Refusal); err != nil {
			return err
		}
		reports, err := reportedBy(ctx, s.Config, rows, m)
		if err != nil {
			return err
		}
		story.Stands = append(story.Stands, reports...)
		view.Messages = append(view.Messages, story)
	}
	view.Messages = append(view.Messages, archived...)
	return a.print(view)
}

func storyOf(rows *store.Store, m *store.Message, content bool) storyView {
	v := storyView{
		messageLine: lineOf(rows, m), Number: m.Number, Key: printable(m.Key), Created: m.Created, Updated: m.Updated,
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

func (v *storyView) routed(route *router.Router, m *store.Message) {
	row := m.Row
	if row.BodyRef != "" { // what it is, and what would be found in it, only Kafka knows
		row.Content = []byte("{}")
	}
	rec, err := route.Route(&row, words.PositionSweep)
	if err == nil {
		v.Route = &routeView{Topic: rec.Topic, Key: printable(rec.Key), Bytes: rec.Size()}
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
