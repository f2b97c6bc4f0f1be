//go:build !unit

package store

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

func TestParkedRowsAreOutOfSightUntilTheyAreClaimed(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		k, other := SlotOf("orders", []byte("k")), SlotOf("orders", []byte("other"))
		pending, failed, sent := d.Insert(t, "pending", 0, "NULL"), d.Insert(t, "failed", 2, "NOW()"), d.Insert(t, "sent", 1, "NULL")
		elsewhere := d.Insert(t, "elsewhere", 0, "NOW()")
		require.NoError(t, d.Park(t.Context(), []Parking{{failed, k}, {pending, k}, {sent, k}, {elsewhere, other}}))
		require.NoError(t, d.Park(t.Context(), []Parking{{pending, k}}), "it may be repeated")
		assert.Equal(t, state{Status: 1}, d.state(t, sent), "only what is the relay's is parked")
		assert.Equal(t, state{Status: 0, HasNext: true}, d.state(t, failed))

		assert.Empty(t, d.candidates(t, Query{}))
		assert.Empty(t, d.candidates(t, Query{Only: "orders", Early: true}))
		closed, err := d.ClosedTopics(t.Context(), time.Minute, false)
		require.NoError(t, err)
		assert.Empty(t, closed, "parked rows close no topic at a start")
		_, any, err := d.NextDue(t.Context())
		require.NoError(t, err)
		assert.False(t, any, "nobody waits for the year 5000")
		rows, keys, err := d.CountParked(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []int64{3, 2}, []int64{rows, keys})
		slots, err := d.ParkedSlots(t.Context())
		require.NoError(t, err)
		assert.ElementsMatch(t, []Slot{k, other}, slots)

		parked, err := d.Parked(t.Context(), k, 10)
		require.NoError(t, err)
		require.Equal(t, []string{"pending", "failed"}, msgIDs(parked), "by id, whenever they were parked")
		slot, ok := ParkedSlot(&parked[0])
		assert.True(t, ok)
		assert.Equal(t, k, slot)
		claimed, err := d.Claim(t.Context(), []outbox.Ref{pending, failed}, 30*time.Second)
		require.NoError(t, err)
		assert.Empty(t, claimed)
		claimed, err = d.ClaimParked(t.Context(), []outbox.Ref{pending, failed, sent}, 30*time.Second)
		require.NoError(t, err)
		assert.Equal(t, []string{"pending", "failed"}, msgIDs(claimed))
		parked, err = d.Parked(t.Context(), k, 10)
		require.NoError(t, err)
		assert.Empty(t, parked, "a claimed row is under its claim's lease")
		held, err := d.ClaimedTopics(t.Context(), 30*time.Second)
		require.NoError(t, err)
		assert.Equal(t, []string{"orders"}, held)
	})
}

func TestDeadLettersAreFoundAndRead(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Insert(t, "pending", 0, "NULL")
		first, second := d.Insert(t, "first", 4, "NULL"), d.Insert(t, "second", 4, "NULL")
		dead, err := d.DeadLetters(t.Context())
		require.NoError(t, err)
		require.Equal(t, map[outbox.Table][]uint64{d.Table: {first.ID, second.ID}}, dead)
		var found []string
		require.NoError(t, d.ReadDead(t.Context(), d.Table, []uint64{1, first.ID, second.ID}, func(row *outbox.Row) {
			found = append(found, row.MsgID+" "+string(row.Content))
		}))
		assert.Equal(t, []string{`first {"id":"first"}`, `second {"id":"second"}`}, found)
		require.NoError(t, d.CanPark())
	})
}

// A million rows behind dead letters must not cost the sweeps anything: no query reads more of them than it returns.
func TestParkedRowsAreFoundByTheIndex(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		refs := d.Fill(t, 20_000, "orders", "NULL")
		k := SlotOf("orders", []byte("k"))
		d.Exec(t, "UPDATE "+d.Name()+" SET next_retry_time="+string(k.value()))
		d.Exec(t, "ANALYZE TABLE "+d.Name())
		some := SlotOf("orders", []byte("some"))
		require.NoError(t, d.Park(t.Context(), []Parking{{refs[10], some}, {refs[5], some}}))
		parked, err := d.Parked(t.Context(), some, 100)
		require.NoError(t, err)
		require.Len(t, parked, 2)
		require.Equal(t, refs[5].ID, parked[0].ID)
		table := &d.Tables()[0]
		plan := d.Plan(t, "SELECT DISTINCT next_retry_time FROM "+table.From()+table.ByDue()+" WHERE "+d.isParked(table))
		assert.Contains(t, plan, "idx_status_retry")
		began := time.Now()
		rows, keys, err := d.CountParked(t.Context())
		require.NoError(t, err)
		assert.Equal(t, []int64{20_000, 2}, []int64{rows, keys})
		slots, err := d.ParkedSlots(t.Context())
		require.NoError(t, err)
		assert.ElementsMatch(t, []Slot{k, some}, slots)
		t.Logf("counted and listed in %s", time.Since(began))
		assert.Empty(t, d.candidates(t, Query{}))
	})
}

// Writers use it for what is never to be sent: it is no parked row, and no time that somebody can wait for.
func TestRowsThatAreNeverDueAreNotParked(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Insert(t, "never", 0, "'9999-12-31 23:59:59'")
		slots, err := d.ParkedSlots(t.Context())
		require.NoError(t, err)
		assert.Empty(t, slots)
		_, any, err := d.NextDue(t.Context())
		require.NoError(t, err)
		assert.False(t, any)
	})
}

func TestTimestampCanNotBeParked(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Exec(t, "ALTER TABLE "+d.Name()+" MODIFY next_retry_time TIMESTAMP NULL")
		require.NoError(t, d.Refresh(t.Context()))
		require.ErrorContains(t, d.CanPark(), "to be a DATETIME")
	})
}
