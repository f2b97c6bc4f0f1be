// Command demo is what `make demo` runs: the relay's real binary between a real MariaDB and an in-process Kafka (kfake) and
// Redis (miniredis), killed with SIGKILL in the middle and started again, while `outbox-relay demo` writes, consumes and
// judges.
//
//	demo -relay bin/outbox-relay [-transactions N] [-writers N]
//
// It exits as `outbox-relay demo` did: 0 for a good verdict, 5 for a bad one. Everything it starts ends with it, however it
// ends, and its folder goes too, unless it is killed itself.
package main
