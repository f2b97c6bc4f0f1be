package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/desk"
	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
)

// examination asks one server.
type examination struct {
	source, part string
	ask          func(ctx context.Context) (diagnose.Report, error)
	// repair is what to do when it can't be asked at all.
	repair string
}

// examine asks all servers at the same time, each within its own limit, and returns what they say in a fixed order.
func examine(ctx context.Context, c *config.Config, chosen []config.Source, log zerolog.Logger, limit time.Duration) []Finding {
	list := examinations(c, chosen, log)
	reports := make([]diagnose.Report, len(list))
	var all sync.WaitGroup
	for i, e := range list {
		all.Go(func() { reports[i] = e.run(ctx, limit) })
	}
	all.Wait()
	found := []Finding{}
	for i, e := range list {
		for _, f := range reports[i].Findings {
			found = append(found, Finding{Source: e.source, Part: e.part, Finding: f})
		}
	}
	return found
}

// run makes a failure of asking a finding. What was found before it counts as well.
func (e examination) run(ctx context.Context, limit time.Duration) diagnose.Report {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	report, err := e.ask(bounded)
	switch {
	case err == nil:
	case errors.Is(bounded.Err(), context.DeadlineExceeded):
		report.Fail(e.part+" answers", fmt.Sprintf("no answer within %s", limit), e.repair)
	default:
		report.Fail(e.part+" answers", err.Error(), e.repair)
	}
	return report
}

func examinations(c *config.Config, chosen []config.Source, log zerolog.Logger) []examination {
	var list []examination
	for _, s := range chosen {
		list = append(list, examination{
			source: s.Name, part: "primary", repair: "look at source.primary: address, user, password, tls",
			ask: func(ctx context.Context) (diagnose.Report, error) {
				cfg, err := wire.Primary(c, s)
				if err != nil {
					return diagnose.Report{}, err
				}
				return store.Inspect(ctx, cfg)
			},
		}, examination{
			source: s.Name, part: "binlog", repair: "look at source." + readerKey(s) + ": address, user, password, tls",
			ask: func(ctx context.Context) (diagnose.Report, error) { return inspectBinlog(ctx, c, s) },
		}, examination{
			source: s.Name, part: "kafka", repair: "look at kafka: brokers, tls, sasl",
			ask: func(ctx context.Context) (diagnose.Report, error) { return inspectKafka(ctx, c, s, log) },
		}, examination{
			source: s.Name, part: "checkpoint", repair: "look at redis.url",
			ask: func(ctx context.Context) (diagnose.Report, error) { return inspectCheckpoint(ctx, c, s, log) },
		})
	}
	return append(list, examination{
		part: "redis", repair: "look at redis.url",
		ask: func(ctx context.Context) (diagnose.Report, error) { return inspectRedis(ctx, c, log) },
	})
}

func readerKey(s config.Source) string {
	if s.Replica != nil {
		return "replica"
	}
	return "primary"
}

func inspectBinlog(ctx context.Context, c *config.Config, s config.Source) (diagnose.Report, error) {
	var report diagnose.Report
	if s.Mode == string(relay.Sweep) {
		report.OK("mode", "source.mode is sweep: no binlog is read")
		return report, nil
	}
	cfg, err := wire.Stream(c, s)
	if err != nil {
		return report, err
	}
	return canal.Inspect(ctx, cfg)
}

func inspectRedis(ctx context.Context, c *config.Config, log zerolog.Logger) (diagnose.Report, error) {
	cfg, err := wire.Redis(c)
	if err != nil {
		return diagnose.Report{}, err
	}
	s, err := checkpoint.Open(cfg, log)
	if err != nil {
		return diagnose.Report{}, err
	}
	report, err := s.Inspect(ctx)
	return report, errors.Join(err, s.Close())
}

// mostTopics bounds how many topics are looked at.
const mostTopics = 100

func inspectKafka(ctx context.Context, c *config.Config, s config.Source, log zerolog.Logger) (diagnose.Report, error) {
	cfg, err := wire.Kafka(c, s.Name)
	if err != nil {
		return diagnose.Report{}, err
	}
	client, err := kafka.Open(ctx, cfg, log)
	if err != nil {
		return diagnose.Report{}, err
	}
	topics, problem := topicsOf(ctx, c, s, log)
	report, err := client.Inspect(ctx, topics[:min(len(topics), mostTopics)])
	switch {
	case problem != nil:
		report.Add(diagnose.Finding{
			Check: "topics in the table", Means: "the table can't be read, so only the topics that the routes name were looked at: " + problem.Error(),
			Repair: "see what was found about the primary",
		})
	case len(topics) == 0:
		report.OK("topics in the table", "the table names no topic yet")
	case len(topics) > mostTopics:
		report.OK("topics in the table", fmt.Sprintf("%d of %d were looked at", mostTopics, len(topics)))
	}
	if c.Acks.Enabled && c.Acks.Topic != "" && err == nil {
		report.Merge(client.InspectReports(ctx, c.Acks.Topic, wire.AckGroup(c, s.Name)))
	}
	return report, errors.Join(err, client.Close())
}

// topicsOf returns the topics that rows go to: of unfinished rows first, then of the newest, then what routes name.
func topicsOf(ctx context.Context, c *config.Config, s config.Source, log zerolog.Logger) (topics []string, problem error) {
	route, err := router.New(wire.Router(c, s))
	if err != nil {
		return nil, err
	}
	add := func(name string) {
		if target := route.Topic(&outbox.Row{Topic: name}); !slices.Contains(topics, target) {
			topics = append(topics, target)
		}
	}
	problem = eachTopic(ctx, &desk.Scope{Config: c, Source: s, Log: log}, add)
	for _, r := range c.Router.Routes {
		if r.Topic != "" && !strings.Contains(r.Topic, "{") && !slices.Contains(topics, r.Topic) {
			topics = append(topics, r.Topic)
		}
	}
	return topics, problem
}

func eachTopic(ctx context.Context, s *desk.Scope, add func(string)) (err error) {
	rows, err := s.Rows(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, rows.Close()) }()
	stats, err := rows.Stats(ctx)
	if err != nil {
		return err
	}
	unfinished := map[string]bool{}
	for _, t := range stats.Tables {
		for _, topic := range t.Topics {
			unfinished[topic.Topic] = true
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(unfinished)) {
		add(topic)
	}
	recent, err := rows.RecentTopics(ctx)
	for _, topic := range recent {
		add(topic)
	}
	return err
}
