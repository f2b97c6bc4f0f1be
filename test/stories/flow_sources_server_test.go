//go:build !unit

package stories

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
	one := harness.NewScene(t, harness.Cast{Tables: 3, Patient: true})
	other := harness.NewScene(t, harness.Cast{SQL: rig.MariaDB(t), Tables: 2, Prefix: one.Cast.Prefix, Patient: true})
	settings := one.Settings.Without("source").With("sources", []any{one.Settings.Section("source"), other.Settings.Section("source")})
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
	finishOne, finishOther := one.Writing(load), other.Writing(load)
	finishOne()
	finishOther()
	one.Exact(30*time.Second, oracle.Options{})
	other.Exact(30*time.Second, oracle.Options{})
	code, _ := relay.Stop()
	assert.Zero(t, code)
}
