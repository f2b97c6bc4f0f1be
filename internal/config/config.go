// Package config reads the configuration: a YAML file, the environment and --set, over the defaults.
//
// Load reports every problem at once, each with its key path, its place and what to do about it; unknown keys are
// problems too. Secrets are of type Secret and never show in what this package prints or complains about. Zero means
// "use the default", never "off". What the settings mean to Kafka, Redis or a database server is checked by those who
// talk to them; here it is only spelling, ranges, and what contradicts itself.
package config

import (
	"fmt"
	"strings"
	"time"
)

// Config is the whole configuration, complete with defaults. The tags are its documentation and its rules: oneof lists
// the values, min and max are bounds, form names what the text must look like (see forms), zero:"value" says that zero is
// a value here and not "the default".
type Config struct {
	Sources    []Source   `yaml:"sources" doc:"The databases to relay from. One source may be written as source: without the list."`
	Router     Router     `yaml:"router" doc:"How a row becomes a Kafka record."`
	Kafka      Kafka      `yaml:"kafka" doc:"Where the messages go."`
	Redis      Redis      `yaml:"redis" doc:"Where the checkpoint is kept."`
	Checkpoint Checkpoint `yaml:"checkpoint" doc:"How often the position in the binlog is saved, and where to begin without one."`
	Limits     Limits     `yaml:"limits" doc:"Bounds of what is held in memory. When one is reached, reading waits."`
	Retry      Retry      `yaml:"retry" doc:"What happens to a message that Kafka refuses. An unreachable Kafka spends no retries."`
	Sweep      Sweep      `yaml:"sweep" doc:"The low-frequency scan for rows that the stream missed or that are due again."`
	Leader     Leader     `yaml:"leader" doc:"How several relays agree on which of them serves a source."`
	Acks       Acks       `yaml:"acks" doc:"Reports by which consumers tell that they have consumed messages; docs/ACKS.md tells how. Off by default."`
	Archive    Archive    `yaml:"archive" doc:"Moving rows that are done with to a history table."`
	Console    Console    `yaml:"console" doc:"The HTTP server for health, metrics and the API."`
	Log        Log        `yaml:"log" doc:"Logging, to stderr."`
	Shutdown   Shutdown   `yaml:"shutdown" doc:"Stopping on SIGTERM or SIGINT."`
}

// Router is how a row becomes a Kafka record.
type Router struct {
	Key       string   `yaml:"key" form:"key" doc:"Where a message's key comes from: a column, or a JSON pointer into the content such as /order_id. Default: the key column, else msg_id."`
	Routes    []Route  `yaml:"routes" doc:"Rules tried in order, the first match wins. Without a match a message goes to the topic its row names."`
	Allow     []string `yaml:"allow" form:"glob" doc:"Globs of topics that may be written to. Empty: any valid name that does not begin with two underscores."`
	Order     string   `yaml:"order" oneof:"strict|relaxed" doc:"What a topic that refused messages, or a restart, does to new ones while older ones still wait in the table. strict: they wait behind those, so each key keeps its order. relaxed: they are sent at once, and the older ones with the next sweeps, in no order with them. Either way a topic that refuses messages is tried with one at a time."`
	AfterDead string   `yaml:"after_dead" oneof:"release|hold" doc:"What the later messages of a key do once one of them is a dead letter. release: they go on. hold: they wait in the table (status pending, next_retry_time after the year 5000) until somebody retries or discards the dead letter, and then follow in order; messages without a key wait for nobody. It needs next_retry_time to be a DATETIME. Dead letters that are there already hold their keys too: decide about those before switching to hold."`
}

// Route sends the topics that match somewhere else.
type Route struct {
	Match string `yaml:"match" form:"glob" doc:"Glob over the row's topic."`
	Topic string `yaml:"topic" form:"topic template" doc:"The Kafka topic; {topic} stands for the row's. Default: the row's own."`
	Key   string `yaml:"key" form:"key" doc:"As router.key, for these messages."`
}

// Kafka is where the messages go.
type Kafka struct {
	Brokers         []string `yaml:"brokers" form:"address" doc:"host:port of some brokers; the others are learnt from them."`
	ClientID        string   `yaml:"client_id" doc:"The name the brokers see."`
	Version         string   `yaml:"version" form:"version" doc:"The protocol version, such as 3.6.0. Empty: negotiated."`
	TLS             string   `yaml:"tls" oneof:"off|required|verify-ca|verify-identity" doc:"required encrypts but trusts any server; verify-ca checks its certificate; verify-identity its name as well."`
	TLSFiles        `yaml:",inline"`
	SASL            SASL   `yaml:"sasl" doc:"Authentication."`
	Compression     string `yaml:"compression" oneof:"none|gzip|snappy|lz4|zstd" doc:"Compression of the batches."`
	MaxMessageBytes Size   `yaml:"max_message_bytes" min:"1KiB" max:"1GiB" doc:"The largest record. A larger message is a dead letter. Not above the brokers' own limit."`
	CreateTopics    bool   `yaml:"create_topics" doc:"Create a topic that does not exist, with the brokers' defaults."`
	DedupeOnRestart string `yaml:"dedupe_on_restart" oneof:"on|off" doc:"on: after a restart the ends of the topics are read, so that what was published and not marked before is not sent again; needs READ on the topics. off: such messages are sent twice, no more than limits.in_flight and limits.unmarked together."`
}

// SASL is how the relay proves to Kafka who it is.
type SASL struct {
	Mechanism    string `yaml:"mechanism" oneof:"|plain|scram-sha-256|scram-sha-512|oauthbearer" doc:"Empty: none."`
	User         string `yaml:"user" doc:"The user."`
	Password     Secret `yaml:"password" doc:"The password; for oauthbearer the token."`
	PasswordFile string `yaml:"password_file" doc:"File that holds the password."`
	TokenFile    string `yaml:"token_file" doc:"File that holds the token for oauthbearer; read again for each connection, so that it may be renewed."`
}

// Redis is where the checkpoint is kept.
type Redis struct {
	URL          []SecretURL `yaml:"url" form:"redis" doc:"redis://, rediss:// (TLS), redis+sentinel://, or a list of addresses of a cluster."`
	URLFile      string      `yaml:"url_file" doc:"File that holds the url, or several, one a line."`
	Password     Secret      `yaml:"password" doc:"The password, where the url has none."`
	PasswordFile string      `yaml:"password_file" doc:"File that holds the password."`
	TLSFiles     `yaml:",inline"`
	Prefix       string `yaml:"prefix" doc:"Begins every key."`
}

// Checkpoint is when the position is saved, and where to begin without one.
type Checkpoint struct {
	Interval time.Duration `yaml:"interval" min:"100ms" max:"1m" doc:"How often the position is saved while it moves."`
	Start    string        `yaml:"start" oneof:"now|earliest" doc:"Where to begin when there is no checkpoint: at the binlog's present end, everything pending being swept (now), or at the oldest binlog there is (earliest)."`
}

// Limits bound what is held in memory.
type Limits struct {
	InFlight      int           `yaml:"in_flight" min:"1" max:"10000000" doc:"Messages handed to Kafka and not yet acked."`
	InFlightBytes Size          `yaml:"in_flight_bytes" min:"64KiB" max:"64GiB" doc:"The same in bytes."`
	Unmarked      int           `yaml:"unmarked" min:"1" max:"100000000" doc:"Messages acked by Kafka and not yet marked in the table."`
	MarkBatch     int           `yaml:"mark_batch" min:"1" max:"10000" doc:"Rows that one UPDATE marks."`
	MarkDelay     time.Duration `yaml:"mark_delay" min:"1ms" max:"10s" doc:"How long a mark waits for others to share its UPDATE."`
}

// Retry is what happens to a message that Kafka refuses.
type Retry struct {
	Backoff    []time.Duration `yaml:"backoff" min:"1ms" max:"168h" doc:"The delay before each retry; the last one repeats."`
	Jitter     float64         `yaml:"jitter" min:"0" max:"1" doc:"The share of a delay that is random."`
	MaxRetries int             `yaml:"max_retries" min:"1" max:"1000000" doc:"Refusals after which a message is a dead letter."`
}

// Sweep is the low-frequency scan.
type Sweep struct {
	Interval time.Duration `yaml:"interval" min:"1s" max:"24h" doc:"How often the table is looked at. A due retry or a delayed message wakes it earlier."`
	Batch    int           `yaml:"batch" min:"1" max:"10000" doc:"Rows that one query takes."`
	Grace    time.Duration `yaml:"grace" min:"100ms" max:"1h" doc:"How old a pending row must be before it counts as missed."`
}

// Leader is how relays agree on which of them serves a source.
type Leader struct {
	Lock  string        `yaml:"lock" oneof:"mysql|redis|none" doc:"mysql: GET_LOCK on the primary. redis: a lease. none: there is only one relay, and you see to it."`
	Lease time.Duration `yaml:"lease" min:"3s" max:"5m" doc:"How long a dead leader keeps the source."`
}

// Acks is how consumers report that they have consumed messages.
type Acks struct {
	Enabled       bool   `yaml:"enabled" doc:"Take reports: by the topic below, by POST /api/v1/acks of the console, and by SQL. A message that is reported gets the status consumed."`
	Topic         string `yaml:"topic" form:"topic" doc:"The Kafka topic that reports are read from, such as outbox.acks. Empty: none."`
	ConsumerGroup string `yaml:"consumer_group" form:"group template" doc:"The consumer group under which the relay keeps how far it has read that topic; {source} stands for the source's name."`
	Groups        Groups `yaml:"groups" doc:"The consumer groups that must report the messages of a topic (as the rows name it), as {order-events: [points, logistics]}. A message is consumed once all of them have. A topic that is not named is consumed with the first report of anybody."`
	Table         string `yaml:"table" form:"acks" doc:"The table that keeps who has reported, where several groups must; {table} stands for the message table's name."`
}

// Groups names the consumer groups of topics.
type Groups map[string][]string

// Archive moves rows that are done with to a history table.
type Archive struct {
	Enabled  bool          `yaml:"enabled" doc:"Archive at all."`
	After    time.Duration `yaml:"after" min:"1m" max:"87600h" doc:"The age, by update_time, at which a row is archived."`
	Statuses []string      `yaml:"statuses" oneof:"sent|consumed" doc:"The statuses that are archived. sent: where no consumer reports back."`
	Table    string        `yaml:"table" form:"history" doc:"The history table; {table} stands for the table's name. It is in the table's database, and no message table even if source.tables matches it."`
	Batch    int           `yaml:"batch" min:"1" max:"10000" doc:"Rows moved in one transaction, at most: while the database is busy, fewer."`
	Interval time.Duration `yaml:"interval" min:"1s" max:"24h" doc:"How often."`
}

// Console is the HTTP server.
type Console struct {
	Listen    string `yaml:"listen" form:"listen" zero:"value" doc:"host:port to listen on; empty switches the console off."`
	Token     Secret `yaml:"token" doc:"Bearer token that everything but /livez and /readyz then asks for."`
	TokenFile string `yaml:"token_file" doc:"File that holds the token."`
	Prefix    string `yaml:"prefix" form:"path" doc:"Path that all pages are served under, such as /relay."`
}

// Log is logging.
type Log struct {
	Level  string `yaml:"level" oneof:"trace|debug|info|warn|error" doc:"The least level that is logged. debug logs each message, never its content."`
	Format string `yaml:"format" oneof:"auto|text|json" doc:"auto: text on a terminal, JSON lines elsewhere."`
}

// Shutdown is stopping.
type Shutdown struct {
	Timeout time.Duration `yaml:"timeout" min:"1s" max:"1h" doc:"How long messages in flight may take to be acked, marked and checkpointed. Keep it under the supervisor's own patience."`
}

// Source returns the source called name; "" means the only one. The error lists the names there are.
func (c *Config) Source(name string) (Source, error) {
	names := make([]string, len(c.Sources))
	for i, s := range c.Sources {
		if s.Name == name || name == "" && len(c.Sources) == 1 {
			return s, nil
		}
		names[i] = s.Name
	}
	if name == "" {
		return Source{}, fmt.Errorf("several sources are configured: choose one with --source %s", strings.Join(names, "|"))
	}
	return Source{}, fmt.Errorf("no source %q is configured: use --source %s", name, strings.Join(names, "|"))
}
