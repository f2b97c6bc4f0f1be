package cli

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
)

// root builds the command tree.
func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "outbox-relay",
		Short: "Bring the rows of a local message table (transactional outbox) to Kafka",
		Long: `outbox-relay tails the binlog of MySQL or MariaDB and publishes every committed row of the local message table
to Kafka, in order and at least once. It marks the rows it has sent and keeps its position in Redis.

Results go to stdout, everything else to stderr. Exit codes: 0 done; 1 failed while running; 2 wrong usage or
configuration, nothing was touched; 3 the source can't be streamed and policy forbids going on; 4 lost leadership and
could not hand over; 5 a check found problems; 130 interrupted twice.`,
		Example: `  outbox-relay config check
  outbox-relay doctor
  outbox-relay run
  outbox-relay status --watch
  outbox-relay messages list --status dead`,
		SilenceUsage:      true,
		SilenceErrors:     true,
		PersistentPreRunE: func(*cobra.Command, []string) error { return a.checkFlags() },
	}
	root.SetIn(a.streams.In)
	root.SetOut(a.streams.Out)
	root.SetErr(a.streams.Err)
	root.SetFlagErrorFunc(misused)
	flags := root.PersistentFlags()
	flags.StringVar(&a.flags.config, "config", "", "configuration `FILE` (default: outbox-relay.yaml, then /etc/outbox-relay/outbox-relay.yaml)")
	flags.StringArrayVar(&a.flags.sets, "set", nil, "set a configuration key, as `key.path=value` (repeatable)")
	flags.StringVarP(&a.flags.output, "output", "o", "table", "output `FORMAT`: table, json or yaml")
	flags.StringVar(&a.flags.source, "source", "", "the source to work on, by `NAME`, where several are configured")
	root.AddCommand(
		a.runCommand(), a.doctorCommand(), a.initCommand(), a.configCommand(), a.checkpointCommand(), a.messagesCommand(),
		a.sweepCommand(), a.archiveCommand(), a.statusCommand(), a.demoCommand(), a.healthcheckCommand(), a.versionCommand(),
	)
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultHelpCmd()
	root.InitDefaultCompletionCmd()
	a.complete(root)
	strict(root)
	return root
}

// checkFlags refuses what the commands' own flags can't.
func (a *app) checkFlags() error {
	format, err := render.Parse(a.flags.output)
	if err != nil {
		return exit(ExitUsage, err)
	}
	a.format = format
	return nil
}

// print writes a command's result.
func (a *app) print(view render.View) error { return render.Write(a.streams.Out, a.format, view) }

// say tells a person something beside the result.
func (a *app) say(format string, args ...any) {
	_, _ = fmt.Fprintf(a.streams.Err, format+"\n", args...)
}

// misused is wrong usage of a command.
func misused(cmd *cobra.Command, err error) error {
	return exit(ExitUsage, fmt.Errorf("%w; see %s --help", err, cmd.CommandPath()))
}

// strict makes every mistake in what was typed an error of wrong usage. By itself cobra shows the help and succeeds when
// the command is missing or unknown.
func strict(cmd *cobra.Command) {
	cmd.SuggestionsMinimumDistance = 2
	if cmd.HasSubCommands() && !cmd.Runnable() {
		cmd.Args = cobra.ArbitraryArgs
		cmd.RunE = wrongCommand
	}
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return misused(cmd, err)
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		strict(sub)
	}
}

// noArgs refuses arguments.
func noArgs(_ *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("unexpected argument %q", args[0])
	}
	return nil
}

// wrongCommand answers for a command that only has others under it.
func wrongCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		_, _ = fmt.Fprintln(cmd.ErrOrStderr(), cmd.UsageString())
		return misused(cmd, errors.New("name one of the commands"))
	}
	text := fmt.Sprintf("unknown command %q for %q", args[0], cmd.CommandPath())
	if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
		text += "; did you mean " + strings.Join(near, " or ") + "?"
	}
	return misused(cmd, errors.New(text))
}

// helpCommand is cobra's own, but for the exit code of an unknown topic.
func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:     "help [command]",
		Short:   "Help about any command",
		Example: "  outbox-relay help checkpoint reset",
		RunE: func(cmd *cobra.Command, args []string) error {
			found, rest, err := root.Find(args)
			if err != nil || found == nil || len(rest) > 0 {
				return misused(root, fmt.Errorf("no help about %q", strings.Join(args, " ")))
			}
			found.InitDefaultHelpFlag()
			return found.Help()
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			found, _, err := root.Find(args)
			if err != nil {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			var names []string
			for _, sub := range found.Commands() {
				if sub.IsAvailableCommand() {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
	}
}
