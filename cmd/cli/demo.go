package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/demo"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/router"
)

type demoFlags struct {
	transactions, writers int
	rate                  float64
	topics                []string
	patience              time.Duration
}

func (a *app) demoCommand() *cobra.Command {
	var f demoFlags
	cmd := &cobra.Command{
		Use:   "demo",
		Short: "Write business transactions, consume their messages and print the verdict",
		Long: `Play the service and its consumer beside a running relay: write business transactions with messages to the configured
table, a tenth of them rolled back, consume the topics, and compare what was committed with what arrived. You may stop,
kill and restart the relay meanwhile. Exit code 5 when a message was lost, changed, out of order or never committed.

It writes as the user of source.primary, who needs SELECT and INSERT on the table and CREATE, INSERT and DROP on its
database, for a business table of its own that is dropped at the end. The messages stay in the table and in the topics,
which are created if they don't exist.`,
		Example: `  outbox-relay demo
  outbox-relay demo --transactions 500 --writers 2 -o json
  OUTBOX_RELAY_SOURCE__PRIMARY__USER=app OUTBOX_RELAY_SOURCE__PRIMARY__PASSWORD_FILE=app.secret outbox-relay demo`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.demo(cmd.Context(), f) },
	}
	flags := cmd.Flags()
	flags.IntVar(&f.transactions, "transactions", 10_000, "business transactions to write, by `NUMBER`")
	flags.IntVar(&f.writers, "writers", 8, "`NUMBER` of services that write at once")
	flags.Float64Var(&f.rate, "rate", 2000, "transactions a second of all writers together, by `NUMBER`; 0: full speed")
	flags.StringSliceVar(&f.topics, "topics", demo.Topics(), "`NAMES` of the topics to write to, separated by commas")
	flags.DurationVar(&f.patience, "patience", 30*time.Second, "give up when nothing has moved for such a `DURATION`")
	return cmd
}

func (a *app) demo(ctx context.Context, f demoFlags) error {
	cfg := demo.Config{
		Transactions: f.transactions, Writers: f.writers, Rate: f.rate, Topics: f.topics, Patience: f.patience,
	}
	if err := cfg.Validate(); err != nil {
		return exit(ExitUsage, err)
	}
	s, err := a.scope()
	if err != nil {
		return err
	}
	if err := stage(ctx, s, &cfg); err != nil {
		return err
	}
	report, err := demo.Run(ctx, cfg, func(p demo.Progress) {
		a.say("demo: %d of %d transactions, %d messages committed, %d consumed", p.Transactions, f.transactions, p.Committed, p.Delivered)
	})
	err = errors.Join(err, cfg.DB.Close())
	switch {
	case errors.Is(err, demo.ErrUnforeseen):
		return exit(ExitUsage, err)
	case err != nil:
		return err
	}
	if err := a.print(demoView{report}); err != nil {
		return err
	}
	if !report.OK {
		return exit(ExitProblems, &shownError{errors.New("the relay did not keep its word")})
	}
	return nil
}

// stage fills in where the demo plays: the table, the topics, and the ways to both.
func stage(ctx context.Context, s *desk.Scope, cfg *demo.Config) (err error) {
	if s.Source.Columns.Outbox() != outbox.DefaultColumns() || s.Source.Statuses.Outbox() != outbox.DefaultStatuses() {
		return exit(ExitUsage, errors.New("the demo writes the pattern's own columns and statuses: leave source.columns and source.statuses at their defaults"))
	}
	cfg.Source = s.Source.Name
	if cfg.Router, err = router.New(wire.Router(s.Config, s.Source)); err != nil {
		return exit(ExitUsage, err)
	}
	if err := stageTopics(ctx, s, cfg); err != nil {
		return err
	}
	return stageTable(ctx, s, cfg)
}

// stageTable chooses the first of the source's tables.
func stageTable(ctx context.Context, s *desk.Scope, cfg *demo.Config) error {
	rows, err := s.Rows(ctx)
	if err != nil {
		return fmt.Errorf("source %s: %w", s.Source.Name, err)
	}
	table := rows.Tables()[0]
	if err := rows.Close(); err != nil {
		return err
	}
	cfg.Table, cfg.KeyColumn, cfg.Headers = table.Table, table.HasKey, table.HasHeaders && table.HasTrace
	primary, err := wire.Primary(s.Config, s.Source)
	if err != nil {
		return exit(ExitUsage, err)
	}
	cfg.DB, err = mysql.OpenService(primary.Config, cfg.Writers+2, s.Log) // two more, which look on
	return err
}

// stageTopics creates the topics that are missing: a topic that comes late is another story than the demo's.
func stageTopics(ctx context.Context, s *desk.Scope, cfg *demo.Config) (err error) {
	settings, err := wire.Kafka(s.Config, s.Source.Name)
	if err != nil {
		return exit(ExitUsage, err)
	}
	client, err := kafka.Open(ctx, settings, s.Log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, client.Close()) }()
	for _, name := range cfg.Topics {
		topic, err := client.Topic(ctx, name)
		if err != nil {
			return err
		}
		if topic.Exists {
			continue
		}
		if err := client.CreateTopic(ctx, name); err != nil {
			return err
		}
	}
	sasl := settings.SASL
	cfg.Brokers = demo.Brokers{
		Addresses: settings.Brokers, TLS: settings.TLS,
		Mechanism: sasl.Mechanism, User: sasl.User, Password: sasl.Password, TokenFile: sasl.TokenFile,
	}
	return nil
}

// demoView shows a report.
type demoView struct{ *demo.Report }

// Text writes the verdict for a person.
func (v demoView) Text(p *render.Page) {
	p.Line("committed %d, delivered %d, lost %d, phantom %d, out of order %d, duplicates %d",
		v.Committed, v.Delivered, v.Lost, v.Phantom, v.OutOfOrder, v.Duplicates)
	p.Line("commit -> consumed: p50 %.1f ms, p99 %.1f ms, max %.1f ms", v.Latency.P50, v.Latency.P99, v.Latency.Max)
	p.Line("%d transactions in %.1f s; %d messages rolled back and never seen", v.Transactions, v.Seconds, v.RolledBack)
	for _, fault := range v.Faults {
		p.Line("FAULT %s", fault)
	}
	if v.Delivered == 0 {
		p.Line("nothing arrived: does a relay run for this source? outbox-relay status tells, outbox-relay doctor finds out why not")
	}
	p.Line("verdict: %s", map[bool]string{true: "good", false: "BAD"}[v.OK])
	p.Line("the messages stay in %s: DELETE FROM %s WHERE msg_id LIKE '%s%%' removes them", v.Table, v.Table, v.Prefix)
}
