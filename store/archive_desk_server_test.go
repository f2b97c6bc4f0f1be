//go:build !unit

package store

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/rig"
)

// An archived message is found, comes back once as a pending one that says so, and can be archived again.
func TestResendBringsARowBack(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv, archiving)
		d.mayAlter(t)
		none, err := d.ShowArchived(t.Context(), "m")
		require.NoError(t, err)
		assert.Empty(t, none, "without a history")
		for _, want := range []string{`{"a":"b","outbox_resend":"1"}`, `{"a":"b","outbox_resend":"2"}`} {
			if want == `{"a":"b","outbox_resend":"1"}` {
				d.insert(t, "m", 3, "NULL")
				d.exec(t, "UPDATE "+d.name()+` SET headers='{"a":"b"}', msg_key='k', retry_count=2`)
			}
			d.exec(t, "UPDATE "+d.name()+" SET status=3")
			d.old(t)
			found, err := d.Show(t.Context(), "m")
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.Equal(t, 1, d.move(t, found[0].Ref()))
			archived, err := d.ShowArchived(t.Context(), "m")
			require.NoError(t, err)
			require.Len(t, archived, 1)
			assert.Equal(t, outbox.Consumed, archived[0].Status)
			assert.JSONEq(t, `{"id":"m"}`, string(archived[0].Content))
			require.NoError(t, d.CanResend(t.Context(), archived[0]))
			require.NoError(t, d.Resend(t.Context(), archived[0], "resent by ops"))
			require.ErrorIs(t, d.Resend(t.Context(), archived[0], ""), ErrFilter, "twice")
			assert.Equal(t, []string{"0|0|" + want + "|k|resent by ops"},
				d.texts(t, "SELECT CONCAT_WS('|',status,retry_count,headers,msg_key,last_error) FROM "+d.name()))
			assert.Empty(t, d.texts(t, "SELECT msg_id FROM "+d.history()))
		}
	})
}

func TestResendToldOfConflicts(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv, archiving)
		d.mayAlter(t)
		ref := d.insert(t, "m", 3, "NULL")
		d.old(t)
		require.Equal(t, 1, d.move(t, ref))
		d.insert(t, "m", 0, "NULL")
		archived, err := d.ShowArchived(t.Context(), "m")
		require.NoError(t, err)
		require.Len(t, archived, 1)
		require.ErrorIs(t, d.CanResend(t.Context(), archived[0]), ErrInTable)
		require.ErrorIs(t, d.Resend(t.Context(), archived[0], ""), ErrInTable)
		assert.Equal(t, []string{"m"}, d.texts(t, "SELECT msg_id FROM "+d.history()))
		d.exec(t, "DELETE FROM "+d.name())
		d.exec(t, "UPDATE "+d.history()+" SET headers='no json'")
		archived, err = d.ShowArchived(t.Context(), "m")
		require.NoError(t, err)
		require.ErrorIs(t, d.Resend(t.Context(), archived[0], ""), ErrFilter)
		d.exec(t, "ALTER TABLE "+d.name()+" DROP COLUMN headers")
		require.NoError(t, d.Refresh(t.Context()))
		require.ErrorContains(t, d.Resend(t.Context(), archived[0], ""), "headers")
		assert.Equal(t, []string{"m"}, d.texts(t, "SELECT msg_id FROM "+d.history()))
	})
}

func TestArchiveEstimate(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv, archiving)
		n, err := d.ArchiveEstimate(t.Context(), d.table)
		require.NoError(t, err)
		assert.Zero(t, n)
		d.fill(t, 3000, "t", "NULL")
		d.exec(t, "UPDATE "+d.name()+" SET status=3, create_time=IF(id<=1777,NOW()-INTERVAL 3 HOUR,NOW()), update_time=create_time")
		n, err = d.ArchiveEstimate(t.Context(), d.table)
		require.NoError(t, err)
		assert.Equal(t, int64(1777), n)
	})
}
