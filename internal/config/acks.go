package config

import (
	"fmt"
	"reflect"
	"regexp"
	"slices"
	"strings"
)

// Acks is how consumers report that they have consumed messages.
type Acks struct {
	Enabled       bool   `yaml:"enabled" doc:"Take reports: by the topic below, by POST /api/v1/acks of the console, and by SQL. A message that is reported gets the status consumed."`
	Topic         string `yaml:"topic" doc:"The Kafka topic that reports are read from, such as outbox.acks. Empty: none."`
	ConsumerGroup string `yaml:"consumer_group" doc:"The consumer group under which the relay keeps how far it has read that topic; {source} stands for the source's name."`
	Groups        Groups `yaml:"groups" doc:"The consumer groups that must report the messages of a topic (as the rows name it), as {order-events: [points, logistics]}. A message is consumed once all of them have. A topic that is not named is consumed with the first report of anybody."`
	Table         string `yaml:"table" doc:"The table that keeps who has reported, where several groups must; {table} stands for the message table's name."`
}

// Groups names the consumer groups of topics.
type Groups map[string][]string

var groupsType = reflect.TypeFor[Groups]()

// groups decodes a mapping of names to lists of names.
func (d *decoder) groups(n *node, into reflect.Value, path string) {
	if n.kind == scalar && n.text == "" {
		return
	}
	if n.kind != mapping {
		d.problems.add(path, n.at, "must be a mapping such as {order-events: [points, logistics]}, not %s", n.kind)
		return
	}
	out := Groups{}
	for _, e := range n.fields {
		at := path + "." + e.key
		d.where[at] = e.at
		var names []string
		d.list(e.value, reflect.ValueOf(&names).Elem(), field{name: e.key, typ: reflect.TypeFor[[]string]()}, at)
		out[e.key] = names
	}
	if len(out) > 0 {
		into.Set(reflect.ValueOf(out))
	}
}

// groupTopics returns the topics in a fixed order.
func groupTopics(g Groups) []string {
	topics := make([]string, 0, len(g))
	for topic := range g {
		topics = append(topics, topic)
	}
	slices.Sort(topics)
	return topics
}

var topicText = regexp.MustCompile(`^[A-Za-z0-9._-]{1,249}$`)

// maxGroups bounds the groups of a topic, and maxGroupTopics the topics: each pair has metrics and costs queries.
const (
	maxGroups      = 32
	maxGroupTopics = 200
	maxGroupName   = 255
)

func (k checker) acks(c *Config) {
	a := c.Acks
	if a.Topic != "" && (!topicText.MatchString(a.Topic) || a.Topic == "." || a.Topic == "..") {
		k.add("acks.topic", "%sis no topic's name; use letters, digits, dots, dashes and underscores", k.show("acks.topic", a.Topic))
	}
	k.template(a.ConsumerGroup, "source", "acks.consumer_group")
	if len(c.Sources) > 1 && !strings.Contains(a.ConsumerGroup, "{source}") {
		k.add("acks.consumer_group", "%swould be shared by several sources, and each report reach one of them only; put {source} into it", k.show("acks.consumer_group", a.ConsumerGroup))
	}
	k.template(a.Table, "table", "acks.table")
	if a.Table == "{table}" || !strings.Contains(a.Table, "{table}") {
		k.add("acks.table", "%smust hold {table} and be another table than the messages'; write {table}_ack", k.show("acks.table", a.Table))
	}
	if len(a.Groups) > maxGroupTopics {
		k.add("acks.groups", "names %d topics; at most %d are watched", len(a.Groups), maxGroupTopics)
	}
	for _, topic := range groupTopics(a.Groups) {
		k.ackGroups(topic, a.Groups[topic])
	}
}

func (k checker) ackGroups(topic string, groups []string) {
	at := "acks.groups." + topic
	switch {
	case len(groups) == 0:
		k.add(at, "names no group; name those that must report, or remove the topic")
	case len(groups) > maxGroups:
		k.add(at, "names %d groups; at most %d are possible", len(groups), maxGroups)
	}
	for i, group := range groups {
		place := fmt.Sprintf("%s[%d]", at, i)
		if len(group) > maxGroupName {
			k.add(place, "is longer than %d bytes; shorten it", maxGroupName)
		}
		if slices.Contains(groups[:i], group) {
			k.add(place, "%sis named twice; remove one", k.show(place, group))
		}
	}
}
