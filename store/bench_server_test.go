//go:build !unit

package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

// TestMarkSentRate shows that marking is fast enough for the design's figures; it fails only far below them, because other
// tests share the machine.
func TestMarkSentRate(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		const rows = 50_000
		refs := d.Fill(t, rows, "orders", "NULL")
		start := time.Now()
		changed, err := d.MarkSent(t.Context(), refs)
		took := time.Since(start)
		require.NoError(t, err)
		require.EqualValues(t, rows, changed)
		t.Logf("%d marks in %s: %.0f/s", rows, took, rows/took.Seconds())
		require.Less(t, took, 20*time.Second)
		require.EqualValues(t, rows, d.One(t, "SELECT COUNT(*) FROM "+d.Name()+" WHERE status=1"))
	})
}
