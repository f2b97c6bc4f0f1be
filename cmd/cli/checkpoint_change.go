package cli

import (
	"errors"
	"fmt"
	"os"
	"os/user"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/desk/rewind"
	"example.com/outbox-relay/store"
)

// changeFlags are what all commands that move the checkpoint take.
type changeFlags struct {
	yes, dryRun, force bool
	reason             string
	patience           time.Duration
}

func (f *changeFlags) register(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.BoolVar(&f.yes, "yes", false, "do it; without this the command only says what would follow")
	flags.BoolVar(&f.dryRun, "dry-run", false, "only say what would follow, as without --yes")
	flags.BoolVar(&f.force, "force", false, "do it even though a relay leads the source: it is fenced off and begins again from the new position")
	flags.StringVar(&f.reason, "reason", "", "why, for the history: any `TEXT`")
	flags.DurationVar(&f.patience, "measure", 5*time.Second, "read the binlog in question for this `TIME` at most, and estimate the rest; 0 reads nothing")
}

func (f *changeFlags) check(cmd *cobra.Command) error {
	switch {
	case f.yes && f.dryRun:
		return misused(cmd, errors.New("--yes and --dry-run contradict each other"))
	case f.patience < 0:
		return misused(cmd, errors.New("--measure must not be negative"))
	}
	return nil
}

// The places that a checkpoint can be reset to.
const (
	toNow      = "now"
	toEarliest = "earliest"
	toTable    = "table"
)

func (a *app) resetCommand() *cobra.Command {
	var f changeFlags
	var to string
	actions := map[string]rewind.Action{toNow: rewind.ResetToNow, toEarliest: rewind.ResetToEarliest, toTable: rewind.ResetToTable}
	places := []string{
		toNow + "\tthe binlog's present end; what is pending is the sweeper's",
		toEarliest + "\tthe oldest binlog there is; what was sent is skipped",
		toTable + "\tforget the position: the table alone says what is to be sent",
	}
	cmd := &cobra.Command{
		Use:   "reset --to now|earliest|table",
		Short: "Move the checkpoint to one end of the binlog, or forget it",
		Long: `Move the checkpoint. Without --yes it changes nothing and says what would follow, in rows and bytes.

  now       the stream goes on at the binlog's present end. Pending rows from before are handed to the sweeper.
  earliest  the stream reads again all the binlog that there is. Rows that are sent, consumed, dead or discarded are
            skipped; rows that are gone (deleted, or archived to a history that can't be read) are sent again.
  table     the position is forgotten. The next start begins at the binlog's end of then (or where checkpoint.start says)
            and hands every pending row to the sweeper. This is what helps when the position is nonsense.

It is refused while a relay leads the source, unless --force. What was done can be seen in checkpoint history, with user,
host, time and --reason, and be undone by checkpoint undo.`,
		Example: `  outbox-relay checkpoint reset --to table
  outbox-relay checkpoint reset --to table --yes --reason "primary rebuilt from a backup, ticket 4711"
  outbox-relay checkpoint reset --to earliest --measure 30s`,
		Args: noArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			action, known := actions[to]
			if !known {
				return misused(cmd, fmt.Errorf("--to must be %s, %s or %s", toNow, toEarliest, toTable))
			}
			return a.change(cmd, f, rewind.Request{Action: action})
		},
	}
	f.register(cmd)
	cmd.Flags().StringVar(&to, "to", "", "`PLACE`: now, earliest or table")
	suggest(cmd, "to", func() []string { return places })
	return cmd
}

func (a *app) setCommand() *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use:   "set FILE:POS|GTIDSET",
		Short: "Move the checkpoint to a position",
		Long: `Move the checkpoint to a place in the binlog, or behind a set of transactions. Without --yes it changes nothing and says
what would follow, in rows and bytes. A position from which the server can't go on is refused: one that does not exist,
is purged, or lies inside a transaction.

It is refused while a relay leads the source, unless --force; checkpoint undo goes back.`,
		Example: `  outbox-relay checkpoint set binlog.000012:4567
  outbox-relay checkpoint set 3E11FA47-71CA-11E1-9E33-C80AA9429562:1-77 --yes --reason "replay since noon"
  outbox-relay checkpoint set 0-1-4711        # MariaDB`,
		Args: cobra.ExactArgs(1), ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, args []string) error {
			target, err := rewind.ParseTarget(args[0])
			if err != nil {
				return misused(cmd, err)
			}
			return a.change(cmd, f, rewind.Request{Action: rewind.Set, Target: target})
		},
	}
	f.register(cmd)
	return cmd
}

func (a *app) undoCommand() *cobra.Command {
	var f changeFlags
	cmd := &cobra.Command{
		Use:   "undo",
		Short: "Put back what was there before the last reset, set or undo",
		Long: `Put back the checkpoint as it was before the last change by an operator: set, reset or undo. To undo twice is to do again.
Without --yes it changes nothing and says what would follow. It is refused while a relay leads the source, unless --force.`,
		Example: `  outbox-relay checkpoint undo
  outbox-relay checkpoint undo --yes --reason "wrong source"`,
		Args: noArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.change(cmd, f, rewind.Request{Action: rewind.Undo})
		},
	}
	f.register(cmd)
	return cmd
}

// change says what would follow from a move of the checkpoint and, with --yes, makes it.
func (a *app) change(cmd *cobra.Command, flags changeFlags, wanted rewind.Request) error {
	if err := flags.check(cmd); err != nil {
		return err
	}
	ctx := cmd.Context()
	wanted.Patience = flags.patience
	return a.withRows(ctx, func(s *desk.Scope, rows *store.Store) (err error) {
		move, err := rewind.Plan(ctx, s, rows, wanted)
		if errors.Is(err, canal.ErrCannotStream) {
			return exit(ExitSource, err)
		}
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, move.Close()) }()
		if !flags.yes {
			err := a.print(changeView{move.Outcome()})
			a.say("nothing was changed; run it again with --yes")
			return err
		}
		if err := move.Apply(ctx, operator(a.environ, flags.reason), flags.force); err != nil {
			return err
		}
		return a.print(changeView{move.Outcome()})
	})
}

// operator returns who runs the command, for the history. Behind sudo that is who called it.
func operator(environ []string, reason string) checkpoint.Who {
	who := checkpoint.Who{User: "unknown", Host: "unknown", Reason: reason}
	if current, err := user.Current(); err == nil {
		who.User = current.Username
	}
	for _, line := range environ {
		if name, ok := strings.CutPrefix(line, "SUDO_USER="); ok && name != "" && name != who.User {
			who.User += " (" + name + ")"
		}
	}
	if host, err := os.Hostname(); err == nil {
		who.Host = host
	}
	return who
}
