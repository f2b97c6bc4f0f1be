package outbox_test

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
)

func TestStatusNamesGoBothWays(t *testing.T) {
	t.Parallel()
	for status := range outbox.Foreign {
		back, err := outbox.ParseStatus(status.String())
		require.NoError(t, err)
		assert.Equal(t, status, back)
	}
	assert.Equal(t, "foreign", outbox.Foreign.String())
	assert.Equal(t, "status(42)", outbox.Status(42).String())
}

func TestParseStatusRefusesWhatNoTableMeans(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"", "foreign", "Pending", "0", "status(3)"} {
		status, err := outbox.ParseStatus(name)
		require.ErrorContains(t, err, "use pending, sent, failed, consumed, dead or discarded", name)
		assert.Equal(t, outbox.Foreign, status)
	}
}

func TestStatusesOf(t *testing.T) {
	t.Parallel()
	custom := outbox.Statuses{10, 20, 30, 40, -1, 127}
	for _, tc := range []struct {
		statuses outbox.Statuses
		number   int64
		want     outbox.Status
	}{
		{outbox.DefaultStatuses(), 0, outbox.Pending},
		{outbox.DefaultStatuses(), 5, outbox.Discarded},
		{outbox.DefaultStatuses(), 6, outbox.Foreign},
		{outbox.DefaultStatuses(), -1, outbox.Foreign},
		{outbox.DefaultStatuses(), math.MaxInt64, outbox.Foreign},
		{custom, 0, outbox.Foreign},
		{custom, 30, outbox.Failed},
		{custom, -1, outbox.Dead},
	} {
		assert.Equal(t, tc.want, tc.statuses.Of(tc.number), "%v of %d", tc.statuses, tc.number)
	}
}

func TestStatusesOfIsTheInverse(t *testing.T) {
	t.Parallel()
	numbers := outbox.DefaultStatuses()
	for status, number := range numbers {
		assert.Equal(t, outbox.Status(status), numbers.Of(int64(number)))
	}
}

func TestRefNamesTheRow(t *testing.T) {
	t.Parallel()
	row := outbox.Row{Table: outbox.Table{Database: "app", Name: "m"}, ID: math.MaxUint64, MsgID: "x", Topic: "t", Content: []byte("c")}
	assert.Equal(t, outbox.Ref{Table: row.Table, ID: math.MaxUint64, MsgID: "x"}, row.Ref())
	assert.Equal(t, "app.m", row.Table.String())
}

func TestDefaultColumnsAreAllDifferent(t *testing.T) {
	t.Parallel()
	c := outbox.DefaultColumns()
	seen := map[string]bool{}
	for _, name := range []string{c.ID, c.MsgID, c.Topic, c.Content, c.Status, c.RetryCount, c.NextRetryTime, c.CreateTime, c.UpdateTime, c.Key, c.Headers, c.LastError, c.Trace} {
		assert.NotEmpty(t, name)
		assert.False(t, seen[name], "%s twice", name)
		seen[name] = true
	}
}
