//go:build race

package race

// Enabled tells whether the binary is built with the race detector: slower, and of no use for measuring memory.
const Enabled = true
