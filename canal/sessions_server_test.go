//go:build !unit

package canal_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/rig"
)

// X32, X33: what a server does to each new session changes neither what the questions are about nor who waits for them. The
// columns of this table are asked for, and its rows compared, since the binlog does not tell the names.
func TestSessionsAsTheServerHandsThemOut(t *testing.T) {
	onBoth(t, func(t *testing.T, server *rig.Server) {
		metadata := "MINIMAL"
		if server.Flavor == rig.FlavorMariaDB {
			metadata = "NO_LOG"
		}
		b := newBench(t, server)
		const table = "本地消息"
		b.exec(fmt.Sprintf(schema, table), "SET GLOBAL binlog_row_metadata="+metadata,
			"SET GLOBAL init_connect='SET NAMES latin1, autocommit=0'")
		b.cfg.Tables = []string{b.database + "." + table}
		b.stream()
		insert := func(id string) {
			b.exec(strings.Replace(insertSQL(id), "local_message", table, 1))
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			for {
				tx, err := b.reader.Next(ctx)
				require.NoError(t, err)
				require.Empty(t, tx.Missed)
				rows := tx.Len()
				require.NoError(t, tx.Close())
				if rows > 0 {
					return
				}
			}
		}
		insert("a")
		// The service's own: an ALTER TABLE, and the INSERTs behind it, wait for nobody.
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := b.db.ExecContext(ctx, "ALTER TABLE "+table+" ADD COLUMN x INT")
		require.NoError(t, err)
		insert("b")
	}, rig.Own())
}
