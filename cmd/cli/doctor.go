package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/desk/doctor"
	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/internal/human"
)

func (a *app) doctorCommand() *cobra.Command {
	var timeout time.Duration
	var brief bool
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check everything that run needs, and tell how to repair what is wrong",
		Long: `Check everything that run needs: that database, Kafka and Redis can be reached; privileges, one by one; the binlog and its
retention; the tables and their index; the topics; the clocks. For each failure it says what it means and which
statement or command repairs it. It changes nothing.

Each server is asked by itself and for --timeout at most, so one that is away hides nothing of the others. Exits 5 when
something fails; warnings alone exit 0.`,
		Example: `  outbox-relay doctor
  outbox-relay doctor --brief
  outbox-relay doctor -o json | jq '.findings[] | select(.level == "failure")'`,
		Args: noArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if timeout <= 0 {
				return misused(cmd, errors.New("--timeout must be more than 0"))
			}
			return a.doctor(cmd.Context(), timeout, brief)
		},
	}
	cmd.Flags().DurationVar(&timeout, "timeout", 20*time.Second, "give each server this `TIME`")
	cmd.Flags().BoolVar(&brief, "brief", false, "leave out what is as it should be")
	return cmd
}

// doctorView shows what was found.
type doctorView struct{ doctor.Result }

// Text writes a line for each check, and below it what repairs it.
func (v doctorView) Text(p *render.Page) {
	part := ""
	for _, f := range v.Findings {
		if title := strings.TrimSpace(f.Source + " " + f.Part); title != part {
			p.Blank()
			p.Line("%s", title)
			part = title
		}
		mark := map[diagnose.Level]string{diagnose.OK: "ok  ", diagnose.Warning: "WARN", diagnose.Failure: "FAIL"}[f.Level]
		if f.Level == diagnose.OK && f.Repair != "" {
			mark = "note"
		}
		p.Line("  %s  %s: %s", mark, f.Check, f.Means)
		if f.Repair != "" {
			p.Line("        repair: %s", f.Repair)
		}
	}
	p.Blank()
	p.Line("%s, %s", human.Plural(int64(v.Failures), "failure"), human.Plural(int64(v.Warnings), "warning"))
}

func (a *app) doctor(ctx context.Context, timeout time.Duration, brief bool) error {
	c, err := a.load()
	if err != nil {
		return err
	}
	chosen, err := a.sources(c)
	if err != nil {
		return err
	}
	found, err := doctor.Examine(ctx, c, chosen, a.quiet(c), timeout)
	if err != nil {
		return err
	}
	if brief {
		found = found.Brief()
	}
	if err := a.print(doctorView{found}); err != nil {
		return err
	}
	if found.Failures > 0 {
		return exit(ExitProblems, &shownError{fmt.Errorf("%d checks failed", found.Failures)})
	}
	return nil
}
