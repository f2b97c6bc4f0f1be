//go:build !unit

package canal_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/rig"
)

// Consumers' reports by SQL are updates to 3 and rows in a table beside: nothing of them is for the relay to send, to miss
// or to sweep.
func TestReportsArePassedOver(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, server *rig.Server) {
		b := newBench(t, server)
		b.exec("CREATE TABLE local_message_ack (msg_id VARCHAR(64) NOT NULL, consumer_group VARCHAR(255) NOT NULL, reported_at DATETIME NOT NULL, PRIMARY KEY (msg_id, consumer_group))")
		b.insert("pending", "sent", "failed", "half")
		b.exec("UPDATE local_message SET status = 1 WHERE msg_id = 'sent'", "UPDATE local_message SET status = 2, retry_count = 1 WHERE msg_id = 'failed'")
		b.stream()
		all := report.SQL{Groups: []string{"points", "logistics"}}
		for _, group := range all.Groups {
			tx, err := b.db.BeginTx(t.Context(), nil)
			require.NoError(t, err)
			_, err = all.MarkConsumed(t.Context(), tx, group, "pending", "sent", "failed")
			require.NoError(t, err)
			require.NoError(t, tx.Commit())
		}
		_, err := all.MarkConsumed(t.Context(), b.db, "points", "half")
		require.NoError(t, err)
		var consumed int
		require.NoError(t, b.db.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM local_message WHERE status = 3").Scan(&consumed))
		require.Equal(t, 3, consumed)
		// A follow-up message that is written with the report is sent like any other.
		tx, err := b.db.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), insertSQL("follow-up"))
		require.NoError(t, err)
		_, err = report.SQL{Table: outbox.Table{Database: b.database, Name: "local_message"}}.MarkConsumed(t.Context(), tx, "", "half")
		require.NoError(t, err)
		require.NoError(t, tx.Commit())
		got := b.read()
		require.Equal(t, []string{"follow-up"}, got.ids())
		require.Empty(t, got.missed)
		require.Zero(t, got.kicks)
	})
}
