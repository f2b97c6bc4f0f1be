// Package wire builds the parts of the relay from the configuration and connects them. It holds no logic of its own.
package wire

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/reports"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/order"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/sweeper"
)

// Owner names this process in locks and checkpoints.
func Owner() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown-host"
	}
	return fmt.Sprintf("%s/%d", host, os.Getpid())
}

// serverOf returns how a server of a source is reached.
func serverOf(s config.Source, server config.Server) (mysql.Config, error) {
	tls, err := server.TLSConfig()
	if err != nil {
		return mysql.Config{}, fmt.Errorf("source %s: %w", s.Name, err)
	}
	return mysql.Config{
		Addr: server.Address, User: server.User, Password: server.Password.Reveal(), TLS: tls, TLSOptional: server.TLSOptional(),
	}, nil
}

// Stream returns how the binlog of a source is read.
func Stream(c *config.Config, s config.Source) (canal.Config, error) {
	server, err := serverOf(s, s.Reader())
	if err != nil {
		return canal.Config{}, err
	}
	return canal.Config{
		Config: server, ServerID: s.ServerID, Name: s.Name, Tables: s.Tables, History: historyName(c), Columns: s.Columns.Outbox(), Statuses: s.Statuses.Outbox(),
	}, nil
}

// Primary returns how the rows of a source are marked.
func Primary(c *config.Config, s config.Source) (store.Config, error) {
	server, err := serverOf(s, s.Primary)
	if err != nil {
		return store.Config{}, err
	}
	return store.Config{
		Config: server, Tables: s.Tables, Columns: s.Columns.Outbox(), Statuses: s.Statuses.Outbox(),
		StreamUser: s.Reader().User, LockLease: c.Leader.Lease, History: historyName(c),
		Companions: []store.Companion{archiving(c), ackTables(c)},
	}, nil
}

// Kafka returns how the brokers are reached.
func Kafka(c *config.Config, source string) (kafka.Config, error) {
	k := c.Kafka
	tls, err := k.TLSConfig()
	if err != nil {
		return kafka.Config{}, fmt.Errorf("kafka: %w", err)
	}
	sasl := kafka.SASL{
		Mechanism: k.SASL.Mechanism, User: k.SASL.User, Password: k.SASL.Password.Reveal(), TokenFile: k.SASL.TokenFile,
	}
	return kafka.Config{
		Brokers: k.Brokers, ClientID: k.ClientID, Version: k.Version, TLS: tls, SASL: sasl, Compression: k.Compression,
		MaxMessageBytes: int(k.MaxMessageBytes), CreateTopics: k.CreateTopics, Source: source,
	}, nil
}

// Redis returns how the checkpoints are reached.
func Redis(c *config.Config) (checkpoint.Config, error) {
	tls, err := c.Redis.TLSConfig()
	if err != nil {
		return checkpoint.Config{}, fmt.Errorf("redis: %w", err)
	}
	urls := make([]string, len(c.Redis.URL))
	for i, u := range c.Redis.URL {
		urls[i] = u.Reveal()
	}
	return checkpoint.Config{URLs: urls, Password: c.Redis.Password.Reveal(), Prefix: c.Redis.Prefix, TLS: tls, Owner: Owner()}, nil
}

// Router returns how rows become records.
func Router(c *config.Config, s config.Source) router.Config {
	routes := make([]router.Route, len(c.Router.Routes))
	for i, r := range c.Router.Routes {
		routes[i] = router.Route(r)
	}
	return router.Config{
		Source: s.Name, Key: c.Router.Key, KeyColumn: s.Columns.Key, Routes: routes, Allow: c.Router.Allow,
		MaxMessageBytes: int(c.Kafka.MaxMessageBytes),
	}
}

// Relay returns how one source is relayed.
func Relay(c *config.Config, s config.Source) relay.Config {
	policy := retry.Policy{Backoff: c.Retry.Backoff, Jitter: c.Retry.Jitter, MaxRetries: c.Retry.MaxRetries}
	return relay.Config{
		Source: s.Name, By: Owner(), Mode: relay.Mode(s.Mode), Start: c.Checkpoint.Start, SaveInterval: c.Checkpoint.Interval,
		Limits: relay.Limits{
			InFlight: c.Limits.InFlight, InFlightBytes: int64(c.Limits.InFlightBytes), Unmarked: c.Limits.Unmarked,
			MarkBatch: c.Limits.MarkBatch, MarkDelay: c.Limits.MarkDelay,
		},
		Retry: policy, CreateTopics: c.Kafka.CreateTopics,
		DedupeOnRestart: c.Kafka.DedupeOnRestart == "on",
		DrainTimeout:    drainTimeout(c.Shutdown.Timeout),
		Order:           order.Config{Hold: c.Router.AfterDead == "hold", Relaxed: c.Router.Order == "relaxed"},
		Sweep: sweeper.Config{
			Interval: c.Sweep.Interval, Batch: c.Sweep.Batch, Grace: c.Sweep.Grace, Lease: relay.ClaimLease, Retry: policy,
		},
	}
}

// drainTimeout leaves a tenth of the time for closing connections.
func drainTimeout(whole time.Duration) time.Duration { return whole - whole/10 }

// Source is one source's relay with the connections that it was built from.
type Source struct {
	*relay.Relay
	reports *reports.Service // nil where no reports are taken
	close   []func() error
}

// Close closes the connections, after Run has returned.
func (s *Source) Close() error {
	var errs []error
	for _, closeOne := range slices.Backward(s.close) {
		errs = append(errs, closeOne())
	}
	return errors.Join(errs...)
}

// Open builds the relay of a source. It connects to the primary, to learn the tables; everything else may be away.
func Open(ctx context.Context, c *config.Config, s config.Source, m *metrics.Registry, log zerolog.Logger) (_ *Source, err error) {
	built := &Source{}
	defer func() {
		if err != nil {
			err = errors.Join(err, built.Close())
		}
	}()
	log = log.With().Str("source", s.Name).Logger()
	deps := relay.Deps{Metrics: m.Source(s.Name)}
	if deps.Router, err = router.New(Router(c, s)); err != nil {
		return nil, err
	}
	client, err := built.kafka(ctx, c, s, &deps, log)
	if err != nil {
		return nil, err
	}
	if err := built.redis(c, s, &deps, log); err != nil {
		return nil, err
	}
	rows, err := built.primary(ctx, c, s, &deps, log)
	if err != nil {
		return nil, err
	}
	if err := built.stream(c, s, &deps, log); err != nil {
		return nil, err
	}
	if err := built.takeReports(c, s, client, rows, &deps, log); err != nil {
		return nil, err
	}
	built.Relay = relay.New(Relay(c, s), deps, log)
	return built, nil
}

func (b *Source) kafka(ctx context.Context, c *config.Config, s config.Source, deps *relay.Deps, log zerolog.Logger) (*kafka.Client, error) {
	cfg, err := Kafka(c, s.Name)
	if err != nil {
		return nil, err
	}
	client, err := kafka.Open(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	b.close = append(b.close, client.Close)
	deps.Broker = broker{client}
	return client, nil
}

func (b *Source) redis(c *config.Config, s config.Source, deps *relay.Deps, log zerolog.Logger) error {
	cfg, err := Redis(c)
	if err != nil {
		return err
	}
	checkpoints, err := checkpoint.Open(cfg, log)
	if err != nil {
		return err
	}
	b.close = append(b.close, checkpoints.Close)
	deps.Checkpoints = checkpoints
	if c.Leader.Lock == "redis" {
		deps.Lock = lease{store: checkpoints, source: s.Name, ttl: c.Leader.Lease}
	}
	return nil
}

func (b *Source) primary(ctx context.Context, c *config.Config, s config.Source, deps *relay.Deps, log zerolog.Logger) (*store.Store, error) {
	cfg, err := Primary(c, s)
	if err != nil {
		return nil, err
	}
	rows, err := openPrimary(ctx, cfg, log)
	if err != nil {
		return nil, err
	}
	b.close = append(b.close, rows.Close)
	deps.Tables = relay.TablesOf(rows)
	if err := holdable(c, deps.Router, rows.Tables()); err != nil {
		return nil, err
	}
	if err := b.archive(c, s, rows, deps, log); err != nil {
		return nil, err
	}
	switch c.Leader.Lock {
	case "mysql":
		deps.Lock = serverLock{store: rows, source: s.Name}
	case "none":
		deps.Lock = noLock{}
	}
	return rows, nil
}

// openPrimary waits for a server that can't be reached; what is wrong otherwise is for a person.
func openPrimary(ctx context.Context, cfg store.Config, log zerolog.Logger) (*store.Store, error) {
	state := trouble.New(log, trouble.Texts{
		Fails: "the primary can't be reached, will go on trying", Works: "the primary can be reached", Level: zerolog.ErrorLevel,
	})
	var rows *store.Store
	err := state.Until(ctx, retry.Doubling(time.Second, 10*time.Second), func(ctx context.Context) (err error) {
		if rows, err = store.Open(ctx, cfg, log); !errors.Is(err, store.ErrUnreachable) {
			return retry.Final(err)
		}
		return err
	})
	return rows, err
}

func (b *Source) stream(c *config.Config, s config.Source, deps *relay.Deps, log zerolog.Logger) error {
	cfg, err := Stream(c, s)
	if err != nil {
		return err
	}
	asker, err := canal.NewAsker(cfg)
	if err != nil {
		return err
	}
	b.close = append(b.close, asker.Close)
	observer := observer{deps.Metrics}
	deps.OpenReader = func(ctx context.Context) (relay.Reader, error) {
		reader, err := asker.Open(ctx, log, observer)
		if err != nil {
			return nil, err // not a nil *Reader in an interface
		}
		return reader, nil
	}
	deps.Distance = asker.Distance
	upstream, err := Replica(c, s)
	if err != nil || upstream == nil {
		return err
	}
	b.close = append(b.close, upstream.Close)
	deps.Upstream = upstream
	return nil
}
