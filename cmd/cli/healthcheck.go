package cli

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/console"
	"example.com/outbox-relay/internal/desk"
)

// consoleClient asks the relay on this machine, or the one at a URL such as http://relay-1:9180.
func consoleClient(c *config.Config, address string) (*console.Client, error) {
	cfg := desk.ConsoleOf(c)
	if address != "" {
		parsed, err := url.Parse(address)
		if err != nil || parsed.Host == "" || parsed.User != nil || parsed.RawQuery != "" {
			return nil, exit(ExitUsage, errors.New("--url must be the console's address, as http://127.0.0.1:9180"))
		}
		if parsed.Scheme != "http" {
			return nil, exit(ExitUsage, errors.New("--url must begin with http://: the console speaks no TLS itself"))
		}
		cfg.Listen, cfg.Prefix = parsed.Host, strings.TrimSuffix(parsed.Path, "/")
		if parsed.Port() == "" {
			cfg.Listen = parsed.Hostname() + ":80"
		}
	}
	return console.NewClient(cfg), nil
}

// healthView is a relay's answer.
type healthView struct {
	Healthy bool   `json:"healthy"`
	Asked   string `json:"asked"`
	Problem string `json:"problem,omitempty"`
}

// Text writes ok or what is wrong.
func (v healthView) Text(p *render.Page) {
	if v.Healthy {
		p.Line("ok")
	}
}

func (a *app) healthcheckCommand() *cobra.Command {
	var live bool
	var address string
	var timeout time.Duration
	cmd := &cobra.Command{
		Use:   "healthcheck",
		Short: "Ask the running relay whether it is well: exit 0 or 1",
		Long: `Ask the console of the running relay (console.listen of the configuration, or --url) whether it is ready: leading and
connected, or standing by. With --live whether it lives at all, whatever its databases and brokers do. Exits 0 when it
is, 1 when not. Made for HEALTHCHECK in a Dockerfile, where there is no curl.`,
		Example: `  outbox-relay healthcheck
  outbox-relay healthcheck --live
  # in a Dockerfile:
  HEALTHCHECK --interval=10s CMD ["/outbox-relay", "healthcheck", "--live"]`,
		Args: noArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, cancel := context.WithTimeout(cmd.Context(), timeout)
			defer cancel()
			return a.healthcheck(ctx, live, address)
		},
	}
	cmd.Flags().BoolVar(&live, "live", false, "ask /livez instead of /readyz")
	cmd.Flags().StringVar(&address, "url", "", "ask the console at `URL` instead of console.listen")
	cmd.Flags().DurationVar(&timeout, "timeout", 5*time.Second, "wait at most this `TIME` for the answer")
	return cmd
}

func (a *app) healthcheck(ctx context.Context, live bool, address string) error {
	// Its warnings are the relay's to log, not every health check's.
	res, err := config.Load(config.Input{File: a.flags.config, Sets: a.flags.sets, Environ: a.environ})
	if err != nil {
		return exit(ExitUsage, err)
	}
	client, err := consoleClient(res.Config, address)
	if err != nil {
		return err
	}
	view := healthView{Asked: "/readyz"}
	ask := client.Ready
	if live {
		view.Asked, ask = "/livez", client.Live
	}
	err = ask(ctx)
	if view.Healthy = err == nil; !view.Healthy {
		view.Problem = err.Error()
		err = fmt.Errorf("the relay is not well: %w", err)
	}
	return errors.Join(a.print(view), err)
}
