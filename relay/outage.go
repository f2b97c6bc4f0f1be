package relay

import (
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
)

// outage remembers that no broker answers although something waits to be acked. It may be used concurrently.
type outage struct {
	mu    sync.Mutex
	since time.Time // zero: none
	told  bool
	last  error
}

// outageAfter is how long brokers may be silent before it is told: elections and restarts take seconds.
const outageAfter = 5 * time.Second

// away tells that a broker was asked in vain.
func (o *outage) away(err error, log zerolog.Logger) {
	o.mu.Lock()
	o.last = err
	if o.since.IsZero() {
		o.since = time.Now()
	}
	tell := !o.told && time.Since(o.since) >= outageAfter
	o.told = o.told || tell
	o.mu.Unlock()
	if tell {
		log.Warn().Err(err).Msg("kafka can't be reached, the stream waits and no retries are spent; outbox-relay doctor tells more")
	}
}

// back tells that a broker has answered.
func (o *outage) back(log zerolog.Logger) {
	o.mu.Lock()
	told, since := o.told, o.since
	o.since, o.told, o.last = time.Time{}, false, nil
	o.mu.Unlock()
	if told {
		log.Info().Dur("after", time.Since(since)).Msg("kafka answers again")
	}
}

// err returns what is to be told about it, nil when nothing is.
func (o *outage) err() error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.told {
		return nil
	}
	return fmt.Errorf("no broker has answered for %s: %w", time.Since(o.since).Round(time.Second), o.last)
}
