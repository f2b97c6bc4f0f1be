package metrics_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/internal/metrics"
	"example.com/outbox-relay/internal/words"
)

// A relay that leads no more must not go on showing what it knew as a leader.
func TestForgettingAcks(t *testing.T) {
	t.Parallel()
	reg := metrics.New("test")
	m := &reg.Source("shop").Acks
	m.Count(words.ViaHTTP, words.AckUnknown, 2)
	m.Count(words.ViaHTTP, words.AckWaiting, 0)
	m.Behind.Set(7)
	m.OldestUnreported.WithLabelValues("orders", "points").Set(60)
	m.ReadPast.WithLabelValues("orders", "points").Set(1)
	for _, name := range []string{"oldest_unreported_seconds", "group_read_past_oldest", "acks_behind_records"} {
		assert.Contains(t, scrape(t, reg), "outbox_relay_"+name+"{")
	}
	m.Forget()
	text := scrape(t, reg)
	for _, name := range []string{"oldest_unreported_seconds", "group_read_past_oldest", "acks_behind_records"} {
		assert.NotContains(t, text, "outbox_relay_"+name+"{")
	}
	assert.Contains(t, text, `outbox_relay_acks_total{result="unknown",source="shop",via="http"} 2`)
	assert.NotContains(t, text, `result="waiting"`)
}
