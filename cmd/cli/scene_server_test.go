//go:build !unit

package cli_test

import (
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// scene is a table on a real server, a Redis and a Kafka, and the configuration that finds them.
type scene struct {
	t        *testing.T
	server   *rig.Server
	db       *sql.DB
	database string
	table    string
	settings harness.Settings
	config   string
}

// newScene makes the pattern's table with the optional columns. Kafka may be nil: then no broker answers.
func newScene(t *testing.T, server *rig.Server, kafka *rig.KafkaServer) *scene {
	t.Helper()
	s := &scene{t: t, server: server, db: server.DB(t), database: server.Database(t)}
	s.table = s.database + ".local_message"
	schema := outbox.AllColumns()
	schema.Options = "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
	s.exec(outbox.Schema(outbox.Table{Database: s.database, Name: "local_message"}, schema))
	user, password := server.RelayUser(t, rig.On(s.database))
	redis := rig.Redis(t)
	brokers := []string{harness.FreeAddr(t)}
	if kafka != nil {
		brokers = kafka.Brokers
	}
	s.configure(harness.Target{
		Primary: harness.Endpoint{Addr: server.Addr, User: user, Password: password}, Tables: []string{s.table},
		Brokers: brokers, RedisURL: redis.URL(),
	}.Settings(t).With("source.name", s.database[max(0, len(s.database)-40):], "redis.prefix", redis.Prefix(t), "log.level", "warn"))
	return s
}

func (s *scene) configure(settings harness.Settings) {
	s.t.Helper()
	s.settings = settings
	s.config = settings.Write(s.t)
}

func (s *scene) with(pairs ...any) {
	s.t.Helper()
	s.configure(s.settings.With(pairs...))
}

func (s *scene) exec(statement string, args ...any) {
	s.t.Helper()
	_, err := s.db.ExecContext(s.t.Context(), statement, args...)
	require.NoError(s.t, err, statement)
}

// insert writes a message in a transaction of its own and returns its id. The rest of the row is as columns say.
func (s *scene) insert(msgID, topic string, columns string, args ...any) int64 {
	s.t.Helper()
	assignments := []string{"msg_id=?", "topic=?", "update_time=NOW()"}
	for column, value := range map[string]string{"status": "0", "create_time": "NOW()", "msg_content": `'{"a":1}'`} {
		if !strings.Contains(columns, column+"=") {
			assignments = append(assignments, column+"="+value)
		}
	}
	if columns != "" {
		assignments = append(assignments, columns)
	}
	result, err := s.db.ExecContext(s.t.Context(), "INSERT INTO "+s.table+" SET "+strings.Join(assignments, ", "),
		append([]any{msgID, topic}, args...)...)
	require.NoError(s.t, err)
	id, err := result.LastInsertId()
	require.NoError(s.t, err)
	return id
}

// insertMany writes pending messages, several in a transaction.
func (s *scene) insertMany(prefix, topic string, n int) {
	s.t.Helper()
	for i := range n {
		s.insert(fmt.Sprintf("%s-%03d", prefix, i), topic, "")
	}
}

// settle marks everything that is pending as sent, as a relay would have.
func (s *scene) settle() { s.exec("UPDATE " + s.table + " SET status=1 WHERE status=0") }

// status returns a row's status and whether it has a next_retry_time.
func (s *scene) status(msgID string) (status int, due bool) {
	s.t.Helper()
	require.NoError(s.t, s.db.QueryRowContext(s.t.Context(),
		"SELECT status, next_retry_time IS NOT NULL FROM "+s.table+" WHERE msg_id=?", msgID).Scan(&status, &due))
	return status, due
}

func (s *scene) run(args ...string) outcome {
	s.t.Helper()
	return command(s.t, append(args, "--config", s.config)...)
}

// ok runs a command that must succeed.
func (s *scene) ok(args ...string) string {
	s.t.Helper()
	return ok(s.t, append(args, "--config", s.config)...)
}

// json runs a command that must succeed and reads its result.
func (s *scene) json(into any, args ...string) {
	s.t.Helper()
	decode(s.t, s.ok(append(args, "-o", "json")...), into)
}

// fails runs a command that must fail with an exit code, and returns what it says.
func (s *scene) fails(code int, args ...string) string {
	s.t.Helper()
	o := s.run(args...)
	require.Equal(s.t, code, o.code, "%v: %s%s", args, o.out, o.err)
	return o.err
}

// lead starts a real relay and waits until it leads.
func (s *scene) lead() *harness.Relay {
	s.t.Helper()
	r := harness.Start(s.t, s.settings)
	r.WaitLeading(30 * time.Second)
	return r
}

// end returns the server's present binlog end.
func (s *scene) end() string {
	s.t.Helper()
	end, err := harness.BinlogEnd(s.t.Context(), s.db, s.server.Flavor)
	require.NoError(s.t, err)
	return end.String()
}

// flavors runs a test on a MySQL and a MariaDB of its own: binlogs are the whole server's.
func flavors(t *testing.T, test func(t *testing.T, server *rig.Server)) {
	t.Helper()
	t.Parallel()
	t.Run("mysql", func(t *testing.T) { t.Parallel(); test(t, rig.MySQL(t)) })
	t.Run("mariadb", func(t *testing.T) { t.Parallel(); test(t, rig.MariaDB(t)) })
}

// place is a position as the commands show it.
type place struct {
	File string
	Pos  uint64
	GTID string `json:"gtid"`
}

func (p *place) String() string {
	if p == nil {
		return "none"
	}
	return fmt.Sprintf("%s:%d", p.File, p.Pos)
}

// plan is what the commands that move the checkpoint say.
type plan struct {
	Applied   bool
	Old, New  *place
	Direction string
	Binlog    *struct {
		Usable     bool
		FileExists bool   `json:"file_exists"`
		Bytes      uint64 `json:"bytes_behind"`
	}
	Range *struct {
		Bytes, Rows int64
		Estimate    bool
		Settled     int64 `json:"already_settled"`
		Open        int64 `json:"still_open"`
		Gone        int64 `json:"not_in_table"`
		Missed      int64 `json:"left_to_sweeper"`
	}
	Deferred int64
	Leader   struct {
		Known, Led bool
		Holder     string
	}
	Follows []string
}

// history is what checkpoint history says.
type history struct {
	Entries []struct {
		Event, By, User, Host, Reason string
		Old, New                      *place
	}
}
