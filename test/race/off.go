//go:build !race

// Package race tells tests whether they run under the race detector.
package race

// Enabled tells whether the binary is built with the race detector: slower, and of no use for measuring memory.
const Enabled = false
