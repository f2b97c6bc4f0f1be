// Package bench measures the real binary, built without the race detector, against real servers on this machine:
//
//	go test -tags bench -count=1 -v ./test/bench
//
// It prints its figures and fails when a promise is missed: a backlog of 200 000 rows delivered and marked within 15 s
// of the start, 1 000 single-row commits a second at a p50 below 3 ms, and less than 100 MiB of memory in both; and a million
// rows archived while services commit, whose transactions' p99 rises by less than half.
package bench
