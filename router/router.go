// Package router turns a row of the local message table into the record that goes to Kafka: topic, key and headers.
//
// It is pure: no I/O, no clock, and the same row always makes the same record, so that stream and sweeper agree. A row
// that can never become a record comes back as a *Refusal. What Kafka thinks of the record is the kafka package's
// business.
package router

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// Config says where rows go.
type Config struct {
	// Source is the name that the outbox_source header carries.
	Source string
	// Key is where a record's key comes from: "" for the row's key column, a column's name, or a JSON pointer into
	// the content ("/order_id"). Where it finds nothing, the key column counts, then msg_id.
	Key string
	// KeyColumn is the column whose value rows carry as Row.Key; default: Key if that names a column, else msg_key.
	KeyColumn string
	Routes    []Route
	// Allow lists the topics that may be written, as patterns; empty: any but Kafka's own (__*).
	Allow []string
	// MaxMessageBytes bounds Record.Size; 0: 1 MiB.
	MaxMessageBytes int
}

// Route sends the topics that match a pattern somewhere else, or gives them another key.
type Route struct {
	// Match is a pattern of path.Match for the row's topic.
	Match string
	// Topic is the target; {topic} in it is the row's own. "" leaves the topic as it is.
	Topic string
	// Key is as in Config; "" inherits that one.
	Key string
}

// DefaultMaxMessageBytes is Kafka's own default for a batch.
const DefaultMaxMessageBytes = 1 << 20

// Router builds records. It does not change and may be used from many goroutines.
type Router struct {
	source   []byte
	key      keyRule
	routes   []route
	allow    []string
	maxBytes int
}

type route struct {
	match  string
	target string
	key    keyRule
}

// New checks the configuration and reports everything that is wrong with it at once.
func New(cfg Config) (*Router, error) {
	r := &Router{source: []byte(cfg.Source), allow: cfg.Allow, maxBytes: cfg.MaxMessageBytes}
	if r.maxBytes == 0 {
		r.maxBytes = DefaultMaxMessageBytes
	}
	column := keyColumn(cfg)
	var errs []error
	var err error
	if r.key, err = parseKey(cfg.Key, column); err != nil {
		errs = append(errs, fmt.Errorf("router.key: %w", err))
	}
	for i, in := range cfg.Routes {
		out, err := newRoute(in, r.key, column)
		if err != nil {
			errs = append(errs, fmt.Errorf("router.routes[%d]: %w", i, err))
		}
		r.routes = append(r.routes, out)
	}
	for i, pattern := range cfg.Allow {
		if err := checkPattern(pattern); err != nil {
			errs = append(errs, fmt.Errorf("router.allow[%d]: %w", i, err))
		}
	}
	if cfg.MaxMessageBytes < 0 {
		errs = append(errs, fmt.Errorf("router max_message_bytes: %d is negative", cfg.MaxMessageBytes))
	}
	if len(errs) > 0 {
		return nil, errors.Join(errs...)
	}
	return r, nil
}

func newRoute(in Route, inherited keyRule, column string) (route, error) {
	out := route{match: in.Match, target: in.Topic, key: inherited}
	var errs []error
	if err := checkPattern(in.Match); err != nil {
		errs = append(errs, fmt.Errorf("match: %w", err))
	}
	if out.target == "" {
		out.target = topicMacro
	}
	// Any one-letter topic will do to see whether what surrounds it can be a topic.
	if err := CheckTopicName(strings.ReplaceAll(out.target, topicMacro, "t")); err != nil {
		errs = append(errs, fmt.Errorf("topic %s: %w", quote(in.Topic), err))
	}
	if in.Key != "" {
		var err error
		if out.key, err = parseKey(in.Key, column); err != nil {
			errs = append(errs, fmt.Errorf("key: %w", err))
		}
	}
	return out, errors.Join(errs...)
}

func checkPattern(pattern string) error {
	if pattern == "" {
		return errors.New(`an empty pattern matches nothing; use "*" for every topic`)
	}
	if _, err := path.Match(pattern, "topic"); err != nil {
		return fmt.Errorf("pattern %q: %w", pattern, err)
	}
	return nil
}

// Route builds the row's record. position is the value of the outbox_position header: "server/file:pos/row", or
// words.PositionSweep. The record shares the row's content and key. The error is always a *Refusal: the row can never be sent.
func (r *Router) Route(row *outbox.Row, position string) (*Record, error) {
	if row.MsgID == "" {
		return nil, refuse(words.RefusedMsgIDEmpty, "msg_id is empty: consumers could not tell the message from another; give the row a unique msg_id")
	}
	topic, rule := r.match(row.Topic)
	if refusal := r.allowed(topic); refusal != nil {
		return nil, refusal
	}
	if len(row.Content) == 0 {
		return nil, refuse(words.RefusedContentEmpty, "the content is empty, which Kafka would take for a deletion; give the row a content")
	}
	headers, msgID, refusal := r.headers(row, position)
	if refusal != nil {
		return nil, refusal
	}
	rec := &Record{Topic: topic, Key: rule.find(row, msgID), Value: row.Content, Headers: headers}
	if size := rec.Size(); size > r.maxBytes {
		return nil, r.tooLarge(rec, size)
	}
	return rec, nil
}

func (r *Router) tooLarge(rec *Record, size int) *Refusal {
	if headers := headersSize(rec.Headers); headers > r.maxBytes/2 && len(rec.Value) <= r.maxBytes/2 {
		return refuse(words.RefusedHeadersTooLarge, "the headers alone take %d bytes of the %d that a message may have; make them smaller", headers, r.maxBytes)
	}
	return refuse(words.RefusedTooLarge, "the message takes %d bytes and may have %d; make it smaller, or raise kafka.max_message_bytes and the topic's max.message.bytes", size, r.maxBytes)
}
