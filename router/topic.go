package router

import (
	"errors"
	"fmt"
	"path"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// topicMacro stands for the row's own topic in a route's target.
const topicMacro = "{topic}"

// maxTopicName is Kafka's limit: the name and "-partition" make a folder name.
const maxTopicName = 249

// Why CheckTopicName does not take a name. They are values so that asking costs no allocation.
var (
	errTopicEmpty = errors.New("a topic name can't be empty")
	errTopicDots  = errors.New(`a topic can't be named "." or ".."`)
	errTopicLong  = fmt.Errorf("a topic name has at most %d characters", maxTopicName)
	errTopicChars = errors.New("a topic name has only ASCII letters, digits, dot, underscore and hyphen")
)

// CheckTopicName reports why Kafka would not take the name, nil when it would.
func CheckTopicName(name string) error {
	switch {
	case name == "":
		return errTopicEmpty
	case name == "." || name == "..":
		return errTopicDots
	case len(name) > maxTopicName:
		return errTopicLong
	}
	for i := range len(name) {
		if !topicByte(name[i]) {
			return errTopicChars
		}
	}
	return nil
}

func topicByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-'
}

// Topic returns the topic that the row would go to, whether or not that is a possible or an allowed one.
func (r *Router) Topic(row *outbox.Row) string {
	topic, _ := r.match(row.Topic)
	return topic
}

// match finds the first route for a topic. Its target and its key rule count; without one the topic stands.
func (r *Router) match(topic string) (string, keyRule) {
	for i := range r.routes {
		route := &r.routes[i]
		if !matches(route.match, topic) {
			continue
		}
		if route.target == topicMacro {
			return topic, route.key
		}
		return strings.ReplaceAll(route.target, topicMacro, topic), route.key
	}
	return topic, r.key
}

// matches is path.Match with patterns that New has checked. "*" does not match a slash, and no topic has one.
func matches(pattern, topic string) bool {
	ok, err := path.Match(pattern, topic)
	return ok && err == nil
}

// allowed refuses names that Kafka does not take and topics that the operator does not want written.
func (r *Router) allowed(topic string) *Refusal {
	if err := CheckTopicName(topic); err != nil {
		return refuse(words.RefusedTopicInvalid, "topic %s is impossible: %v; correct the row's topic or add a route for it", quote(topic), err)
	}
	if len(r.allow) == 0 {
		if strings.HasPrefix(topic, "__") {
			return refuse(words.RefusedTopicNotAllowed, "topic %s is one of Kafka's own; name it in router.allow if it is meant", quote(topic))
		}
		return nil
	}
	for _, pattern := range r.allow {
		if matches(pattern, topic) {
			return nil
		}
	}
	return refuse(words.RefusedTopicNotAllowed, "topic %s is not in router.allow; add it there or correct the row's topic", quote(topic))
}
