package config

import (
	"fmt"
	"net"
	"slices"
	"strings"

	"example.com/outbox-relay/outbox"
)

// statusName returns the name of the status with this index.
func statusName(status int) string { return outbox.Status(status).String() }

func (k checker) kafka(c *Config) {
	for i, broker := range c.Kafka.Brokers {
		k.address(broker, fmt.Sprintf("kafka.brokers[%d]", i))
	}
	if v := c.Kafka.Version; v != "" && !versionText.MatchString(v) {
		k.add("kafka.version", "%smust be a version such as 3.6.0, or empty", k.show("kafka.version", v))
	}
	if _, err := c.Kafka.TLSConfig(); err != nil {
		k.add("kafka.tls", "%s", err)
	}
	k.sasl(c.Kafka.SASL)
	if c.Kafka.MaxMessageBytes > c.Limits.InFlightBytes {
		k.add("limits.in_flight_bytes", "%s is less than kafka.max_message_bytes (%s), so that one large message would never fit; raise it",
			c.Limits.InFlightBytes, c.Kafka.MaxMessageBytes)
	}
}

func (k checker) sasl(s SASL) {
	switch s.Mechanism {
	case "":
		if s.User != "" || !s.Password.IsZero() || s.TokenFile != "" {
			k.add("kafka.sasl.mechanism", "is empty, so that the credentials beside it would not be used; set plain, scram-sha-256, scram-sha-512 or oauthbearer")
		}
	case "oauthbearer":
		if s.Password.IsZero() == (s.TokenFile == "") {
			k.add("kafka.sasl.token_file", "oauthbearer needs a token; set token_file or, for one that never changes, password")
		}
	default:
		if s.User == "" {
			k.add("kafka.sasl.user", "%s needs a user", s.Mechanism)
		}
		if s.Password.IsZero() {
			k.add("kafka.sasl.password", "%s needs a password; set it, or password_file", s.Mechanism)
		}
	}
}

// redis never repeats a url: what is wrong with it may be its password.
func (k checker) redis(c *Config) {
	schemes := []string{"redis", "rediss", "redis+sentinel", "rediss+sentinel", "redis+cluster", "rediss+cluster", "unix"}
	for i, u := range c.Redis.URL {
		at := "redis.url"
		if len(c.Redis.URL) > 1 {
			at = fmt.Sprintf("redis.url[%d]", i)
		}
		scheme, rest, ok := strings.Cut(u.Reveal(), "://")
		switch {
		case !ok:
			if _, _, err := net.SplitHostPort(u.Reveal()); err != nil {
				k.add(at, "must be redis://host:port/0, rediss://, redis+sentinel:// or, in a list, host:port")
			}
		case !slices.Contains(schemes, scheme):
			k.add(at, "begins with an unknown scheme; use redis://, rediss:// or redis+sentinel://")
		case rest == "":
			k.add(at, "names no server; write redis://host:port/0")
		}
	}
	if _, err := c.Redis.TLSConfig(); err != nil {
		k.add("redis", "%s", err)
	}
}

func (k checker) rest(c *Config) {
	if c.Limits.MarkBatch > c.Limits.Unmarked {
		k.add("limits.mark_batch", "%d is more than limits.unmarked (%d), so that a batch would never fill; lower it",
			c.Limits.MarkBatch, c.Limits.Unmarked)
	}
	k.archive(c)
	if listen := c.Console.Listen; listen != "" {
		if _, _, err := net.SplitHostPort(listen); err != nil {
			k.add("console.listen", "%smust be host:port, :port, or empty to switch the console off", k.show("console.listen", listen))
		}
	}
	if p := c.Console.Prefix; p != "" && (!strings.HasPrefix(p, "/") || strings.HasSuffix(p, "/") || strings.ContainsAny(p, "{}?# ")) {
		k.add("console.prefix", "%smust begin with a slash and not end with one, as /relay", k.show("console.prefix", p))
	}
}
