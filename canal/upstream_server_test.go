//go:build !unit

package canal_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/test/rig"
)

func TestUpstreamWaitsForTheReplica(t *testing.T) {
	for name, start := range map[string]func(testing.TB, ...rig.Option) *rig.Server{"MySQL": rig.MySQL, "MariaDB": rig.MariaDB} {
		t.Run(name, func(t *testing.T) {
			primary := start(t, rig.Own())
			replica := primary.Replica(t)
			configOf := func(s *rig.Server) canal.Config {
				return canal.Config{Config: mysql.Config{Addr: s.Addr, User: s.User, Password: s.Password}, Name: "upstream", Tables: []string{"app.local_message"}}
			}
			upstream, err := canal.NewUpstream(configOf(primary), configOf(replica))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, upstream.Close()) })
			database := primary.Database(t)
			run := func(s *rig.Server, statement string) {
				_, err := s.DB(t).ExecContext(t.Context(), statement)
				require.NoError(t, err)
			}
			run(primary, "CREATE TABLE "+database+".t (id INT PRIMARY KEY)")
			require.NoError(t, upstream.Applied(t.Context()))
			var n int
			require.NoError(t, replica.DB(t).QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+database+".t").Scan(&n))

			// A replica that reads but does not apply is not there yet.
			blocked, err := replica.DB(t).Conn(t.Context())
			require.NoError(t, err)
			_, err = blocked.ExecContext(t.Context(), "LOCK TABLES "+database+".t WRITE")
			require.NoError(t, err)
			run(primary, "INSERT INTO "+database+".t VALUES (1)")
			short, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			require.ErrorIs(t, upstream.Applied(short), context.DeadlineExceeded)
			_, err = blocked.ExecContext(t.Context(), "UNLOCK TABLES")
			require.NoError(t, err)
			require.NoError(t, blocked.Close())
			require.NoError(t, upstream.Applied(t.Context()))

			backwards, err := canal.NewUpstream(configOf(replica), configOf(primary))
			require.NoError(t, err)
			t.Cleanup(func() { require.NoError(t, backwards.Close()) })
			require.ErrorIs(t, backwards.Applied(t.Context()), canal.ErrNotReplicating)
		})
	}
}
