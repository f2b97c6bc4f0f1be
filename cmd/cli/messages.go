package cli

import (
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

func (a *app) messagesCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "messages",
		Short: "Look at the rows themselves, send them again, give them up",
		Long: `Look at the rows of the local message table: which are stuck and why. Send failed and dead ones again (retry), or give them
up (discard). Contents are never shown unless asked for.`,
		Example: `  outbox-relay messages stats
  outbox-relay messages list --status dead
  outbox-relay messages show 4711
  outbox-relay messages retry --status dead --topic orders --yes`,
	}
	cmd.AddCommand(a.listCommand(), a.showCommand(), a.retryCommand(), a.discardCommand(), a.resendCommand(), a.statsCommand())
	return cmd
}

// filterFlags choose messages.
type filterFlags struct {
	statuses, msgIDs           []string
	topic, key, failure, table string
	olderThan, newerThan       time.Duration
	limit                      int
	cursor                     string
}

func (f *filterFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringSliceVar(&f.statuses, "status", nil, "only of these `STATUSES`: pending, sent, failed, consumed, dead, discarded")
	flags.StringVar(&f.topic, "topic", "", "only of this `TOPIC`, as the row names it")
	flags.StringVar(&f.key, "key", "", "only with this `KEY` (the key column; the msg_id where the table has none)")
	flags.DurationVar(&f.olderThan, "older-than", 0, "only those written longer ago than this `AGE`, as 10m")
	flags.DurationVar(&f.newerThan, "newer-than", 0, "only those written since this `AGE`")
	flags.StringVar(&f.failure, "error", "", "only those whose last error contains this `TEXT`")
	flags.StringVar(&f.table, "table", "", "only of this `TABLE`, where the source has several")
	flags.StringSliceVar(&f.msgIDs, "msg-id", nil, "only with these `MSG_IDS`; for one that looks like a number")
	suggest(cmd, "status", statusNames)
	for _, name := range []string{"topic", "key", "older-than", "newer-than", "error", "table", "msg-id"} {
		suggest(cmd, name, func() []string { return nil })
	}
}

// statusNames lists the statuses for completion.
func statusNames() []string {
	var names []string
	for status := range outbox.Foreign {
		names = append(names, status.String())
	}
	return names
}

// filters returns what the flags and arguments choose. Arguments are ids or else msg_ids; a message may be named by
// either, so both together make two filters.
func (f *filterFlags) filters(cmd *cobra.Command, args []string) ([]store.Filter, error) {
	base := store.Filter{
		Table: f.table, Topic: f.topic, Key: f.key, OlderThan: f.olderThan, NewerThan: f.newerThan, Error: f.failure,
		Limit: f.limit, Cursor: f.cursor,
	}
	var problems []error
	for _, name := range f.statuses {
		status, err := outbox.ParseStatus(strings.TrimSpace(name))
		problems = append(problems, err)
		base.Statuses = append(base.Statuses, status)
	}
	if f.olderThan < 0 || f.newerThan < 0 {
		problems = append(problems, errors.New("--older-than and --newer-than must not be negative"))
	}
	if f.limit < 0 {
		problems = append(problems, errors.New("--limit must not be negative"))
	}
	if err := errors.Join(problems...); err != nil {
		return nil, misused(cmd, err)
	}
	var ids []uint64
	msgIDs := slices.Clone(f.msgIDs)
	for _, arg := range args {
		named := store.ParseMessageName(arg)
		ids, msgIDs = append(ids, named.IDs...), append(msgIDs, named.MsgIDs...)
	}
	var filters []store.Filter
	if len(ids) > 0 {
		some := base
		some.IDs = ids
		filters = append(filters, some)
	}
	if len(msgIDs) > 0 {
		some := base
		some.MsgIDs = msgIDs
		filters = append(filters, some)
	}
	if len(filters) == 0 {
		filters = append(filters, base)
	}
	return filters, nil
}

// chosen reports whether anything narrows the choice.
func (f *filterFlags) chosen(args []string) bool {
	return len(args)+len(f.msgIDs)+len(f.statuses) > 0 || f.topic+f.key+f.failure+f.table != "" || f.olderThan+f.newerThan > 0
}
