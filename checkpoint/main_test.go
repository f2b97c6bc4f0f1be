package checkpoint_test

import (
	"flag"
	"os"
	"testing"

	"github.com/rs/zerolog"
	"go.uber.org/goleak"

	"example.com/outbox-relay/checkpoint"
)

// childEnv makes the test binary play a relay that a test stops and continues.
const childEnv = "OUTBOX_RELAY_TEST_LEASE_CHILD"

func TestMain(m *testing.M) {
	checkpoint.RouteLibraryLog(zerolog.Nop())
	if where := os.Getenv(childEnv); where != "" {
		os.Exit(leaseChild(where, os.Stdin, os.Stdout))
	}
	// Each step of the fencing model asks a server several times; -rapid.checks on the command line still wins.
	if err := flag.Set("rapid.checks", "30"); err != nil {
		os.Exit(2)
	}
	goleak.VerifyTestMain(m,
		// A pool that could not dial asks once a second until it is closed, and notices that within a second.
		goleak.IgnoreAnyFunction("github.com/redis/go-redis/v9/internal/pool.(*ConnPool).tryDial"))
}
