package canal

import (
	"errors"
	"fmt"
	"time"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Config says which server to read and which tables to look for. Zero values mean the defaults.
type Config struct {
	mysql.Config // the server whose binlog is read
	// ServerID is how the relay is known among the server's replicas. 0 derives one from Name and the host's name, and
	// steps aside when a replica has it already.
	ServerID uint32
	// Name is the source's name.
	Name string
	// Tables are patterns database.table, see mysql.Pattern.
	Tables []string
	// History is how the history of a table is called, such as "{table}_history": a pattern that happens to match one
	// does not mean it. "" when nothing is archived.
	History  string
	Columns  outbox.Columns
	Statuses outbox.Statuses
	// HeartbeatPeriod is how often an idle server is asked to show that it lives (default 1s); ReadTimeout is how long
	// nothing may come before the connection is taken for dead (default 10s).
	HeartbeatPeriod time.Duration
	ReadTimeout     time.Duration
	// BufferBytes bounds the memory that one transaction's rows take (default 16 MiB). What is above goes to a file in
	// SpillDir (default: the system's temporary folder), which has no name and is gone when the transaction is closed.
	BufferBytes int
	SpillDir    string
}

// Defaults of Config.
const (
	DefaultHeartbeatPeriod = time.Second
	DefaultReadTimeout     = 10 * time.Second
	DefaultBufferBytes     = 16 << 20
)

// withDefaults fills in what is zero.
func (c Config) withDefaults() Config {
	if c.HeartbeatPeriod == 0 {
		c.HeartbeatPeriod = DefaultHeartbeatPeriod
	}
	if c.ReadTimeout == 0 {
		c.ReadTimeout = DefaultReadTimeout
	}
	if c.BufferBytes == 0 {
		c.BufferBytes = DefaultBufferBytes
	}
	if c.Columns == (outbox.Columns{}) {
		c.Columns = outbox.DefaultColumns()
	}
	if c.Statuses == (outbox.Statuses{}) {
		c.Statuses = outbox.DefaultStatuses()
	}
	return c
}

// Validate reports every problem of the configuration at once.
func (c Config) Validate() error {
	c = c.withDefaults()
	var problems []error
	if c.Addr == "" {
		problems = append(problems, errors.New("addr is empty: give host:port"))
	}
	if c.User == "" {
		problems = append(problems, errors.New("user is empty"))
	}
	if c.HeartbeatPeriod < 10*time.Millisecond {
		problems = append(problems, fmt.Errorf("heartbeat period %s is below 10ms", c.HeartbeatPeriod))
	}
	if c.ReadTimeout < 2*c.HeartbeatPeriod {
		problems = append(problems, fmt.Errorf("read timeout %s is below twice the heartbeat period %s",
			c.ReadTimeout, c.HeartbeatPeriod))
	}
	if c.BufferBytes < 0 {
		problems = append(problems, fmt.Errorf("buffer of %d bytes", c.BufferBytes))
	}
	if _, err := mysql.ParsePatterns(c.Tables); err != nil {
		problems = append(problems, err)
	}
	return errors.Join(problems...)
}
