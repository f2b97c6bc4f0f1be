package metrics

import (
	"math"
	"runtime"

	"github.com/prometheus/client_golang/prometheus"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// Source is the metrics of one source, one field each. Topics must go through Topic before they become a label value.
// The values of WithLabelValues come in the order that the field's comment tells.
type Source struct {
	Leader    *Gauge // 1 while this process leads the source
	Connected *Gauge // 1 while the binlog connection stands

	Reconnects      *prometheus.CounterVec // reason
	LagSeconds      *Gauge
	LagBytes        *Gauge
	HeadroomSeconds *Gauge
	Transactions    *prometheus.CounterVec // outcome
	StreamSkipped   *prometheus.CounterVec // reason
	StreamMissed    *prometheus.CounterVec // reason
	Recoveries      *prometheus.CounterVec // kind
	RecoveryRows    *prometheus.GaugeVec   // kind, outcome
	LastRecovery    *prometheus.GaugeVec   // kind; seconds since 1970

	Published       *prometheus.CounterVec // topic, origin
	Failed          *prometheus.CounterVec // topic, reason
	Dead            *prometheus.CounterVec // topic, reason
	Suppressed      *prometheus.CounterVec // by
	OrderViolations prometheus.Counter
	ParkedMessages  *Gauge
	ParkedKeys      *Gauge
	ClosedTopics    *Gauge

	CommitToAck *prometheus.HistogramVec // topic; seconds
	Publish     *prometheus.HistogramVec // topic; seconds

	InFlight      *Gauge
	InFlightBytes *Gauge
	Unmarked      *Gauge
	Backpressure  prometheus.Counter   // seconds
	Mark          prometheus.Histogram // seconds

	CheckpointAge   *Gauge                 // seconds
	CheckpointSaves *prometheus.CounterVec // result

	SweepRows     *prometheus.CounterVec // result
	SweepSent     *prometheus.CounterVec // reason
	SweepRounds   *prometheus.CounterVec // result
	Sweep         prometheus.Histogram   // seconds
	TableRows     *prometheus.GaugeVec   // status
	OldestPending *Gauge                 // seconds

	Archive Archive
	// Acks is about consumers' reports.
	Acks Acks

	topics *topics
}

// Topic returns the label value for a topic: its name for the first MaxTopics, OtherTopic for all others. It is cheap
// enough to be called for each message.
func (s *Source) Topic(name string) string { return s.topics.label(name) }

func newSource(b *builder, version string) *Source {
	s := &Source{topics: newTopics()}
	buildInfo(b, version)
	s.streamMetrics(b)
	s.messageMetrics(b)
	s.windowMetrics(b)
	s.sweepMetrics(b)
	s.archiveMetrics(b)
	s.Acks.metrics(b)
	return s
}

func buildInfo(b *builder, version string) {
	g := b.gauges("build_info", "Always 1; the labels tell which program this is.", label{name: "version"}, label{name: "go_version"})
	g.WithLabelValues(version, runtime.Version()).Set(1)
}

func (s *Source) streamMetrics(b *builder) {
	s.Leader = b.gauge("leader", "1 while this process leads the source, 0 while it stands by.", 0)
	s.Connected = b.gauge("source_connected", "1 while the connection that reads the binlog stands.", 0)
	s.Reconnects = b.counters("source_reconnects_total", "Binlog connections that had to be made again, by the reason the last one ended.", label{name: "reason", values: words.Reconnects()})
	s.LagSeconds = b.gauge("source_lag_seconds", "Seconds from a transaction's commit on the server to its being read, of the newest one read; 0 when everything is read.", math.NaN())
	s.LagBytes = b.gauge("source_lag_bytes", "Bytes of binlog on the server that are not read yet.", math.NaN())
	s.HeadroomSeconds = b.gauge("binlog_headroom_seconds", "Seconds until the server purges the binlog file of the saved position. At 0 the stream could not resume and the table would be swept instead.", math.NaN())
	s.Transactions = b.counters("transactions_total", "Transactions read to their end, by what came of them.", label{name: "outcome", values: []string{words.TransactionCommitted}})
	s.StreamSkipped = b.counters("stream_skipped_total", "Changes to the table that the stream saw and left to the sweeper: rows, but transactions for xa and events for statement, ddl and incident.", label{name: "reason", values: words.Skipped()})
	s.StreamMissed = b.counters("stream_missed_total", "Rows that the stream should have brought and the sweeper took up, by the reason that the stream has told. Unexplained: nobody but the table knew of them, as with sql_log_bin=0. Since the process started.",
		label{name: "reason", values: words.Missed()})
	s.Recoveries = b.counters("recoveries_total", "Times that the relay could not simply go on, by what it got over: the saved position could not be used, a table was gone, columns could not be told. docs/RECOVERY.md has the kinds.", label{name: "kind", values: words.Recoveries()})
	s.RecoveryRows = b.gauges("recovery_rows", "What the last recovery of a kind cost, in rows; kind resumed is a plain start.", label{name: "kind"},
		label{name: "outcome", values: words.RecoveryRows()})
	s.LastRecovery = b.gauges("last_recovery_timestamp_seconds", "When the last recovery of a kind began, in seconds since 1970.", label{name: "kind"})
}

func (s *Source) messageMetrics(b *builder) {
	topic, reason := label{name: "topic"}, label{name: "reason", values: words.Refusals()}
	s.Published = b.counters("messages_published_total", "Messages acked by Kafka with acks=all, by topic and by who sent them.", topic,
		label{name: "origin", values: words.Origins()})
	s.Failed = b.counters("messages_failed_total", "Refusals that spent a retry of a message; it is tried again at its next_retry_time.", topic, reason)
	s.Dead = b.counters("messages_dead_total", "Messages that became dead letters; a person has to retry or discard them.", topic, reason)
	s.Suppressed = b.counters("duplicates_suppressed_total", "Messages of the replay window that were not sent again, by what told that they had been sent: the row's status or the tail of the Kafka partition.",
		label{name: "by", values: words.Suppressed()})
	s.OrderViolations = b.counter("order_violations_total", "Messages that reached Kafka after a later one of their key although the order is strict. Each is logged with both msg_ids.")
	s.ParkedMessages = b.gauge("parked_messages", "Messages that wait in the table behind a dead letter of their key (router.after_dead: hold), counted up to 100000 a table.", 0)
	s.ParkedKeys = b.gauge("parked_keys", "Keys of which messages wait in the table behind a dead letter (router.after_dead: hold).", 0)
	s.ClosedTopics = b.gauge("closed_topics", "Topics that Kafka refuses at present; the sweeper probes them and drains what waits.", 0)
	s.CommitToAck = b.histograms("commit_to_ack_seconds", "Seconds from the commit on the server to Kafka's ack, for messages read from the binlog as they were committed. MySQL 5.7 and MariaDB tell whole seconds only.",
		latencyBuckets(), topic)
	s.Publish = b.histograms("publish_seconds", "Seconds from handing a message to the Kafka client to its ack.", latencyBuckets(), topic)
}

func (s *Source) windowMetrics(b *builder) {
	s.InFlight = b.gauge("in_flight_messages", "Messages handed to Kafka and not yet acked; limits.in_flight bounds them.", 0)
	s.InFlightBytes = b.gauge("in_flight_bytes", "Bytes of the messages in flight; limits.in_flight_bytes bounds them.", 0)
	s.Unmarked = b.gauge("unmarked_messages", "Messages acked by Kafka and not yet marked in the table; limits.unmarked bounds them.", 0)
	s.Backpressure = b.counter("backpressure_seconds_total", "Seconds that reading stood still because a limit was reached.")
	s.Mark = b.histogram("mark_seconds", "Seconds that one batch of marks took in the database.", batchBuckets())
	s.CheckpointAge = b.gauge("checkpoint_age_seconds", "Seconds since the checkpoint was last saved.", math.NaN())
	s.CheckpointSaves = b.counters("checkpoint_saves_total", "Attempts to save the checkpoint, by result.",
		label{name: "result", values: words.Saves()})
}

func (s *Source) sweepMetrics(b *builder) {
	s.SweepRows = b.counters("sweep_rows_total", "Rows that the sweeper took up, by what came of them.", label{name: "result", values: words.SweptRows()})
	s.SweepSent = b.counters("sweep_sent_total", "Messages that the sweeper sent because they are its own: failed ones to try again, ones deferred while their topic was closed or recorded in a recovery, delayed ones. What the stream should have brought is in stream_missed_total.",
		label{name: "reason", values: words.Swept()})
	s.SweepRounds = b.counters("sweep_rounds_total", "Rounds of the sweeper; one is skipped while the stream still has to pass what is pending.",
		label{name: "result", values: words.Rounds()})
	s.Sweep = b.histogram("sweep_seconds", "Seconds that one round of the sweeper took.", batchBuckets())
	s.TableRows = b.gauges("table_rows", "Rows of the table by status, counted up to a bound so that a large table costs little.", label{name: "status", values: statuses()})
	s.OldestPending = b.gauge("oldest_pending_seconds", "Age of the oldest row that is due and not yet sent; 0 when there is none.", math.NaN())
}

// latencyBuckets go from half a millisecond, what an idle relay needs for one message, to a minute, which is an outage.
func latencyBuckets() []float64 {
	return []float64{.0005, .001, .002, .003, .005, .0075, .01, .02, .03, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}

// batchBuckets suit work on many rows at once.
func batchBuckets() []float64 {
	return []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
}

func statuses() []string {
	names := make([]string, outbox.Foreign)
	for i := range names {
		names[i] = outbox.Status(i).String()
	}
	return names
}
