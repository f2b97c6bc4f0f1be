//go:build !unit

package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

// Rows of closed topics fill several seconds of both statuses' ranges. Each call looks at a part of them; the rows of other topics
// among them are all found, each once, and the end is reached.
func TestCandidatesAreLookedForPartByPart(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		const n = 5*lookRows + 100
		d.Fill(t, n, "closed", "NOW() - INTERVAL 1 HOUR")
		d.Exec(t, "UPDATE "+d.Name()+" SET next_retry_time = next_retry_time + INTERVAL (id DIV 7000) SECOND, status = IF(id % 3 = 0, 2, 0)")
		want := map[outbox.Ref]bool{}
		for _, id := range []int{1, lookRows - 1, lookRows, lookRows + 1, 7000, 2*lookRows + 3, n - 1, n} {
			want[outbox.Ref{Table: d.Table, ID: uint64(id), MsgID: d.msgID(t, id)}] = true
			d.Exec(t, "UPDATE "+d.Name()+" SET topic = 'open' WHERE id = ?", id)
		}
		query := Query{Limit: 2, Except: []string{"closed"}, Progress: &Progress{}}
		found, calls := map[outbox.Ref]bool{}, 0
		for {
			calls++
			rows, err := d.Candidates(t.Context(), query)
			require.NoError(t, err)
			refs := make([]outbox.Ref, len(rows))
			for i := range rows {
				refs[i] = rows[i].Ref()
				require.False(t, found[refs[i]])
				found[refs[i]] = true
			}
			if len(refs) > 0 {
				_, err := d.MarkSent(t.Context(), refs)
				require.NoError(t, err)
				continue
			}
			if !query.Progress.Advance() {
				break
			}
			require.Less(t, calls, 50, "it never ends")
		}
		assert.Equal(t, want, found)
		assert.Greater(t, calls, n*2/3/lookRows, "no call looks at everything")
		rows, err := d.Candidates(t.Context(), query)
		require.NoError(t, err)
		assert.Empty(t, rows, "it begins anew")
	})
}

func (d *desk) msgID(t *testing.T, id int) (msgID string) {
	t.Helper()
	require.NoError(t, d.DB.QueryRowContext(t.Context(), "SELECT msg_id FROM "+d.Name()+" WHERE id = ?", id).Scan(&msgID))
	return msgID
}
