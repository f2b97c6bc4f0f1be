//go:build !unit

package harness

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/rig"
)

func TestBoundary(t *testing.T) {
	t.Parallel()
	for name, server := range map[string]func(testing.TB, ...rig.Option) *rig.Server{"MySQL": rig.MySQL, "MariaDB": rig.MariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := server(t, rig.Own()) // nobody else writes between the steps
			db, table := s.DB(t), s.Database(t)+".t"
			_, err := db.ExecContext(t.Context(), "CREATE TABLE "+table+" (id INT PRIMARY KEY)")
			require.NoError(t, err)
			before, err := BinlogEnd(t.Context(), db, s.Flavor)
			require.NoError(t, err)
			_, err = db.ExecContext(t.Context(), "INSERT INTO "+table+" VALUES (1)")
			require.NoError(t, err)
			after, err := BinlogEnd(t.Context(), db, s.Flavor)
			require.NoError(t, err)
			require.Greater(t, after.Pos, before.Pos)
			for _, good := range []position.Position{before, after, {File: before.File, Pos: 4}} {
				why, err := Boundary(t.Context(), db, good)
				require.NoError(t, err)
				assert.Empty(t, why, good)
			}
			rows, err := db.QueryContext(t.Context(), "SHOW BINLOG EVENTS IN '"+before.File+"' FROM "+before.String()[len(before.File)+1:])
			require.NoError(t, err)
			defer rows.Close() //nolint:errcheck // read to the end below
			inner := 0
			for rows.Next() {
				var file, kind, server, info string
				var start, end uint64
				require.NoError(t, rows.Scan(&file, &start, &kind, &server, &end, &info))
				if start == before.Pos {
					continue
				}
				why, err := Boundary(t.Context(), db, position.Position{File: file, Pos: start})
				require.NoError(t, err)
				assert.NotEmpty(t, why, "%s at %d", kind, start)
				inner++
			}
			require.NoError(t, rows.Err())
			assert.Positive(t, inner)
			why, err := Boundary(t.Context(), db, position.Position{File: before.File, Pos: before.Pos + 1})
			require.NoError(t, err)
			assert.NotEmpty(t, why)
		})
	}
}

// TestSamplerCatchesACheckpointThatIsAhead saves a checkpoint past a pending row by hand.
func TestSamplerCatchesACheckpointThatIsAhead(t *testing.T) {
	t.Parallel()
	s := rig.MySQL(t)
	db, table := s.DB(t), s.Database(t)+".local_message"
	ledger := oracle.NewLedger()
	cfg := workload.Default([]string{table}, []string{"a"})
	cfg.Rows, cfg.Writers = 20, 1
	writer, err := workload.New(db, cfg, ledger)
	require.NoError(t, err)
	require.NoError(t, writer.Prepare(t.Context()))
	begin, err := BinlogEnd(t.Context(), db, s.Flavor)
	require.NoError(t, err)
	_, err = writer.Run(t.Context())
	require.NoError(t, err)

	redis := miniredis.RunT(t)
	save := func(at position.Position) {
		redis.HSet("outbox-relay:default:checkpoint", "file", at.File, "pos", at.String()[len(at.File)+1:], "epoch", "1", "server", "s1")
	}
	sampler := &Sampler{
		Checkpoint: NewCheckpointReader(t, "redis://"+redis.Addr(), "outbox-relay:", "default"),
		Primary:    db, Binlog: db, Flavor: s.Flavor, Tables: cfg.Tables, Ledger: ledger,
	}
	require.ErrorIs(t, sampler.Take(t.Context()), ErrNoCheckpoint)
	judge := func() *oracle.Verdict {
		samples, fences := sampler.Evidence()
		return oracle.Judge(ledger, oracle.Evidence{Samples: samples, Fences: fences}, oracle.Options{})
	}
	save(begin)
	require.NoError(t, sampler.Take(t.Context()))
	assert.Zero(t, judge().Count(oracle.CheckpointAhead))
	end, err := BinlogEnd(t.Context(), db, s.Flavor)
	require.NoError(t, err)
	save(end)
	stop := sampler.Start(t)
	require.Eventually(t, func() bool { samples, _ := sampler.Evidence(); return len(samples) > 2 }, 10*time.Second, 10*time.Millisecond)
	stop()
	assert.Positive(t, judge().Count(oracle.CheckpointAhead))
	assert.Zero(t, judge().Count(oracle.CheckpointTorn))
	save(begin)
	require.NoError(t, sampler.Take(context.WithoutCancel(t.Context())))
	assert.Equal(t, 1, judge().Count(oracle.CheckpointBack))
}
