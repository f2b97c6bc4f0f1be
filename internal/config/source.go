package config

import "example.com/outbox-relay/outbox"

// Source is one database to relay from.
type Source struct {
	Name     string   `yaml:"name" form:"source" doc:"Names the checkpoint, the lock and the metric label. Letters, digits, dot, dash and underscore, 48 at most."`
	Primary  Server   `yaml:"primary" doc:"The server where rows are marked and swept."`
	Replica  *Server  `yaml:"replica" inherit:"primary" doc:"The binlog is read here, if set. What it omits it takes from the primary."`
	ServerID uint32   `yaml:"server_id" doc:"The replica id the relay reads under. 0: derived from name and host, and checked to be free."`
	Tables   []string `yaml:"tables" form:"table" doc:"The message tables, as database.table. A part between slashes is an anchored regular expression: app./local_message_\\d+/. A name with a dot or a slash in it is written as one: app./x\\.y/ or app./x\\x2fy/."`
	Mode     string   `yaml:"mode" oneof:"auto|stream|sweep" doc:"auto: stream and sweep, and sweep alone, loudly, while the stream cannot run. stream: never go on without it. sweep: no binlog at all."`
	Columns  Columns  `yaml:"columns" doc:"The names of the table's columns. The last five are used where the table has them."`
	Statuses Statuses `yaml:"statuses" doc:"The number that the table stores for each status."`
}

// Server is how to reach one MySQL or MariaDB server.
type Server struct {
	Address      string `yaml:"address" form:"server" doc:"host:port, or the path of a socket."`
	User         string `yaml:"user" doc:"The relay's user; outbox-relay init --print-sql tells the grants."`
	Password     Secret `yaml:"password" doc:"The password."`
	PasswordFile string `yaml:"password_file" doc:"File that holds the password."`
	TLS          string `yaml:"tls" oneof:"off|preferred|required|verify-ca|verify-identity" doc:"preferred encrypts if the server can; required insists but trusts any server; verify-ca checks its certificate; verify-identity its name as well."`
	TLSFiles     `yaml:",inline"`
}

// Columns maps each meaning to its column.
type Columns struct {
	ID            string `yaml:"id" doc:"Primary key."`
	MsgID         string `yaml:"msg_id" doc:"The unique id that consumers deduplicate by."`
	Topic         string `yaml:"topic" doc:"The topic."`
	Content       string `yaml:"content" doc:"The body."`
	Status        string `yaml:"status" doc:"The status."`
	RetryCount    string `yaml:"retry_count" doc:"How often the message was refused."`
	NextRetryTime string `yaml:"next_retry_time" doc:"When it is due."`
	CreateTime    string `yaml:"create_time" doc:"When it was written."`
	UpdateTime    string `yaml:"update_time" doc:"When it was last changed."`
	Key           string `yaml:"key" doc:"Optional: the Kafka key."`
	Headers       string `yaml:"headers" doc:"Optional: a JSON object of strings."`
	LastError     string `yaml:"last_error" doc:"Optional: why the last try failed."`
	Trace         string `yaml:"trace" doc:"Optional: a W3C traceparent."`
	BodyRef       string `yaml:"body_ref" doc:"Optional: where the body was staged in Kafka (topic/partition/offset), for rows that do not hold it."`
}

// Statuses are the numbers that the table stores.
type Statuses struct {
	Pending   int `yaml:"pending" zero:"value" min:"-128" max:"255" doc:"Committed and not yet sent."`
	Sent      int `yaml:"sent" zero:"value" min:"-128" max:"255" doc:"Acked by Kafka."`
	Failed    int `yaml:"failed" zero:"value" min:"-128" max:"255" doc:"Refused, to be tried again."`
	Consumed  int `yaml:"consumed" zero:"value" min:"-128" max:"255" doc:"A consumer reported back."`
	Dead      int `yaml:"dead" zero:"value" min:"-128" max:"255" doc:"Dead letter: a person decides."`
	Discarded int `yaml:"discarded" zero:"value" min:"-128" max:"255" doc:"A person decided not to send it."`
}

// Outbox returns the columns as the domain has them.
func (c Columns) Outbox() outbox.Columns { return outbox.Columns(c) }

// Outbox returns the numbers as the domain has them.
func (s Statuses) Outbox() outbox.Statuses {
	return outbox.Statuses{
		outbox.Pending: s.Pending, outbox.Sent: s.Sent, outbox.Failed: s.Failed,
		outbox.Consumed: s.Consumed, outbox.Dead: s.Dead, outbox.Discarded: s.Discarded,
	}
}

// Reader returns the server whose binlog is read: the replica if there is one, else the primary.
func (s Source) Reader() Server {
	if s.Replica != nil {
		return *s.Replica
	}
	return s.Primary
}
