// Package recovery judges the whole relay on each way in which it can lose its footing: the checkpoint is gone or
// nonsense, the binlog is purged or begins anew, another server answers, a table or its columns change. The relay is the
// real binary on real servers, the judgement the oracle's: nothing is lost, invented, marked without having been sent, or
// skipped in silence.
//
// Each row of a table of tests runs without the sweeper (mode A) where the point is that nothing wrong is sent or marked,
// and with it (mode B) where the table heals what the stream does not bring. Every row also asserts what the operator is
// told: log, readiness, status and metrics. docs/RECOVERY.md lists them all.
package recovery
