//go:build bench && !unit

package outbox_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestPutCost measures what Put costs beyond the driver, on a quiet machine.
func TestPutCost(t *testing.T) {
	for name, m := range costs() {
		with := testing.Benchmark(func(b *testing.B) { putMany(b, m) })
		without := testing.Benchmark(func(b *testing.B) { execMany(b, m) })
		require.NotZero(t, with.N*without.N, "a benchmark that failed")
		extra := time.Duration(with.NsPerOp()-without.NsPerOp()) * time.Nanosecond
		t.Logf("%s: %s and %d allocations beyond the driver (%s, %s without)", name, extra,
			with.AllocsPerOp()-without.AllocsPerOp(), time.Duration(with.NsPerOp()), time.Duration(without.NsPerOp()))
		assert.Less(t, extra, 3*time.Microsecond, name)
	}
}
