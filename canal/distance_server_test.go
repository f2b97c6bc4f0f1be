//go:build !unit

package canal_test

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/test/rig"
)

// How far the end is, and when the place will be purged, is asked every few seconds. It takes one connection that stays, and
// one more for each file that must be looked at, once.
func TestDistanceMakesNoConnections(t *testing.T) {
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.exec("SET GLOBAL binlog_expire_logs_seconds=86400")
		reader := b.open()
		from, err := reader.End(t.Context())
		require.NoError(t, err)
		b.exec("FLUSH BINARY LOGS")

		asker, err := canal.NewAsker(b.cfg)
		require.NoError(t, err)
		t.Cleanup(func() { require.NoError(t, asker.Close()) })
		made := func() (n int) {
			var name string
			require.NoError(t, b.db.QueryRowContext(t.Context(), "SHOW GLOBAL STATUS LIKE 'Connections'").Scan(&name, &n))
			return n
		}
		look := func() canal.Distance {
			d, err := asker.Distance(t.Context(), from)
			require.NoError(t, err)
			require.True(t, d.Usable)
			require.True(t, d.KnownPurge)
			assert.InDelta(t, 86400, d.PurgedIn.Seconds(), 120)
			return d
		}
		look()
		before := made()
		for range 3 {
			look()
		}
		assert.Equal(t, before, made(), "the file's beginning is known by then")
		from, err = reader.End(t.Context())
		require.NoError(t, err)
		look()
		b.exec("FLUSH BINARY LOGS")
		assert.Positive(t, look().FilesBehind)
		assert.Equal(t, before, made(), "it was seen to come")
	}, rig.Own())
}
