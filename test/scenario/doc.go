// Package scenario runs the faults that real systems of this kind had (S01 and so on) against the whole relay: its real
// binary, real servers, the oracle's judgement. The scenarios whose point lies in one package are tested there.
//
// A scenario of the stream runs without the sweeper (mode A), which would hide its faults, and with it (mode B), each on
// MySQL and on MariaDB where both know the trigger. Waits are shortened where the point survives.
package scenario
