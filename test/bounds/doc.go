// Package bounds holds the relay to its bounds: memory, order and progress with transactions far larger than memory
// should hold, while Kafka is away, and while rows can't be marked.
//
// Each story is told twice: small, in every test run (*_server_test.go), and at full size, with the figures that the
// README promises, on the binary built without the race detector (*_bench_test.go, by make bench).
package bounds
