package wire

import (
	"github.com/rs/zerolog"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/internal/archive"
	"example.com/outbox-relay/internal/archive/history"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/relay"
	"example.com/outbox-relay/store"
)

// archiving returns which rows of a source go to which history.
func archiving(c *config.Config) history.Config {
	statuses := make([]outbox.Status, 0, len(c.Archive.Statuses))
	for _, name := range c.Archive.Statuses {
		if status, err := outbox.ParseStatus(name); err == nil { // config knows no others
			statuses = append(statuses, status)
		}
	}
	return history.Config{Enabled: c.Archive.Enabled, Table: c.Archive.Table, Statuses: statuses, After: c.Archive.After}
}

// historyName names the histories of a source's tables, "" when there are none.
func historyName(c *config.Config) string {
	if !c.Archive.Enabled {
		return ""
	}
	return c.Archive.Table
}

// Histories returns the histories of the tables of rows, which is to stay open.
func Histories(c *config.Config, rows *store.Store, log zerolog.Logger) (*history.Histories, error) {
	return history.New(rows, archiving(c), log)
}

// Archiver returns the archiver of a source. replica may be nil.
func Archiver(c *config.Config, rows archive.Rows, replica archive.Replica, m *metrics.Source, log zerolog.Logger) *archive.Archiver {
	return archive.New(archive.Config{Interval: c.Archive.Interval, Batch: c.Archive.Batch}, rows, replica, m, log)
}

// Replica returns the source's replica, nil when the binlog is read from the primary. It is to be closed.
func Replica(c *config.Config, s config.Source) (*canal.Upstream, error) {
	if s.Replica == nil {
		return nil, nil //nolint:nilnil // no replica is an answer
	}
	cfg, err := Stream(c, s)
	if err != nil {
		return nil, err
	}
	primary := cfg
	if primary.Config, err = serverOf(s, s.Primary); err != nil {
		return nil, err
	}
	return canal.NewUpstream(primary, cfg)
}

// archive lets the leader archive, where that is switched on.
func (b *Source) archive(c *config.Config, s config.Source, rows *store.Store, deps *relay.Deps, log zerolog.Logger) error {
	if !c.Archive.Enabled {
		return nil
	}
	histories, err := Histories(c, rows, log)
	if err != nil {
		return err
	}
	archiver := Archiver(c, histories, nil, deps.Metrics, log)
	replica, err := Replica(c, s)
	if err != nil {
		return err
	}
	if replica != nil {
		// Its own connections: it may wait for long.
		b.close = append(b.close, replica.Close)
		archiver = Archiver(c, histories, replica, deps.Metrics, log)
	}
	deps.WhileLeading = append(deps.WhileLeading, archiver.Run)
	return nil
}
