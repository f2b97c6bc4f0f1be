// Package stories runs the relay's real binary against real servers while something happens to it or to them, and lets the
// oracle judge: by what the writers' ledger, a consumer of another client library, the tables and the saved checkpoints say,
// nothing is lost, invented, out of order, marked without having been sent, or skipped in silence.
//
// The files are named by what happens:
//
//   - flow: nothing does; every way of writing, reading and reporting a message
//   - table: to the rows, the columns or the table itself, by whom and how they were written, and what the sweeper makes of it
//   - mysql: to the server, its binlog, its place in a replication, or the wire to it
//   - kafka: to a broker, or a topic is not what a message needs
//   - redis: to Redis or to what is saved there
//   - leader: two relays, one lock
//   - kill: the relay is stopped or killed
//   - operator: somebody uses the commands, or takes a right away
//   - bounds: more than memory should hold, or longer than it should take
//
// Each story has tables, topics and Redis keys of its own, so that the servers can be shared; one that stops a server has
// its own. A story that needs a machine with time for it (memory, latency, many kills) is told twice: small in every test run,
// and at full size in *_bench_test.go, by make bench, built without the race detector.
//
// A story of the stream runs without the sweeper (mode A), which would hide its faults, and with it (mode B), on MySQL and
// on MariaDB where both know the trigger. Waits are shortened where the point survives.
package stories
