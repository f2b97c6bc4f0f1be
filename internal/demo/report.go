package demo

import (
	"time"

	"example.com/outbox-relay/internal/oracle"
)

// Progress is how far a run is.
type Progress struct {
	Transactions int // ended, rolled back ones too
	Committed    int // messages
	Delivered    int // different messages that were consumed
	Records      int // consumed, copies too
}

// Report is the outcome of a run.
type Report struct {
	OK           bool    `json:"ok"`
	Transactions int     `json:"transactions"`
	Committed    int     `json:"committed"`   // messages
	RolledBack   int     `json:"rolled_back"` // messages
	Delivered    int     `json:"delivered"`
	Lost         int     `json:"lost"`
	Phantom      int     `json:"phantom"`
	OutOfOrder   int     `json:"out_of_order"`
	Duplicates   int     `json:"duplicates"`
	Swept        int     `json:"swept"` // records of the sweeper
	Latency      Latency `json:"commit_to_consumed_ms"`
	// Faults are all that is wrong, those above and any other, with examples.
	Faults []oracle.Fault `json:"faults"`
	// Seconds is how long it took, Table where the rows are, and Prefix how their msg_ids begin.
	Seconds float64 `json:"seconds"`
	Table   string  `json:"table"`
	Prefix  string  `json:"msg_id_prefix"`
}

// Latency is in milliseconds, from COMMIT's answer to the moment when the consumer has the record.
type Latency struct {
	P50 float64 `json:"p50"`
	P90 float64 `json:"p90"`
	P99 float64 `json:"p99"`
	Max float64 `json:"max"`
}

func reportOf(v *oracle.Verdict, took time.Duration) *Report {
	return &Report{
		OK: v.OK(), Transactions: v.Transactions, Committed: v.Committed, RolledBack: v.RolledBack, Delivered: v.Delivered,
		Lost: v.Count(oracle.Lost), Phantom: v.Count(oracle.Phantom), OutOfOrder: v.Count(oracle.Inverted),
		Duplicates: v.Duplicates, Swept: v.Swept, Faults: append([]oracle.Fault{}, v.Faults...), Seconds: took.Seconds(),
		Latency: Latency{P50: ms(v.Latency.P50), P90: ms(v.Latency.P90), P99: ms(v.Latency.P99), Max: ms(v.Latency.Max)},
	}
}

func ms(d time.Duration) float64 { return float64(d.Round(10*time.Microsecond).Microseconds()) / 1000 }
