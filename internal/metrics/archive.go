package metrics

import "github.com/prometheus/client_golang/prometheus"

// Label values of the archive's metrics.
const (
	RowsMoved      = "moved"       // archive_rows_total: to the history
	RowsPassedOver = "passed_over" // locked, or changed since they were found: a later pass takes them

	PausedReplica = "replica" // archive_paused: a replica is behind
	PausedBusy    = "busy"    // the database is busy with others
	PausedError   = "error"   // the last pass failed, the log says why
)

// Archive is the metrics of archiving.
type Archive struct {
	Rows   *prometheus.CounterVec // result
	Batch  prometheus.Histogram   // seconds
	Paused *prometheus.GaugeVec   // reason
}

func (s *Source) archiveMetrics(b *builder) {
	s.Archive.Rows = b.counters("archive_rows_total", "Rows that were old enough to archive, by what came of them.",
		label{name: "result", values: []string{RowsMoved, RowsPassedOver}})
	s.Archive.Batch = b.histogram("archive_seconds", "Seconds that moving one batch of rows to the history took, from its first lock to its commit.", batchBuckets())
	s.Archive.Paused = b.gauges("archive_paused", "1 while archiving waits longer than it has to, by why: a replica is more than ten seconds behind, the database is busy with others, the last pass failed.",
		label{name: "reason", values: []string{PausedReplica, PausedBusy, PausedError}})
	for _, reason := range []string{PausedReplica, PausedBusy, PausedError} {
		s.Archive.Paused.WithLabelValues(reason).Set(0)
	}
}
