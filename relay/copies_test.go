package relay_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/bubble"
)

// A process dies in a drain after it has sent rows and before it has marked them: the next one finds them in Kafka,
// takes them up as soon as their claims are over, and sends none twice. With or without a replay window.
func TestCrashInADrainAfterSending(t *testing.T) {
	t.Parallel()
	for name, window := range map[string]bool{"ReplayWindow": true, "NothingToReplay": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble.Test(t, func(t *testing.T) { crashInADrain(t, window) })
		})
	}
}

func crashInADrain(t *testing.T, window bool) {
	w := newWorld(1)
	cfg := testConfig()
	cfg.InFlight, cfg.Sweep.Batch, cfg.Sweep.Interval = 200, 20, 20*time.Second
	away := false
	w.trouble.do(func(trouble *trouble) {
		trouble.fail = func(op operation, refs []outbox.Ref) error {
			away = away || op == opSent && len(refs) > 5 // a batch of the drain: the stream's are smaller here
			if away {
				return store.ErrUnreachable
			}
			return nil
		}
	})
	p := startWith(t, w, 0, cfg)
	pause(t.Context(), time.Second)
	w.commitOne("t", "a")
	pause(t.Context(), 3*time.Second)
	w.setTopic("t", false, nil)
	for range 30 {
		w.commitOne("t", "a")
		pause(t.Context(), 20*time.Millisecond)
	}
	pause(t.Context(), 3*time.Second)
	w.setTopic("t", true, nil)
	until(t, "a batch that could not be marked", func() (seen bool) {
		w.trouble.do(func(*trouble) { seen = away })
		return seen
	})
	generation := w.crash()
	p.cancel()
	crashed := p
	w.trouble.do(func(trouble *trouble) { trouble.fail = nil })
	if window {
		w.commitOne("other", "z")
	}
	restarted := time.Now()
	p = startWith(t, w, generation, cfg)
	w.settle(t, 30*time.Minute)
	took := time.Since(restarted)
	require.NoError(t, p.stop())
	<-crashed.done //nolint:errcheck // a crashed process may say anything
	require.Zero(t, w.verdict(t), "copies")
	require.Less(t, took, 45*time.Second)
}
