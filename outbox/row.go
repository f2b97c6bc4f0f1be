package outbox

import "fmt"

// Table names one local message table.
type Table struct {
	Database string
	Name     string
}

// String returns database.name.
func (t Table) String() string { return t.Database + "." + t.Name }

// Row is one message as it stands in the local message table at the commit of the transaction that wrote it.
// The stream and the sweeper build the same Row from the same bytes.
type Row struct {
	Table Table
	// ID holds the 64 bits of the id column; whether they are signed is the table's business (see store).
	// A BIGINT UNSIGNED above 2^63 keeps its value, a negative BIGINT its two's complement.
	ID    uint64
	MsgID string
	Topic string
	// Content is the body in UTF-8, whatever the column's charset; otherwise untouched.
	Content []byte
	// Key is the key column's value, nil when the column is missing or NULL.
	Key []byte
	// Headers is the headers column's JSON text, nil when the column is missing or NULL. Untrusted: it may be no JSON at all.
	Headers     []byte
	TraceParent string
	// BodyRef says where the body was staged, as ParseBodyRef reads it; "" when the row has it in Content.
	BodyRef    string
	Status     Status
	RetryCount int
	// NextRetry is the next_retry_time as the database prints it (the server's time zone), "" when NULL.
	NextRetry string
	// Created is the create_time as the database prints it; a TIMESTAMP column is printed in UTC.
	Created string
}

// Ref names a row for the guarded UPDATEs: by primary key and by msg_id, because TRUNCATE reuses ids.
type Ref struct {
	Table Table
	ID    uint64
	MsgID string
}

// Ref returns what the guarded UPDATEs need to find the row again.
func (r *Row) Ref() Ref { return Ref{Table: r.Table, ID: r.ID, MsgID: r.MsgID} }

// Columns maps each meaning to the name of its column. Names are compared without regard to case, as MySQL does.
type Columns struct {
	ID, MsgID, Topic, Content, Status, RetryCount, NextRetryTime, CreateTime, UpdateTime string
	// The last five are used where the table has them.
	Key, Headers, LastError, Trace, BodyRef string
}

// DefaultColumns returns the names of the pattern's table.
func DefaultColumns() Columns {
	return Columns{
		ID: "id", MsgID: "msg_id", Topic: "topic", Content: "msg_content", Status: "status",
		RetryCount: "retry_count", NextRetryTime: "next_retry_time", CreateTime: "create_time", UpdateTime: "update_time",
		Key: "msg_key", Headers: "headers", LastError: "last_error", Trace: "trace_parent", BodyRef: "body_ref",
	}
}

// Status is where a message stands. The numbers stored in the table are a Statuses.
type Status uint8

// The statuses. Nothing but a person's command moves a row out of Dead or Discarded; Consumed never goes back.
const (
	Pending   Status = iota // committed, not yet acked by Kafka
	Sent                    // acked by Kafka with acks=all
	Failed                  // refused for now, retried at next_retry_time
	Consumed                // a consumer reported back
	Dead                    // retries spent or refused for good: a person decides
	Discarded               // a person decided not to send it
	Foreign                 // a number the configuration does not name: none of the relay's business
)

var statusNames = [...]string{"pending", "sent", "failed", "consumed", "dead", "discarded", "foreign"}

// String returns the status' name as the command line spells it.
func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// ParseStatus reads a status' name, as String prints it.
func ParseStatus(name string) (Status, error) {
	for i, n := range statusNames[:Foreign] {
		if n == name {
			return Status(i), nil
		}
	}
	return Foreign, fmt.Errorf("unknown status %q: use pending, sent, failed, consumed, dead or discarded", name)
}

// Statuses gives the number that the table stores for each status, indexed by Status.
type Statuses [Foreign]int

// DefaultStatuses returns the pattern's numbers: 0 pending, 1 sent, 2 failed, 3 consumed, 4 dead, 5 discarded.
func DefaultStatuses() Statuses { return Statuses{0, 1, 2, 3, 4, 5} }

// Of returns the status that a stored number means, Foreign when none does.
func (s Statuses) Of(number int64) Status {
	for i, n := range s {
		if int64(n) == number {
			return Status(i)
		}
	}
	return Foreign
}
