package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/wire"
)

func (a *app) configCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "config",
		Short: "Check, print and describe the configuration",
		Example: `  outbox-relay config check
  outbox-relay config print -o json
  outbox-relay config schema > outbox-relay.schema.json`,
	}
	cmd.AddCommand(
		&cobra.Command{
			Use:   "check",
			Short: "Report everything that is wrong with the configuration",
			Long: `Report everything that is wrong with the configuration at once, each problem with its key, line and column. Prints ok,
and what should not stay as it is. It asks no server: that is what doctor does.`,
			Example: `  outbox-relay config check
  outbox-relay config check --config staging.yaml -o json
  outbox-relay config check --set kafka.compression=zstd`,
			Args: noArgs, ValidArgsFunction: noFiles,
			RunE: func(*cobra.Command, []string) error { return a.configCheck() },
		},
		&cobra.Command{
			Use:   "print",
			Short: "Print the effective configuration, secrets as ***",
			Long: `Print what file, environment and --set come to over the defaults, with every secret as ***. As a table it prints YAML,
which config check reads.`,
			Example: `  outbox-relay config print
  outbox-relay config print --set limits.in_flight=50000 -o json`,
			Args: noArgs, ValidArgsFunction: noFiles,
			RunE: func(*cobra.Command, []string) error { return a.configPrint() },
		},
		&cobra.Command{
			Use:   "schema",
			Short: "Print the JSON schema of the configuration file",
			Long:  `Print the JSON schema of the configuration file, for editors that complete and check YAML by it.`,
			Example: `  outbox-relay config schema > outbox-relay.schema.json
  # first line of outbox-relay.yaml:
  #   yaml-language-server: $schema=outbox-relay.schema.json`,
			Args: noArgs, ValidArgsFunction: noFiles,
			RunE: func(*cobra.Command, []string) error { return a.configSchema() },
		},
	)
	return cmd
}

// checkView is what config check found.
type checkView struct {
	OK       bool             `json:"ok"`
	File     string           `json:"file,omitempty"`
	Problems []config.Problem `json:"problems"`
	Warnings []string         `json:"warnings"`
}

// Text writes ok and the warnings, or the problems.
func (v checkView) Text(p *render.Page) {
	for _, problem := range v.Problems {
		p.Line("%s", problem)
	}
	for _, warning := range v.Warnings {
		p.Line("warning: %s", warning)
	}
	if v.OK {
		p.Line("ok")
	}
}

func (a *app) configCheck() error {
	res, err := config.Load(config.Input{File: a.flags.config, Sets: a.flags.sets, Environ: a.environ})
	view := checkView{Problems: []config.Problem{}, Warnings: []string{}}
	var broken *config.Error
	switch {
	case errors.As(err, &broken):
		view.Problems = broken.Problems
	case err != nil:
		return exit(ExitUsage, err)
	default:
		view.File, view.Warnings = res.File, append(view.Warnings, res.Warnings...)
		if err = wire.Check(res.Config); err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				view.Problems = append(view.Problems, config.Problem{Message: line})
			}
		}
	}
	view.OK = err == nil
	if err != nil && a.format == render.Table {
		return exit(ExitUsage, err)
	}
	if printed := a.print(view); printed != nil || err == nil {
		return printed
	}
	return exit(ExitUsage, &shownError{err})
}

func (a *app) configPrint() error {
	c, err := a.load()
	if err != nil {
		return err
	}
	if a.format == render.JSON {
		encoder := json.NewEncoder(a.streams.Out)
		encoder.SetEscapeHTML(false)
		encoder.SetIndent("", "  ")
		return encoder.Encode(c.Redacted())
	}
	text, err := c.Print()
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(a.streams.Out, text)
	return err
}

func (a *app) configSchema() error {
	schema, err := config.Schema()
	if err != nil {
		return err
	}
	_, err = a.streams.Out.Write(schema)
	return err
}
