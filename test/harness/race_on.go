//go:build race

package harness

// Race tells whether the binary is built with the race detector: slower, and of no use for measuring memory.
const Race = true
