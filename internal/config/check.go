package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"example.com/outbox-relay/outbox"
)

// check finds what single settings, each right in itself, get wrong together.
func (d *decoder) check(c *Config) {
	seen := make(map[string]bool)
	for i, s := range c.Sources {
		at := d.sourcePath(i)
		if seen[s.Name] {
			d.wrong(at+".name", "%sis another source's name too; give each its own", d.show(at+".name", s.Name))
		}
		seen[s.Name] = seen[s.Name] || !d.refused(at+".name")
		d.checkSource(s, at)
	}
	if c.Router.AfterDead == "hold" && c.Router.Order == "relaxed" {
		d.wrong("router.after_dead", "hold keeps back the later messages of a key, which router.order: relaxed does not do: use order: strict, or release")
	}
	for i, route := range c.Router.Routes {
		at := fmt.Sprintf("router.routes[%d]", i)
		if route.Match == "" && !d.refused(at+".match") {
			d.wrong(at, "has no match; write match: \"*\" for every topic")
		}
	}
	if _, err := c.Kafka.TLSConfig(); err != nil {
		d.wrong("kafka.tls", "%s", err)
	}
	d.checkSASL(c.Kafka.SASL)
	if c.Kafka.MaxMessageBytes > c.Limits.InFlightBytes {
		d.wrong("limits.in_flight_bytes", "%s is less than kafka.max_message_bytes (%s), so that one large message would never fit; raise it",
			c.Limits.InFlightBytes, c.Kafka.MaxMessageBytes)
	}
	if _, err := c.Redis.TLSConfig(); err != nil {
		d.wrong("redis", "%s", err)
	}
	if g := c.Acks.ConsumerGroup; len(c.Sources) > 1 && !strings.Contains(g, "{source}") {
		d.wrong("acks.consumer_group", "%swould be shared by several sources, and each report reach one of them only; put {source} into it",
			d.show("acks.consumer_group", g))
	}
	if c.Limits.MarkBatch > c.Limits.Unmarked {
		d.wrong("limits.mark_batch", "%d is more than limits.unmarked (%d), so that a batch would never fill; lower it",
			c.Limits.MarkBatch, c.Limits.Unmarked)
	}
	d.checkArchive(c)
}

// wrong reports a problem at the place where the key was written, or else its section. A value that is no good already
// is not complained about twice.
func (d *decoder) wrong(key, format string, args ...any) {
	if d.refused(key) {
		return
	}
	var at place
	if n, _ := d.root.find(key); n != nil {
		at = n.at
	}
	d.problems.add(key, at, format, args...)
}

// refused reports whether a problem of the key, or of one above it, is known already.
func (d *decoder) refused(key string) bool {
	return slices.ContainsFunc(d.problems.list, func(p Problem) bool {
		rest, ok := strings.CutPrefix(key, p.Path)
		return ok && p.Path != "" && (rest == "" || rest[0] == '.' || rest[0] == '[')
	})
}

// show begins a message with the wrong value, unless it came from a reference to the environment.
func (d *decoder) show(key, value string) string {
	if n, exact := d.root.find(key); exact && n.referring() {
		return ""
	}
	return strconv.Quote(value) + " "
}

func (d *decoder) sourcePath(i int) string {
	if d.many() {
		return fmt.Sprintf("%s[%d]", sourcesKey, i)
	}
	return sourceKey
}

func (d *decoder) checkSource(s Source, at string) {
	if _, err := s.Primary.TLSConfig(); err != nil {
		d.wrong(at+".primary.tls", "%s", err)
	}
	if s.Replica != nil {
		if _, err := s.Replica.TLSConfig(); err != nil {
			d.wrong(at+".replica.tls", "%s", err)
		}
		if _, written := d.root.find(at + ".replica.address"); !written {
			d.wrong(at+".replica", "has no address and so would be the primary again; set replica.address, or remove it")
		}
	}
	columns := make(map[string]string)
	for _, f := range fieldsOf(reflect.TypeFor[Columns]()) {
		name := reflect.ValueOf(s.Columns).FieldByIndex(f.index).String()
		// The key may well be another column's value: the topic's, or a business column that is also the id.
		if first, ok := columns[strings.ToLower(name)]; ok && f.name != "key" {
			key := at + ".columns." + f.name
			d.wrong(key, "%sis already the column for %s; every meaning needs its own", d.show(key, name), first)
		}
		columns[strings.ToLower(name)] = f.name
	}
	statuses := make(map[int]string)
	for status, number := range s.Statuses.Outbox() {
		name := outbox.Status(status).String()
		if first, ok := statuses[number]; ok {
			d.wrong(at+".statuses."+name, "%d already means %s; every status needs its own number", number, first)
		}
		statuses[number] = name
	}
}

func (d *decoder) checkSASL(s SASL) {
	switch s.Mechanism {
	case "":
		if s.User != "" || !s.Password.IsZero() || s.TokenFile != "" {
			d.wrong("kafka.sasl.mechanism", "is empty, so that the credentials beside it would not be used; set plain, scram-sha-256, scram-sha-512 or oauthbearer")
		}
	case "oauthbearer":
		if s.Password.IsZero() == (s.TokenFile == "") {
			d.wrong("kafka.sasl.token_file", "oauthbearer needs a token; set token_file or, for one that never changes, password")
		}
	default:
		if s.User == "" {
			d.wrong("kafka.sasl.user", "%s needs a user", s.Mechanism)
		}
		if s.Password.IsZero() {
			d.wrong("kafka.sasl.password", "%s needs a password; set it, or password_file", s.Mechanism)
		}
	}
}

// checkArchive finds tables that can't be archived into. A table that a regular expression matches is known to the
// server only; the relay leaves histories out of those by itself.
func (d *decoder) checkArchive(c *Config) {
	if !c.Archive.Enabled || d.refused("archive.table") {
		return
	}
	for i, s := range c.Sources {
		for j, t := range s.Tables {
			database, name, _ := strings.Cut(t, ".")
			base, ok := outbox.HistoryBase(c.Archive.Table, name, true)
			if ok && slices.Contains(s.Tables, database+"."+base) {
				key := fmt.Sprintf("%s.tables[%d]", d.sourcePath(i), j)
				d.wrong(key, "%sis what archive.table calls the history of %s.%s; remove it, or choose another archive.table", d.show(key, t), database, base)
			}
		}
	}
}
