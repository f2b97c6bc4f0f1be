//go:build !unit

package history

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

// An archived message is found, comes back once as a pending one that says so, and can be archived again.
func TestResendBringsARowBack(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.mayAlter(t)
		none, err := d.Show(t.Context(), "m")
		require.NoError(t, err)
		assert.Empty(t, none, "without a history")
		for _, want := range []string{`{"a":"b","outbox_resend":"1"}`, `{"a":"b","outbox_resend":"2"}`} {
			if want == `{"a":"b","outbox_resend":"1"}` {
				d.Insert(t, "m", 3, "NULL")
				d.Exec(t, "UPDATE "+d.Name()+` SET headers='{"a":"b"}', msg_key='k', retry_count=2`)
			}
			d.Exec(t, "UPDATE "+d.Name()+" SET status=3")
			d.old(t)
			found, err := d.rows.Show(t.Context(), "m")
			require.NoError(t, err)
			require.Len(t, found, 1)
			require.Equal(t, 1, d.move(t, found[0].Ref()))
			archived, err := d.Show(t.Context(), "m")
			require.NoError(t, err)
			require.Len(t, archived, 1)
			assert.Equal(t, outbox.Consumed, archived[0].Status)
			assert.JSONEq(t, `{"id":"m"}`, string(archived[0].Content))
			require.NoError(t, d.CanResend(t.Context(), archived[0]))
			require.NoError(t, d.Resend(t.Context(), archived[0], "resent by ops"))
			require.ErrorIs(t, d.Resend(t.Context(), archived[0], ""), store.ErrFilter, "twice")
			assert.Equal(t, []string{"0|0|" + want + "|k|resent by ops"},
				d.Texts(t, "SELECT CONCAT_WS('|',status,retry_count,headers,msg_key,last_error) FROM "+d.Name()))
			assert.Empty(t, d.Texts(t, "SELECT msg_id FROM "+d.history()))
		}
	})
}

func TestResendToldOfConflicts(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.mayAlter(t)
		ref := d.Insert(t, "m", 3, "NULL")
		d.old(t)
		require.Equal(t, 1, d.move(t, ref))
		d.Insert(t, "m", 0, "NULL")
		archived, err := d.Show(t.Context(), "m")
		require.NoError(t, err)
		require.Len(t, archived, 1)
		require.ErrorIs(t, d.CanResend(t.Context(), archived[0]), ErrInTable)
		require.ErrorIs(t, d.Resend(t.Context(), archived[0], ""), ErrInTable)
		assert.Equal(t, []string{"m"}, d.Texts(t, "SELECT msg_id FROM "+d.history()))
		d.Exec(t, "DELETE FROM "+d.Name())
		d.Exec(t, "UPDATE "+d.history()+" SET headers='no json'")
		archived, err = d.Show(t.Context(), "m")
		require.NoError(t, err)
		require.ErrorIs(t, d.Resend(t.Context(), archived[0], ""), store.ErrFilter)
		d.Exec(t, "ALTER TABLE "+d.Name()+" DROP COLUMN headers")
		require.NoError(t, d.rows.Refresh(t.Context()))
		require.ErrorContains(t, d.Resend(t.Context(), archived[0], ""), "headers")
		assert.Equal(t, []string{"m"}, d.Texts(t, "SELECT msg_id FROM "+d.history()))
	})
}

func TestEstimate(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		n, err := d.Estimate(t.Context(), d.Table)
		require.NoError(t, err)
		assert.Zero(t, n)
		d.Fill(t, 3000, "t", "NULL")
		d.Exec(t, "UPDATE "+d.Name()+" SET status=3, create_time=IF(id<=1777,NOW()-INTERVAL 3 HOUR,NOW()), update_time=create_time")
		n, err = d.Estimate(t.Context(), d.Table)
		require.NoError(t, err)
		assert.Equal(t, int64(1777), n)
	})
}
