package metrics

import (
	"github.com/prometheus/client_golang/prometheus"

	"example.com/outbox-relay/internal/words"
)

// Archive is the metrics of archiving.
type Archive struct {
	Rows   *prometheus.CounterVec // result
	Batch  prometheus.Histogram   // seconds
	Paused *prometheus.GaugeVec   // reason
}

func (s *Source) archiveMetrics(b *builder) {
	s.Archive.Rows = b.counters("archive_rows_total", "Rows that were old enough to archive, by what came of them.",
		label{name: "result", values: words.ArchiveRows()})
	s.Archive.Batch = b.histogram("archive_seconds", "Seconds that moving one batch of rows to the history took, from its first lock to its commit.", batchBuckets())
	s.Archive.Paused = b.gauges("archive_paused", "1 while archiving waits longer than it has to, by why: a replica is more than ten seconds behind, the database is busy with others, the last pass failed.",
		label{name: "reason", values: words.Pauses()})
	for _, reason := range words.Pauses() {
		s.Archive.Paused.WithLabelValues(reason).Set(0)
	}
}
