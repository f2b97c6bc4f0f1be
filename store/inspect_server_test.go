//go:build !unit

package store

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

// finding returns the one finding of a check.
func finding(t *testing.T, report diagnose.Report, check string) diagnose.Finding {
	t.Helper()
	var checks []string
	for _, f := range report.Findings {
		if strings.HasPrefix(f.Check, check) {
			return f
		}
		checks = append(checks, f.Check)
	}
	t.Fatalf("no finding %q among %q", check, checks)
	return diagnose.Finding{}
}

func (d *desk) inspect(t *testing.T) diagnose.Report {
	t.Helper()
	report, err := Inspect(t.Context(), d.cfg)
	require.NoError(t, err)
	return report
}

func TestInspectOfAHealthyTable(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		report := d.inspect(t)
		assert.Equal(t, diagnose.OK, report.Worst(), "%+v", report)
		for _, check := range []string{
			"connection to", "server version", "server takes writes", "clock", "small binlog images", "table ", "engine of",
			"primary key of", "sweep index of", "unique msg_id of", "last_error of", "select privilege on", "update privilege on",
		} {
			assert.Equal(t, diagnose.OK, finding(t, report, check).Level, check)
		}
	})
}

func TestS106InspectNamesEachMissingPrivilege(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		account := "'" + d.cfg.User + "'@'%'"
		for _, privilege := range []string{"SELECT", "UPDATE"} {
			d.Exec(t, "REVOKE ALL PRIVILEGES, GRANT OPTION FROM "+account)
			other := map[string]string{"SELECT": "UPDATE", "UPDATE": "SELECT"}[privilege]
			d.Exec(t, "GRANT "+other+" ON "+d.Name()+" TO "+account)
			report := d.inspect(t)
			f := finding(t, report, strings.ToLower(privilege)+" privilege")
			assert.Equal(t, diagnose.Failure, f.Level)
			assert.Equal(t, diagnose.OK, finding(t, report, strings.ToLower(other)+" privilege").Level)
			assert.Contains(t, finding(t, report, "small binlog images").Means, "may not set")
			require.True(t, strings.HasPrefix(f.Repair, "GRANT "+privilege+" ON "), f.Repair)
			d.Exec(t, strings.TrimSuffix(f.Repair, ";"))
			assert.Equal(t, diagnose.OK, finding(t, d.inspect(t), f.Check).Level, "the printed repair repairs")
		}
		d.Exec(t, "REVOKE ALL PRIVILEGES, GRANT OPTION FROM "+account)
		f := finding(t, d.inspect(t), "table "+d.Table.String())
		assert.Equal(t, diagnose.Failure, f.Level)
		assert.Contains(t, f.Repair, "GRANT SELECT, UPDATE ON "+d.Name())
	})
}

func TestMissingUpdatePrivilegeIsAnErrorOfItsOwn(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		account := "'" + d.cfg.User + "'@'%'"
		d.Exec(t, "REVOKE ALL PRIVILEGES, GRANT OPTION FROM "+account)
		d.Exec(t, "GRANT SELECT ON "+d.Name()+" TO "+account)
		_, err := d.MarkSent(t.Context(), d.Refs(1))
		require.ErrorIs(t, err, ErrPrivilege)
		assert.False(t, mysql.Retryable(err))
		require.ErrorContains(t, err, "UPDATE command denied")
		d.Exec(t, "GRANT UPDATE ON "+d.Name()+" TO "+account)
		_, err = d.MarkSent(t.Context(), d.Refs(1))
		require.NoError(t, err, "works in the same session once it is granted")
	})
}

func TestInspectNamesWhatTheTableLacks(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Exec(t, "ALTER TABLE "+d.Name()+" DROP INDEX idx_status_retry, DROP INDEX uk_msg_id, DROP COLUMN last_error")
		report := d.inspect(t)
		index := finding(t, report, "sweep index")
		assert.Equal(t, diagnose.Failure, index.Level)
		d.Exec(t, strings.TrimSuffix(index.Repair, ";"))
		unique := finding(t, report, "unique msg_id")
		assert.Equal(t, diagnose.Warning, unique.Level)
		d.Exec(t, strings.TrimSuffix(unique.Repair, ";"))
		assert.Equal(t, diagnose.OK, finding(t, report, "last_error").Level)
		assert.Contains(t, finding(t, report, "last_error").Repair, "optional")
		report = d.inspect(t)
		assert.Equal(t, diagnose.OK, report.Worst(), "%+v", report)

		d.Exec(t, "ALTER TABLE "+d.Name()+" ENGINE=MyISAM")
		engine := finding(t, d.inspect(t), "engine")
		assert.Equal(t, diagnose.Failure, engine.Level)
		d.Exec(t, strings.TrimSuffix(engine.Repair, ";"))
		d.Exec(t, "ALTER TABLE "+d.Name()+" DROP COLUMN retry_count")
		broken := finding(t, d.inspect(t), "table "+d.Table.String())
		assert.Equal(t, diagnose.Failure, broken.Level)
		assert.Contains(t, broken.Means, "has no column retry_count")
	})
}

func TestInspectOfAReplicaAndOfNobody(t *testing.T) {
	t.Parallel()
	for _, start := range []func(testing.TB, ...rig.Option) *rig.Server{rig.MySQL, rig.MariaDB} {
		srv := start(t, rig.Own())
		d := newDesk(t, srv)
		ref := d.Insert(t, "a", 0, "NULL")
		d.Exec(t, "SET GLOBAL read_only=ON")
		report := d.inspect(t)
		f := finding(t, report, "server takes writes")
		assert.Equal(t, diagnose.Failure, f.Level)
		assert.Contains(t, f.Repair, "source.primary.address")
		assert.Equal(t, diagnose.Warning, finding(t, report, "update privilege").Level, "the privilege is not what is missing")
		_, err := d.MarkSent(t.Context(), []outbox.Ref{ref})
		require.ErrorIs(t, err, ErrReadOnly)
		assert.True(t, mysql.Retryable(err))
		d.Exec(t, "SET GLOBAL read_only=OFF")
		_, err = d.MarkSent(t.Context(), []outbox.Ref{ref})
		require.NoError(t, err)
		srv.Stop(t)
		down := finding(t, d.inspect(t), "connection to")
		assert.Equal(t, diagnose.Failure, down.Level)
		assert.Contains(t, down.Repair, "source.primary.address")
	}
}

func TestInspectOfAWrongPassword(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.cfg.Password = "canary-secret"
		report := d.inspect(t)
		f := finding(t, report, "connection to")
		assert.Equal(t, diagnose.Failure, f.Level)
		assert.NotContains(t, f.Means+f.Repair, "canary")
	})
}

func TestInitMakesWhatIsMissing(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		cfg := d.cfg
		cfg.Password, cfg.User, cfg.StreamUser = srv.Password, srv.User, d.cfg.User
		database := d.Table.Database
		d.Exec(t, "ALTER TABLE "+d.Name()+" DROP INDEX idx_status_retry, DROP COLUMN last_error, DROP COLUMN msg_key")
		cfg.Tables = []string{d.Table.String(), database + ".fresh"}

		planned, err := Init(t.Context(), cfg, true)
		require.NoError(t, err)
		all := strings.Join(planned, "\n")
		for _, part := range []string{
			"ADD COLUMN `msg_key` VARCHAR(255) NULL, ADD COLUMN `last_error`", "CREATE INDEX idx_status_retry", "CREATE TABLE IF NOT EXISTS `" + database + "`.`fresh`",
			"GRANT SELECT, UPDATE ON " + d.Name() + " TO 'admin'@'%'", "GRANT REPLICATION SLAVE, ", "CREATE USER IF NOT EXISTS",
		} {
			assert.Contains(t, all, part)
		}
		assert.NotContains(t, all, cfg.Password+"'\n", "no password is printed")
		assert.Zero(t, d.One(t, "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME='fresh' AND TABLE_SCHEMA="+mysql.Literal(database)), "printing changes nothing")

		done, err := Init(t.Context(), cfg, false)
		require.NoError(t, err)
		assert.NotContains(t, strings.Join(done, "\n"), "CREATE USER")
		s := open(t, func() Config { c := d.cfg; c.Tables = cfg.Tables; return c }())
		for _, table := range s.Tables() {
			assert.Equal(t, "idx_status_retry", table.due)
			assert.True(t, table.HasKey && table.HasHeaders && table.HasLastError && table.HasTrace, table.Name)
		}
		again, err := Init(t.Context(), cfg, false)
		require.NoError(t, err)
		assert.NotContains(t, strings.Join(again, "\n"), "TABLE ", "a second time there is nothing to make")
		assert.NotContains(t, strings.Join(again, "\n"), "INDEX")
	})
}

func TestInitOfAPatternThatMatchesNothing(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.cfg.Tables = []string{d.Table.Database + `./shard_\d+/`}
		_, err := Init(t.Context(), d.cfg, false)
		require.ErrorContains(t, err, "a pattern does not say which to make")
	})
}
