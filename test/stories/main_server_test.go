//go:build !unit

package stories

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestMain runs more tests at once than there are cores: most of their time is waiting.
func TestMain(m *testing.M) {
	flag.Parse()
	if err := flag.Set("test.parallel", "8"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	// toxiproxy leaves both ends of a link behind that stood still when its proxy was closed.
	const link = "github.com/Shopify/toxiproxy/v2"
	goleak.VerifyTestMain(m,
		goleak.IgnoreAnyFunction(link+".(*ToxicLink).read"), goleak.IgnoreAnyFunction(link+".(*ToxicLink).write"),
		goleak.IgnoreAnyFunction(link+"/toxics.(*ToxicStub).Run"))
}

type starter func(t testing.TB, opts ...rig.Option) *rig.Server

var both = map[string]starter{"MySQL": rig.MySQL, "MariaDB": rig.MariaDB}

// pass lets time go by; a test that ends early does not wait.
func pass(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// onBoth runs a scenario on both servers.
func onBoth(t *testing.T, run func(t *testing.T, start starter)) {
	t.Helper()
	t.Parallel()
	for name, start := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run(t, start)
		})
	}
}

// inModes runs a scenario of the stream on both servers, without the sweeper and with it.
func inModes(t *testing.T, run func(t *testing.T, start starter, silent bool)) {
	t.Helper()
	onBoth(t, func(t *testing.T, start starter) {
		for name, silent := range map[string]bool{"A": true, "B": false} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				run(t, start, silent)
			})
		}
	})
}

// eventually is harness.Eventually without a detail.
func eventually(t *testing.T, limit time.Duration, what string, done func() bool) {
	t.Helper()
	harness.Eventually(t, limit, what, func() (bool, string) { return done(), "" })
}

// ready returns the code of /readyz.
func ready(r *harness.Relay) int {
	code, _ := r.Fetch("/readyz")
	return code
}

// unready waits until /readyz says no and why, which an operator must see within the limit.
func unready(t *testing.T, r *harness.Relay, limit time.Duration, reason string) {
	t.Helper()
	harness.Eventually(t, limit, "not ready "+reason, func() (bool, string) {
		code, body := r.Fetch("/readyz?verbose")
		return code == http.StatusServiceUnavailable && strings.Contains(body, reason), body
	})
}

// metric returns the sum of a metric's series, -1 when the relay does not answer.
func metric(r *harness.Relay, name string, labels ...string) float64 {
	m, err := r.Metrics()
	if err != nil {
		return -1
	}
	return m.Sum(name, labels...)
}

// exits waits until the relay has ended and returns its code.
func exits(t *testing.T, r *harness.Relay, limit time.Duration) int {
	t.Helper()
	select {
	case <-r.Exited():
	case <-time.After(limit):
		t.Fatalf("the relay still runs after %s", limit)
	}
	return r.ExitCode()
}

// redisCommand runs a command that must work.
func redisCommand(t *testing.T, s *harness.Scene, args ...any) {
	t.Helper()
	require.NoError(t, redisClient(t, s).Do(t.Context(), args...).Err())
}

// redisClient returns a client of the scene's Redis.
func redisClient(t *testing.T, s *harness.Scene) *redis.Client {
	t.Helper()
	opts, err := redis.ParseURL(s.Cast.Redis.URL())
	require.NoError(t, err)
	opts.ReadTimeout = 20 * time.Second // one that is loading answers seldom
	client := redis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	return client
}
