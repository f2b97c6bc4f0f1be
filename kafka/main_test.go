package kafka_test

import (
	"testing"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	goleak.VerifyTestMain(m,
		// sarama's circuit breakers sleep for their ten seconds whatever happens, and end then.
		goleak.IgnoreAnyFunction("github.com/eapache/go-resiliency/breaker.(*Breaker).timer"),
		// A fetch request of sarama's registers a meter in go-metrics' global registry, whatever registry it is given;
		// that starts one goroutine for the whole process.
		goleak.IgnoreTopFunction("github.com/rcrowley/go-metrics.(*meterArbiter).tick"),
	)
}
