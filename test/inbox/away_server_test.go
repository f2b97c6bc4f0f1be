//go:build !unit

package inbox

import (
	"context"
	"database/sql"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/test/rig"
)

// Brokers that are away, at the start or later, are waited for; so is a database that loses every connection in the middle of
// handlers. No message fails by it.
func TestBrokersAndDatabaseAwayAreWaitedFor(t *testing.T) {
	t.Parallel()
	kafka := rig.Kafka(t, rig.Own())
	scenes, members := map[string]*scene{}, map[string]*member{}
	for adapter := range adapters {
		s := newScene(t, kafka, 2)
		s.produce(100)
		scenes[adapter] = s
	}
	kafka.Stop(t)
	for adapter, s := range scenes {
		members[adapter] = s.start(adapter, killer(s), nil)
	}
	kafka.Start(t)
	for _, s := range scenes {
		s.handled(100, limit)
	}
	kafka.Restart(t)
	for adapter, s := range scenes {
		s.produce(100)
		s.handled(200, limit)
		m := members[adapter]
		until(s, "the copies were told", func() bool { return m.seen(inbox.OutcomeDuplicate) >= 10 })
		m.stop()
		require.NoError(t, m.wait(), adapter)
		s.exactlyOnce()
		assert.GreaterOrEqual(t, m.seen(inbox.OutcomeHeld), 4, "%s: connections lost under handlers", adapter)
		assert.Zero(t, m.seen(inbox.OutcomeFailed), "%s: no message's fault", adapter)
		assert.Zero(t, m.seen(inbox.OutcomeDead), adapter)
	}
}

// killer is the handler point, with the database's connection killed under the first attempt at two messages of each partition.
func killer(s *scene) inbox.Handler {
	var killed sync.Map
	return func(ctx context.Context, tx *sql.Tx, d *inbox.Delivery) error {
		doomed := d.Offset == 10 || d.Offset == 60
		if _, again := killed.LoadOrStore([2]int64{int64(d.Partition), d.Offset}, true); doomed && !again {
			var id int
			if err := tx.QueryRowContext(ctx, "SELECT CONNECTION_ID()").Scan(&id); err != nil {
				return err
			}
			kill, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if _, err := s.db.ExecContext(kill, "KILL ?", id); err != nil {
				return err
			}
		}
		return point(ctx, tx, d)
	}
}
