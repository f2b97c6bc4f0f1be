//go:build !unit

package e2e

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestSeveralSources: one process relays a MySQL and a MariaDB, each with sharded tables, and keeps them apart.
func TestSeveralSources(t *testing.T) {
	one := newScene(t, cast{tables: 3})
	other := newScene(t, cast{sql: rig.MariaDB(t), tables: 2, prefix: one.cast.prefix})
	settings := one.settings.Without("source").With("sources", []any{one.settings.Section("source"), other.settings.Section("source")})
	relay := harness.Start(t, settings)
	harness.Eventually(t, 30*time.Second, "both sources led", func() (bool, string) {
		m, err := relay.Metrics()
		if err != nil {
			return false, err.Error()
		}
		leads := m.Sum("leader")
		return leads == 2, fmt.Sprintf("%g led", leads)
	})
	load := func(cfg *workload.Config) { cfg.Rows = 3000 }
	finishOne, finishOther := one.writing(load), other.writing(load)
	finishOne()
	finishOther()
	one.exact(30*time.Second, oracle.Options{})
	other.exact(30*time.Second, oracle.Options{})
	code, _ := relay.Stop()
	assert.Zero(t, code)
}
