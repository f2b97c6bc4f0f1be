package outbox_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/outbox"
)

func TestHistoryNameAndBase(t *testing.T) {
	t.Parallel()
	assert.Equal(t, outbox.Table{Database: "app", Name: "m_history"}, outbox.HistoryName("{table}_history", outbox.Table{Database: "app", Name: "m"}))
	for _, tc := range []struct {
		template, name string
		fold           bool
		base           string
		ok             bool
	}{
		{"{table}_history", "local_message_history", false, "local_message", true},
		{"{table}_history", "local_message", false, "", false},
		{"{table}_history", "_history", false, "", false},
		{"{table}_history", "m_HISTORY", false, "", false},
		{"{table}_history", "m_HISTORY", true, "m", true},
		{"old_{table}", "old_m", false, "m", true},
		{"old_{table}_x", "old_m_x", false, "m", true},
		{"old_{table}_x", "old__x", false, "", false},
		{"fixed", "fixed", false, "", false},
	} {
		base, ok := outbox.HistoryBase(tc.template, tc.name, tc.fold)
		assert.Equal(t, tc.ok, ok, "%+v", tc)
		assert.Equal(t, tc.base, base, "%+v", tc)
	}
}
