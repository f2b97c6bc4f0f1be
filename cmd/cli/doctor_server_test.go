//go:build !unit

package cli_test

import (
	"fmt"
	"net"
	"strings"
	"testing"

	goredis "github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/cmd/cli"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

type finding struct{ Source, Part, Check, Level, Means, Repair string }

type diagnosis struct {
	t                  *testing.T
	code               int
	Failures, Warnings int
	Findings           []finding
}

func (s *scene) doctor() *diagnosis {
	s.t.Helper()
	o := s.run("doctor", "-o", "json")
	d := &diagnosis{t: s.t, code: o.code}
	decode(s.t, o.out, d)
	want := cli.ExitOK
	if d.Failures > 0 {
		want = cli.ExitProblems
	}
	assert.Equal(s.t, want, o.code, "%s", o.err)
	return d
}

// find returns the finding of a part whose check contains a text.
func (d *diagnosis) find(part, check string) finding {
	d.t.Helper()
	for _, f := range d.Findings {
		if f.Part == part && strings.Contains(f.Check, check) {
			return f
		}
	}
	require.Failf(d.t, "not found", "%s %s in %+v", part, check, d.Findings)
	return finding{}
}

// only asserts that nothing but these fails, as "part check".
func (d *diagnosis) only(failures ...string) {
	d.t.Helper()
	var got []string
	for _, f := range d.Findings {
		if f.Level == "failure" {
			got = append(got, f.Part+" "+f.Check)
		}
	}
	assert.ElementsMatch(d.t, failures, got, "%+v", d.Findings)
}

// Where everything is as it should be, nothing is found: exit 0.
func TestDoctorFindsNothing(t *testing.T) {
	flavors(t, func(t *testing.T, server *rig.Server) {
		kafka := rig.Kafka(t)
		s := newScene(t, server, kafka)
		s.insert("a", kafka.Topic(t, 1), "")
		d := s.doctor()
		d.only()
		assert.Zero(t, d.code)
		assert.Contains(t, s.ok("doctor"), "0 failures")
		assert.NotContains(t, s.ok("doctor", "--brief"), "  ok  ")
	})
}

// Each missing privilege is found by itself, and what doctor prints repairs it.
func TestDoctorFindsMissingPrivileges(t *testing.T) {
	flavors(t, func(t *testing.T, server *rig.Server) {
		client := "privilege REPLICATION CLIENT"
		if server.Flavor == rig.FlavorMariaDB {
			client = "privilege BINLOG MONITOR"
		}
		for _, tt := range []struct{ revoke, part, check string }{
			{"REPLICATION SLAVE ON *.*", "binlog", "privilege REPLICATION SLAVE"},
			{"REPLICATION CLIENT ON *.*", "binlog", client},
			{"UPDATE ON %s.*", "primary", "update privilege on %s.local_message"},
			{"SELECT ON %s.*", "primary", "select privilege on %s.local_message"},
		} {
			t.Run(tt.revoke, func(t *testing.T) {
				s := newScene(t, server, rig.Kafka(t))
				user := fmt.Sprint(s.settings["source.primary.user"])
				revoke := strings.ReplaceAll(tt.revoke, "%s", "`"+s.database+"`")
				s.exec("REVOKE " + revoke + " FROM '" + user + "'@'%'")
				d := s.doctor()
				f := d.find(tt.part, strings.ReplaceAll(tt.check, "%s", s.database))
				assert.Equal(t, "failure", f.Level)
				assert.NotEmpty(t, f.Means)
				require.Contains(t, f.Repair, "GRANT")
				s.exec(f.Repair)
				s.doctor().only()
			})
		}
	})
}

// A table without its index, without its topic; the statement that is printed repairs the first.
func TestDoctorFindsWhatTheTableLacks(t *testing.T) {
	flavors(t, func(t *testing.T, server *rig.Server) {
		kafka := rig.Kafka(t)
		s := newScene(t, server, kafka)
		s.exec("ALTER TABLE " + s.table + " DROP INDEX idx_status_retry")
		topic := kafka.Topic(t, 1)
		s.insert("a", topic, "")
		s.insert("b", "no-such-topic", "")
		s.insert("c", "bad topic", "status=1")
		d := s.doctor()
		index := d.find("primary", "sweep index")
		assert.Equal(t, "failure", index.Level)
		missing := d.find("kafka", "topic no-such-topic")
		assert.Equal(t, "failure", missing.Level)
		assert.Contains(t, missing.Repair, "kafka-topics.sh")
		assert.Equal(t, "failure", d.find("kafka", "topic bad topic").Level)
		risky := d.find("kafka", "topic "+topic)
		assert.Equal(t, "warning", risky.Level)
		assert.Contains(t, risky.Means, "min.insync.replicas is 1")
		assert.Contains(t, risky.Repair, "min.insync.replicas=2")
		s.exec(strings.TrimSuffix(index.Repair, ";"))
		s.doctor().only("kafka topic no-such-topic", "kafka topic bad topic")
	})
}

// A row's topic is looked at where the routes send it.
func TestDoctorLooksAtRoutes(t *testing.T) {
	t.Parallel()
	kafka := rig.Kafka(t)
	s := newScene(t, rig.MySQL(t), kafka)
	topic := kafka.Topic(t, 1)
	s.insert("a", "local-name", "")
	s.with("router.routes", []any{map[string]any{"match": "local-*", "topic": topic}, map[string]any{"match": "x", "topic": "routed-nowhere"}})
	s.doctor().only("kafka topic routed-nowhere")
}

func TestDoctorFindsNoBinlog(t *testing.T) {
	t.Parallel()
	s := newScene(t, rig.MySQL(t, rig.Args("--skip-log-bin")), rig.Kafka(t))
	d := s.doctor()
	f := d.find("binlog", "log_bin")
	assert.Equal(t, "failure", f.Level)
	assert.Contains(t, f.Repair, "log_bin=binlog")
	d.only("binlog log_bin")
}

func TestDoctorFindsStatementFormat(t *testing.T) {
	t.Parallel()
	s := newScene(t, rig.MariaDB(t, rig.Args("--binlog-format=STATEMENT")), rig.Kafka(t))
	d := s.doctor()
	f := d.find("binlog", "binlog_format")
	assert.Equal(t, "failure", f.Level)
	assert.Contains(t, f.Means, "STATEMENT")
	assert.Contains(t, f.Repair, "SET GLOBAL binlog_format = 'ROW'")
	marks := d.find("primary", "marks on "+s.table)
	assert.Contains(t, marks.Repair, "SET GLOBAL binlog_format='ROW'")
	d.only("binlog binlog_format", "primary marks on "+s.table)

	s.exec("SET GLOBAL binlog_format='ROW'")
	s.doctor().only()
}

// Short retention, partial images (no failure: they are supported), and a clock that is wrong for the relay's user.
func TestDoctorFindsSettings(t *testing.T) {
	t.Parallel()
	s := newScene(t, rig.MySQL(t, rig.Args("--binlog-expire-logs-seconds=3600", "--binlog-row-image=MINIMAL",
		"--init-connect=SET timestamp=1000000000")), rig.Kafka(t))
	d := s.doctor()
	retention := d.find("binlog", "retention")
	assert.Equal(t, "failure", retention.Level)
	assert.Contains(t, retention.Means, "1h0m0s only")
	assert.Contains(t, retention.Repair, "binlog_expire_logs_seconds")
	images := d.find("binlog", "binlog_row_image")
	assert.Equal(t, "ok", images.Level)
	assert.Contains(t, images.Means, "MINIMAL")
	assert.Contains(t, s.run("doctor").out, "note  binlog_row_image: MINIMAL")
	for _, part := range []string{"primary", "binlog"} {
		clock := d.find(part, "clock")
		assert.Equal(t, "warning", clock.Level)
		assert.Contains(t, clock.Repair, "NTP")
	}
	d.only("binlog binlog retention")
}

// A replica that doesn't log what it receives, and a server id that it has already.
func TestDoctorFindsReplicaTroubles(t *testing.T) {
	t.Parallel()
	primary := rig.MySQL(t, rig.Own())
	s := newScene(t, primary, rig.Kafka(t))
	replica := primary.Replica(t, rig.Args("--log-replica-updates=OFF", "--read-only=ON"))
	_, port, err := net.SplitHostPort(replica.Addr)
	require.NoError(t, err)
	s.with("source.server_id", port) // the rig numbers its servers by their ports
	f := s.doctor().find("binlog", "server_id")
	assert.Equal(t, "failure", f.Level)
	assert.Contains(t, f.Means, "is taken by replica")
	assert.Contains(t, f.Repair, "source.server_id")

	s.with("source.server_id", 0, "source.replica", map[string]any{"address": replica.Addr})
	d := s.doctor()
	f = d.find("binlog", "log_replica_updates")
	assert.Equal(t, "failure", f.Level)
	assert.Contains(t, f.Repair, "log_replica_updates=ON")
	d.only("binlog log_replica_updates")

	// Marks must go to the primary.
	s.with("source.primary.address", replica.Addr, "source.replica", nil)
	assert.Equal(t, "failure", s.doctor().find("primary", "server takes writes").Level)
}

func TestDoctorFindsRedisTroubles(t *testing.T) {
	t.Parallel()
	redis := rig.Redis(t, rig.Args("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru", "--appendonly", "no"))
	s := newScene(t, rig.MySQL(t), rig.Kafka(t))
	s.with("redis.url", redis.URL())
	d := s.doctor()
	d.only()
	assert.Zero(t, d.code, "warnings exit 0")
	for check, repair := range map[string]string{"eviction": "maxmemory-policy noeviction", "persistence": "appendonly yes"} {
		f := d.find("redis", check)
		assert.Equal(t, "warning", f.Level)
		assert.Contains(t, f.Repair, repair)
	}
}

// What run would refuse or give up is found before it is started.
func TestDoctorLooksAtTheCheckpoint(t *testing.T) {
	t.Parallel()
	redis := rig.Redis(t)
	s := newScene(t, rig.MySQL(t), rig.Kafka(t))
	url, err := goredis.ParseURL(redis.URL())
	require.NoError(t, err)
	client := goredis.NewClient(url)
	t.Cleanup(func() { require.NoError(t, client.Close()) })
	key := fmt.Sprint(s.settings["redis.prefix"], s.settings["source.name"], ":checkpoint")
	save := func(version, server, gtid string) {
		require.NoError(t, client.HSet(t.Context(), key, "v", version, "flavor", "mysql", "server", server, "gtid", gtid, "file", "binlog.999999",
			"pos", "4", "offsets", "{}", "epoch", "1", "saved_at", "2026-01-02T15:04:05Z", "by", "test").Err())
	}
	const elsewhere = "3e11fa47-71ca-11e1-9e33-c80aa9429562"
	save("1", elsewhere, elsewhere+":1-9")
	assert.Equal(t, "warning", s.doctor().find("checkpoint", "checkpoint").Level)
	save("1", "", "nonsense")
	assert.Equal(t, "warning", s.doctor().find("checkpoint", "checkpoint").Level)
	save("99", elsewhere, elsewhere+":1-9")
	f := s.doctor().find("checkpoint", "checkpoint")
	assert.Equal(t, "failure", f.Level)
	assert.Contains(t, f.Repair, "upgrade")
}

// One that is away hides nothing of the others.
func TestDoctorGoesOnWithoutOne(t *testing.T) {
	t.Parallel()
	kafka := rig.Kafka(t)
	s := newScene(t, rig.MySQL(t), kafka)
	s.insert("a", kafka.Topic(t, 1), "")
	whole := s.settings
	for part, settings := range map[string]harness.Settings{
		"kafka":   whole.With("kafka.brokers", []string{harness.FreeAddr(t)}),
		"redis":   whole.With("redis.url", "redis://"+harness.FreeAddr(t)),
		"primary": whole.With("source.primary.address", harness.FreeAddr(t)),
	} {
		s.configure(settings)
		d := s.doctor()
		parts := map[string]bool{}
		for _, f := range d.Findings {
			if f.Level == "failure" {
				parts[f.Part] = true
				assert.NotEmpty(t, f.Repair, "%+v", f)
			}
		}
		want := map[string]bool{part: true}
		if part == "primary" {
			want["binlog"] = true // there is no replica to read from
		}
		assert.Equal(t, want, parts)
	}
	// A wrong password is told as that.
	s.configure(whole.With("source.primary.password", "wrong"))
	assert.Contains(t, s.doctor().find("primary", "connection").Means, "denied")
}

// In mode sweep the binlog is none of doctor's business.
func TestDoctorInModeSweep(t *testing.T) {
	t.Parallel()
	s := newScene(t, rig.MySQL(t), rig.Kafka(t))
	s.with("source.mode", "sweep")
	d := s.doctor()
	d.only()
	assert.Contains(t, d.find("binlog", "mode").Means, "no binlog is read")
}
