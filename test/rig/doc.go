// Package rig gives tests real servers: MySQL 9.7, MariaDB 10.11, Redis and Kafka 4.1 as local processes.
//
// MySQL, MariaDB, Redis and Kafka return the server that everybody shares: the one of the surrounding `make test` (or
// `bin/rig exec`), which starts each kind once for all test binaries, else one started for this test binary by the
// first test that asks. Tests share it by using names of their own (Database, Topic, Prefix). A test that stops,
// kills or pauses a server, changes its global settings, or needs arguments of its own passes Own, Args or KafkaConfig
// and gets an instance that ends with the test.
//
// Nothing is left running and no folder is left behind, also after a panic or SIGKILL (see internal/proc). A server
// that cannot be had fails the test: it is never skipped. Therefore a test file that needs a server begins with
//
//	//go:build !unit
//
// and is by convention called *_server_test.go; `make test-unit` (-tags unit) leaves it out, `make test` runs all.
//
// The servers are set up to be fast, not to survive a power cut: they do not wait for the disk at a commit. What is
// committed survives SIGKILL of the server all the same, because it has been handed to the kernel by then.
package rig
