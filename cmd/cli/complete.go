package cli

import (
	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/config"
)

// complete tells the shell what may stand behind the flags that all commands share.
func (a *app) complete(root *cobra.Command) {
	suggest(root, "output", render.Formats)
	suggest(root, "source", a.sourceNames)
}

// suggest completes a flag from a list.
func suggest(cmd *cobra.Command, flag string, values func() []string) {
	// It fails only for a flag that does not exist; a test completes each of them.
	_ = cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
		return values(), cobra.ShellCompDirectiveNoFileComp
	})
}

// sourceNames reads the names of the sources; a configuration that can't be read offers none.
func (a *app) sourceNames() []string {
	res, err := config.Load(config.Input{File: a.flags.config, Sets: a.flags.sets, Environ: a.environ})
	if err != nil {
		return nil
	}
	names := make([]string, len(res.Config.Sources))
	for i, s := range res.Config.Sources {
		names[i] = s.Name
	}
	return names
}

// noFiles keeps the shell from offering files as arguments.
func noFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveNoFileComp
}
