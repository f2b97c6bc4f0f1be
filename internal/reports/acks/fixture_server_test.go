//go:build !unit

package acks

import (
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

// desk is an outbox with its store and its reports.
type desk struct {
	*fixture.Outbox
	*Acks
	rows   *store.Store
	config store.Config
}

func newDesk(t *testing.T, srv *rig.Server) *desk { return newDeskWith(t, srv, "") }

// newDeskWith makes the table by a given CREATE TABLE.
func newDeskWith(t *testing.T, srv *rig.Server, create string, change ...func(*store.Config)) *desk {
	t.Helper()
	o := fixture.New(t, srv, create)
	d := &desk{Outbox: o, config: store.Config{Config: o.User, Tables: []string{o.Table.Database + ".local_message"}}}
	for _, c := range change {
		c(&d.config)
	}
	d.rows, d.Acks = open(t, d.config)
	return d
}

func open(t *testing.T, cfg store.Config) (*store.Store, *Acks) {
	t.Helper()
	rows, err := store.Open(t.Context(), cfg, zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, rows.Close()) })
	acks, err := New(rows, Config{})
	require.NoError(t, err)
	return rows, acks
}

// ackTable names the table of reports.
func (d *desk) ackTable() outbox.Table {
	return outbox.Table{Database: d.Table.Database, Name: d.Table.Name + "_ack"}
}
