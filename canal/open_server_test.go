//go:build !unit

package canal_test

import (
	"crypto/tls"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/test/rig"
)

func TestTLS(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.cfg.TLS = &tls.Config{InsecureSkipVerify: true} //nolint:gosec // the server made its certificate itself
		if server.Flavor == rig.FlavorMariaDB {
			// MariaDB 10.11 has no certificate unless somebody makes one.
			_, err := canal.Open(t.Context(), b.cfg, zerolog.Nop(), nil)
			require.Error(t, err)
			b.cfg.TLSOptional = true
		}
		b.stream()
		b.insert("m1")
		require.Equal(t, []string{"m1"}, b.read().ids())
	})
}

func TestS61ReplicaThatDoesNotLog(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.insert("b")
		replica := server.Replica(t, rig.Args("--log-slave-updates=OFF"))
		caughtUp(t, replica, b.database)
		// With no more rights than the relay needs: on MariaDB these do not show the replica's status.
		user, password := server.RelayUser(t)
		replica.CatchUp(t, server)
		b.cfg.Addr, b.cfg.User, b.cfg.Password = replica.Addr, user, password
		_, err := canal.Open(t.Context(), b.cfg, zerolog.Nop(), nil)
		require.ErrorIs(t, err, canal.ErrCannotStream)
		require.ErrorContains(t, err, "log_replica_updates")
		report, err := canal.Inspect(t.Context(), b.cfg)
		require.NoError(t, err)
		require.Equal(t, "failure", report.Worst().String())
	}, rig.Own())
}

func TestInspectAndDistance(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.stream()
		report, err := canal.Inspect(t.Context(), b.cfg)
		require.NoError(t, err)
		for _, f := range report.Findings {
			t.Logf("%s: %s: %s (%s)", f.Level, f.Check, f.Means, f.Repair)
			require.NotEqual(t, "failure", f.Level.String(), "%s: %s", f.Check, f.Means)
		}
		from := b.cursor.Position()
		b.insert("a", "b")
		d, err := canal.BinlogDistance(t.Context(), b.cfg, from)
		require.NoError(t, err)
		require.True(t, d.Usable)
		require.True(t, d.FileExists)
		require.Positive(t, d.BytesBehind)
	})
}

func TestOpenRefusesWhatCannotBeStreamed(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		_, err := server.DB(t).ExecContext(t.Context(), "CREATE USER nothing@'%' IDENTIFIED BY 'pw'")
		require.NoError(t, err)
		b.cfg.User, b.cfg.Password = "nothing", "pw"
		_, err = canal.Open(t.Context(), b.cfg, zerolog.Nop(), nil)
		require.ErrorIs(t, err, canal.ErrCannotStream)
		require.ErrorContains(t, err, "GRANT")
		if server.Flavor == rig.FlavorMySQL {
			_, err = server.DB(t).ExecContext(t.Context(), "GRANT REPLICATION CLIENT ON *.* TO nothing@'%'")
		} else {
			_, err = server.DB(t).ExecContext(t.Context(), "GRANT BINLOG MONITOR ON *.* TO nothing@'%'")
		}
		require.NoError(t, err)
		_, err = canal.Open(t.Context(), b.cfg, zerolog.Nop(), nil)
		require.ErrorIs(t, err, canal.ErrCannotStream)
		require.ErrorContains(t, err, "REPLICATION SLAVE")
		b.cfg.Addr = "127.0.0.1:1"
		_, err = canal.Open(t.Context(), b.cfg, zerolog.Nop(), nil)
		require.Error(t, err)
		require.NotErrorIs(t, err, canal.ErrCannotStream)
	}, rig.Own())
	t.Run("off", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, rig.MariaDB(t, rig.Args("--skip-log-bin")))
		_, err := canal.Open(t.Context(), b.cfg, zerolog.Nop(), nil)
		require.ErrorIs(t, err, canal.ErrCannotStream)
		require.ErrorContains(t, err, "log_bin")
	})
	t.Run("statement", func(t *testing.T) {
		t.Parallel()
		b := newBench(t, rig.MariaDB(t, rig.Args("--binlog-format=MIXED")))
		_, err := canal.Open(t.Context(), b.cfg, zerolog.Nop(), nil)
		require.ErrorIs(t, err, canal.ErrCannotStream)
		require.ErrorContains(t, err, "binlog_format")
	})
}
