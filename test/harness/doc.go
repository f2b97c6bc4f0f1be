// Package harness runs the real relay binary in tests: it builds it (with the race detector when the test has it),
// writes its configuration, starts, stops, kills and freezes it as a process, and reads what an operator would read:
// health, metrics, memory, its log, the checkpoint in Redis and the rows of its tables.
//
// It takes addresses, not servers, so it does not care where these run. A relay that panicked or raced fails the test
// that started it; its log is printed when the test fails.
package harness
