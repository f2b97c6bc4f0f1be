// Package acks is the SQL of reports back: what a report does to the rows that it names, the ack tables in which it is kept which
// of several groups have reported, and the sent messages that nobody has reported.
//
// It guarantees that a report moves a row to consumed from pending, sent or failed only, and never takes one back; that a message
// that several groups have to report is consumed with the last of them, however they meet; and that reports may be repeated.
// Where reports come from and what is tried again is package reports'; the format is inbox/report's.
package acks

import (
	"strings"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Config says where it is kept who has reported. It is the store.Companion that makes and checks the ack tables.
type Config struct {
	// Table names the ack table of a message table; {table} stands for the message table's name. "" means {table}_ack.
	Table string
	// Needed tells that some message has to be reported by several groups, so that the ack tables must exist.
	Needed bool
}

// of returns the ack table of a message table.
func (c Config) of(messages outbox.Table) outbox.Table {
	name := c.Table
	if name == "" {
		name = "{table}_ack"
	}
	return outbox.Table{Database: messages.Database, Name: strings.ReplaceAll(name, "{table}", messages.Name)}
}

// Acks takes and finds the reports of a store's tables. The methods may be called concurrently.
type Acks struct {
	store *store.Store
	cfg   Config
	pool  *mysql.Pool // takes reports, one session, with small row images as marks have
}

// New returns the reports of the tables of rows, which it uses until rows is closed. It connects only when it is used.
func New(rows *store.Store, cfg Config) (*Acks, error) {
	pool, err := rows.NewPool(mysql.Options{Size: 1, SmallImages: true})
	if err != nil {
		return nil, err
	}
	return &Acks{store: rows, cfg: cfg, pool: pool}, nil
}

// Rules say who has to report what.
type Rules struct {
	// Groups are the groups that have to report the messages of a topic, by the topic as rows name it. Messages of other topics
	// are consumed with the first report, whoever's.
	Groups map[string][]string
	// TopicOf returns the Kafka topic of a row's topic; nil means that they are the same.
	TopicOf func(rowTopic string) string
}

func (r Rules) topicOf(rowTopic string) string {
	if r.TopicOf == nil {
		return rowTopic
	}
	return r.TopicOf(rowTopic)
}

// NeedTable reports whether some topic has several groups, so that it must be kept which of them have reported.
func (r Rules) NeedTable() bool {
	for _, groups := range r.Groups {
		if len(groups) > 1 {
			return true
		}
	}
	return false
}
