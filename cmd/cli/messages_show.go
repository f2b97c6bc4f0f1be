package cli

import (
	"context"
	"strings"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/desk/messages"
	"example.com/outbox-relay/internal/human"
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

func (a *app) show(ctx context.Context, s *desk.Scope, rows *store.Store, name string, content bool) error {
	stories, err := messages.Show(ctx, s, rows, name, content)
	if stories.HistoryProblem != "" {
		a.say("the history was not looked at: %s", stories.HistoryProblem)
	}
	if err != nil {
		return err
	}
	return a.print(storiesView{stories})
}

// storiesView shows the stories of messages.
type storiesView struct{ messages.Stories }

// Text writes one block for each message.
func (v storiesView) Text(p *render.Page) {
	for i := range v.Messages {
		p.Blank()
		storyText(p, &v.Messages[i])
	}
}

func storyText(p *render.Page, v *messages.Story) {
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
