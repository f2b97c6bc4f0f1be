//go:build !unit

package history

import (
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

// desk is an outbox with its store and its histories.
type desk struct {
	*fixture.Outbox
	*Histories
	rows   *store.Store
	config store.Config
}

// newDesk makes an outbox whose rows are archived once they are consumed and an hour old.
func newDesk(t *testing.T, srv *rig.Server) *desk { return newDeskWith(t, srv, "") }

// newDeskWith makes the table by a given CREATE TABLE.
func newDeskWith(t *testing.T, srv *rig.Server, create string) *desk {
	t.Helper()
	o := fixture.New(t, srv, create)
	cfg := store.Config{Config: o.User, Tables: []string{o.Table.Database + ".local_message"}}
	d := &desk{Outbox: o, config: archiving(cfg)}
	d.rows, d.Histories = open(t, d.config)
	return d
}

var archive = Config{Enabled: true, After: time.Hour}

// archiving lets a store know of the histories.
func archiving(cfg store.Config) store.Config {
	cfg.History = archive.withDefaults().Table
	cfg.Companions = []store.Companion{archive}
	return cfg
}

func open(t *testing.T, cfg store.Config) (*store.Store, *Histories) {
	t.Helper()
	log := zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel)
	rows, err := store.Open(t.Context(), cfg, log)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rows.Close()) })
	histories, err := New(rows, archive, log)
	require.NoError(t, err)
	return rows, histories
}

func (d *desk) history() string { return outbox.QuoteTable(archive.of(d.Table)) }

// mayAlter lets the relay's user make and alter tables, as the history needs.
func (d *desk) mayAlter(t *testing.T) {
	t.Helper()
	d.Exec(t, "GRANT CREATE, ALTER ON "+mysql.Identifier(d.Table.Database)+".* TO '"+d.User.User+"'@'%'")
}
