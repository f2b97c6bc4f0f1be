package config

import (
	"fmt"
	"net"
	"path"
	"regexp"
	"strconv"
	"strings"
)

var (
	sourceName   = regexp.MustCompile(`^[A-Za-z0-9._-]{1,48}$`)
	tablePattern = regexp.MustCompile(`^(/[^/]+/|[^/.]+)\.(/[^/]+/|[^/.]+)$`)
	versionText  = regexp.MustCompile(`^\d+\.\d+(\.\d+){0,2}$`)
	placeholder  = regexp.MustCompile(`\{[^}]*\}?`)
)

// check finds what the types and bounds of single settings cannot tell.
func check(c *Config, d *decoder) {
	k := checker{d: d}
	k.sources(c)
	k.router(&c.Router)
	k.kafka(c)
	k.redis(c)
	k.acks(c)
	k.rest(c)
}

type checker struct{ d *decoder }

// add reports a problem at the place where the key was written, or else its section. A value that is no good already
// is not complained about twice.
func (k checker) add(key, format string, args ...any) {
	for _, p := range k.d.problems.list {
		if rest, ok := strings.CutPrefix(key, p.Path); ok && p.Path != "" && (rest == "" || rest[0] == '.' || rest[0] == '[') {
			return
		}
	}
	at, ok := k.d.where[key]
	for parent := key; !ok && parent != ""; {
		parent = parent[:max(0, strings.LastIndexAny(parent, ".["))]
		at, ok = k.d.where[parent]
	}
	k.d.problems.add(key, at, format, args...)
}

// show begins a message with the wrong value, unless it came from a reference to the environment.
func (k checker) show(key, value string) string {
	if k.d.hidden[key] {
		return ""
	}
	return strconv.Quote(value) + " "
}

func (k checker) sources(c *Config) {
	seen := make(map[string]bool)
	for i, s := range c.Sources {
		at := sourceKey
		if k.d.many {
			at = fmt.Sprintf("%s[%d]", sourcesKey, i)
		}
		if !sourceName.MatchString(s.Name) {
			k.add(at+".name", "%smust be 1 to 48 letters, digits, dots, dashes or underscores", k.show(at+".name", s.Name))
		}
		if seen[s.Name] {
			k.add(at+".name", "%sis another source's name too; give each its own", k.show(at+".name", s.Name))
		}
		seen[s.Name] = true
		k.server(s.Primary, at+".primary")
		if s.Replica != nil {
			k.server(*s.Replica, at+".replica")
			if _, ok := k.d.where[at+".replica.address"]; !ok {
				k.add(at+".replica", "has no address and so would be the primary again; set replica.address, or remove it")
			}
		}
		for j, t := range s.Tables {
			k.table(t, fmt.Sprintf("%s.tables[%d]", at, j))
		}
		k.columns(s.Columns, at+".columns")
		k.statuses(s.Statuses, at+".statuses")
	}
}

func (k checker) server(s Server, at string) {
	if !strings.HasPrefix(s.Address, "/") {
		k.address(s.Address, at+".address")
	}
	if _, err := s.TLSConfig(); err != nil {
		k.add(at+".tls", "%s", err)
	}
}

func (k checker) address(address, at string) {
	host, port, err := net.SplitHostPort(address)
	n, portErr := strconv.Atoi(port)
	if err != nil || host == "" || portErr != nil || n < 1 || n > 65535 {
		k.add(at, "%smust be host:port", k.show(at, address))
	}
}

func (k checker) table(pattern, at string) {
	parts := tablePattern.FindStringSubmatch(pattern)
	if parts == nil {
		k.add(at, "%smust be database.table; a part between slashes is a regular expression, as in app./local_message_\\d+/", k.show(at, pattern))
		return
	}
	for _, part := range parts[1:] {
		if !strings.HasPrefix(part, "/") {
			continue
		}
		if _, err := regexp.Compile(strings.Trim(part, "/")); err != nil {
			k.add(at, "%sholds no regular expression between its slashes; mind the brackets and backslashes", k.show(at, pattern))
		}
	}
}

func (k checker) columns(c Columns, at string) {
	used := make(map[string]string)
	columns := []struct{ key, name string }{
		{"id", c.ID},
		{"msg_id", c.MsgID},
		{"topic", c.Topic},
		{"content", c.Content},
		{"status", c.Status},
		{"retry_count", c.RetryCount},
		{"next_retry_time", c.NextRetryTime},
		{"create_time", c.CreateTime},
		{"update_time", c.UpdateTime},
		{"key", c.Key},
		{"headers", c.Headers},
		{"last_error", c.LastError},
		{"trace", c.Trace},
		{"body_ref", c.BodyRef},
	}
	for _, column := range columns {
		name := strings.ToLower(column.name)
		// The key may well be another column's value: the topic's, or a business column that is also the id.
		if first, ok := used[name]; ok && column.key != "key" {
			key := at + "." + column.key
			k.add(key, "%sis already the column for %s; every meaning needs its own", k.show(key, column.name), first)
		}
		used[name] = column.key
	}
}

func (k checker) statuses(s Statuses, at string) {
	used := make(map[int]string)
	for status, number := range s.Outbox() {
		name := statusName(status)
		if first, ok := used[number]; ok {
			k.add(at+"."+name, "%d already means %s; every status needs its own number", number, first)
		}
		used[number] = name
	}
}

func (k checker) router(r *Router) {
	if r.AfterDead == "hold" && r.Order == "relaxed" {
		k.add("router.after_dead", "hold keeps back the later messages of a key, which router.order: relaxed does not do: use order: strict, or release")
	}
	k.key(r.Key, "router.key")
	for i, route := range r.Routes {
		at := fmt.Sprintf("router.routes[%d]", i)
		if route.Match == "" {
			k.add(at, "has no match; write match: \"*\" for every topic")
		}
		k.glob(route.Match, at+".match")
		k.template(route.Topic, "topic", at+".topic")
		k.key(route.Key, at+".key")
	}
	for i, glob := range r.Allow {
		k.glob(glob, fmt.Sprintf("router.allow[%d]", i))
	}
}

func (k checker) glob(glob, at string) {
	if _, err := path.Match(glob, ""); err != nil {
		k.add(at, "%sis no glob; close its bracket, or put a backslash before it", k.show(at, glob))
	}
}

// key checks a JSON pointer's escapes; anything else is a column's name.
func (k checker) key(key, at string) {
	if !strings.HasPrefix(key, "/") {
		return
	}
	if rest := strings.NewReplacer("~0", "", "~1", "").Replace(key); strings.Contains(rest, "~") {
		k.add(at, "%sis no JSON pointer; write ~0 for ~ and ~1 for /", k.show(at, key))
	}
}

// template checks that a name holds no other placeholder than {name}.
func (k checker) template(text, name, at string) {
	for _, found := range placeholder.FindAllString(text, -1) {
		if found != "{"+name+"}" {
			k.add(at, "%sholds a placeholder other than {%s}; correct it", k.show(at, text), name)
			return
		}
	}
}
