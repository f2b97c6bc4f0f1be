package relay

import (
	"time"

	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/sweeper"
)

// Config is how one source is relayed. Every field must be set; package config has the defaults.
type Config struct {
	// Source names the checkpoint, the lock and the metric label.
	Source string
	// By is who saves checkpoints: host and process id.
	By   string
	Mode Mode
	// Start is where to begin when there is no checkpoint: StartNow or StartEarliest.
	Start string
	// SaveInterval is how often the checkpoint is saved.
	SaveInterval time.Duration

	InFlight      int   // unacked rows
	InFlightBytes int64 // unacked bytes
	Unmarked      int   // acked rows that are not marked yet
	MarkBatch     int
	MarkDelay     time.Duration

	// HoldAfterDead makes the later messages of a key wait for a person once one of them is a dead letter.
	HoldAfterDead bool
	// Relaxed lets new messages of a topic pass those that wait in the table.
	Relaxed bool

	Retry retry.Policy
	Sweep sweeper.Config
	// CreateTopics makes a topic that does not exist, instead of waiting for somebody to.
	CreateTopics bool
	// DedupeOnRestart reads the ends of the topics at a start, so that what was published and not marked is not sent again.
	DedupeOnRestart bool
	// DrainTimeout bounds the clean stop.
	DrainTimeout time.Duration
}

// Mode says whether the binlog is read.
type Mode string

// The modes.
const (
	Auto   Mode = "auto"   // stream and sweep; sweep alone, loudly, while the stream can't run
	Stream Mode = "stream" // stream or fail
	Sweep  Mode = "sweep"  // never touch the binlog
)

// ClaimLease is how long a claim of the sweeper keeps others off a row.
const ClaimLease = 30 * time.Second
