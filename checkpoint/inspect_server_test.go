//go:build !unit

package checkpoint_test

import (
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/test/rig"
)

// level returns how bad the check came out, "absent" when it wasn't made.
func level(report diagnose.Report, check string) string {
	for _, f := range report.Findings {
		if f.Check == check {
			return f.Level.String()
		}
	}
	return "absent"
}

func TestInspect(t *testing.T) {
	t.Parallel()
	b, server := realBench(t, rig.Own())
	ctx := t.Context()
	inspect := func() diagnose.Report {
		report, err := b.store.Inspect(ctx)
		require.NoError(t, err)
		for _, f := range report.Findings {
			assert.NotEmpty(t, f.Means, f.Check)
			if f.Level != diagnose.OK {
				assert.NotEmpty(t, f.Repair, f.Check)
			}
			assert.NotContains(t, f.Means+f.Repair, server.Password)
		}
		return report
	}
	healthy := inspect()
	assert.Equal(t, "ok", healthy.Worst().String(), "%+v", healthy)

	require.NoError(t, b.raw.ConfigSet(ctx, "maxmemory-policy", "allkeys-lru").Err())
	assert.Equal(t, "warning", level(inspect(), checkpoint.CheckEviction))
	require.NoError(t, b.raw.ConfigSet(ctx, "maxmemory-policy", "volatile-lru").Err())
	assert.Equal(t, "ok", level(inspect(), checkpoint.CheckEviction))

	require.NoError(t, b.raw.ConfigSet(ctx, "appendonly", "no").Err())
	assert.Equal(t, "warning", level(inspect(), checkpoint.CheckPersistence))
	require.NoError(t, b.raw.ConfigSet(ctx, "save", "60 1").Err())
	assert.Equal(t, "ok", level(inspect(), checkpoint.CheckPersistence))
}

func TestInspectWithFewRights(t *testing.T) {
	t.Parallel()
	b, server := realBench(t, rig.Own())
	ctx := t.Context()
	open := func(user string) *checkpoint.Store {
		s, err := checkpoint.Open(checkpoint.Config{URLs: []string{"redis://" + user + ":pw@" + server.Addr}}, zerolog.Nop())
		require.NoError(t, err)
		t.Cleanup(func() { assert.NoError(t, s.Close()) })
		return s
	}
	require.NoError(t, b.raw.Do(ctx, "ACL", "SETUSER", "narrow", "on", ">pw", "~outbox-relay:*", "+ping", "+@read").Err())
	report, err := open("narrow").Inspect(ctx)
	require.NoError(t, err)
	assert.Equal(t, "ok", level(report, checkpoint.CheckReachable))
	assert.Equal(t, "failure", level(report, checkpoint.CheckRights))
	assert.Equal(t, "warning", level(report, checkpoint.CheckEviction))
	assert.Equal(t, "warning", level(report, checkpoint.CheckPersistence))

	// The rule that doctor prints is enough for doctor and for the relay.
	var repair string
	for _, f := range report.Findings {
		if f.Check == checkpoint.CheckRights {
			repair = f.Repair
		}
	}
	require.Contains(t, repair, "ACL SETUSER narrow ")
	require.NoError(t, runLine(ctx, b.raw, repair))
	report, err = open("narrow").Inspect(ctx)
	require.NoError(t, err)
	assert.Equal(t, "ok", report.Worst().String(), "%+v", report)
	s := open("narrow")
	epoch, err := s.NextEpoch(ctx, source)
	require.NoError(t, err)
	require.NoError(t, s.Save(ctx, source, record(epoch, 1)))
	require.NoError(t, s.Reset(ctx, source, checkpoint.Change{Who: operator}))
	require.NoError(t, s.Undo(ctx, source, operator))
	_, err = s.History(ctx, source, 1)
	require.NoError(t, err)
	lease, err := s.AcquireLease(ctx, source, ttl)
	require.NoError(t, err)
	require.NoError(t, lease.Release(ctx))
}
