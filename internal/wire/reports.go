package wire

import (
	"context"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/reports"
	"example.com/outbox-relay/internal/reports/acks"
	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// AckRules returns who has to report what.
func AckRules(c *config.Config, route *router.Router) acks.Rules {
	rules := acks.Rules{Groups: c.Acks.Groups}
	if route != nil {
		rules.TopicOf = func(name string) string { return route.Topic(&outbox.Row{Topic: name}) }
	}
	return rules
}

func ackTables(c *config.Config) acks.Config {
	return acks.Config{Table: c.Acks.Table, Needed: c.Acks.Enabled && AckRules(c, nil).NeedTable()}
}

// Acks returns the reports of the tables of rows, which is to stay open.
func Acks(c *config.Config, rows *store.Store) (*acks.Acks, error) {
	return acks.New(rows, ackTables(c))
}

// AckGroup returns the consumer group under which a source's relay reads the topic of reports.
func AckGroup(c *config.Config, source string) string {
	return strings.ReplaceAll(c.Acks.ConsumerGroup, "{source}", source)
}

// takeReports builds what takes reports, where the configuration wants it.
func (b *Source) takeReports(c *config.Config, s config.Source, client *kafka.Client, rows *store.Store, deps *relay.Deps, log zerolog.Logger) error {
	if !c.Acks.Enabled {
		return nil
	}
	taken, err := Acks(c, rows)
	if err != nil {
		return err
	}
	cfg := reports.Config{
		Source: s.Name, Rules: AckRules(c, deps.Router), Store: taken, Groups: readGroups{client, deps.Router}, Metrics: deps.Metrics,
	}
	if c.Acks.Topic != "" {
		cfg.OpenReader = func() (reports.Reader, error) {
			reader, err := client.NewReportReader(c.Acks.Topic, AckGroup(c, s.Name))
			if err != nil {
				return nil, err // not a nil *ReportReader in an interface
			}
			return reader, nil
		}
	}
	b.reports = reports.New(cfg, log)
	deps.WhileLeading = append(deps.WhileLeading, b.reports.Run)
	return nil
}

// Report takes a report for the source.
func (s *Starting) Report(ctx context.Context, r report.Report) (report.Counts, error) {
	source := s.opened()
	switch {
	case source == nil:
		return report.Counts{}, reports.ErrNotLeading
	case source.reports == nil:
		return report.Counts{}, reports.ErrOff
	}
	return source.reports.Report(ctx, r)
}

// readGroups tells how far consumer groups have read.
type readGroups struct {
	client *kafka.Client
	route  *router.Router
}

// ReadPast asks about the partition that the row went to.
func (g readGroups) ReadPast(ctx context.Context, group string, row *outbox.Row, moment time.Time) (bool, error) {
	rec, err := g.route.Route(row, words.PositionSweep)
	if err != nil {
		return false, err
	}
	partition, err := g.client.Partition(ctx, rec.Topic, rec.Key)
	if err != nil {
		return false, err
	}
	return g.client.ReadPast(ctx, group, rec.Topic, partition, moment)
}
