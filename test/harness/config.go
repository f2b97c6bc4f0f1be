package harness

import (
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Settings are configuration keys, dotted, with their values: "source.primary.address". Values are what YAML takes.
type Settings map[string]any

// Endpoint is a database server and a user of it.
type Endpoint struct{ Addr, User, Password string }

// Target names everything a relay needs; the rest of the configuration stays at its defaults.
type Target struct {
	Primary  Endpoint
	Tables   []string
	Brokers  []string
	RedisURL string
}

// Settings returns the smallest useful configuration for the target, with a console on a free port.
func (g Target) Settings(t testing.TB) Settings {
	t.Helper()
	return Settings{
		"source.primary.address": g.Primary.Addr, "source.primary.user": g.Primary.User, "source.primary.password": g.Primary.Password,
		"source.tables": g.Tables, "kafka.brokers": g.Brokers, "redis.url": g.RedisURL,
		"console.listen": FreeAddr(t), "log.format": "json",
	}
}

// With returns a copy with some keys changed: a key and its value, and so on.
func (s Settings) With(pairs ...any) Settings {
	changed := maps.Clone(s)
	for i := 0; i+1 < len(pairs); i += 2 {
		changed[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return changed
}

// Section returns the settings below a key as a tree, to be an item of a list.
func (s Settings) Section(key string) any { return s.tree()[key] }

// Without returns a copy without the settings below a key.
func (s Settings) Without(key string) Settings {
	changed := maps.Clone(s)
	maps.DeleteFunc(changed, func(k string, _ any) bool { return strings.HasPrefix(k, key+".") })
	return changed
}

// tree turns dotted keys into nested maps.
func (s Settings) tree() map[string]any {
	tree := map[string]any{}
	for key, value := range s {
		node, parts := tree, strings.Split(key, ".")
		for _, part := range parts[:len(parts)-1] {
			next, _ := node[part].(map[string]any)
			if next == nil {
				next = map[string]any{}
				node[part] = next
			}
			node = next
		}
		node[parts[len(parts)-1]] = value
	}
	return tree
}

// Write writes the configuration to a file of the test and returns its path. JSON is YAML.
func (s Settings) Write(t testing.TB) string {
	t.Helper()
	encoded, err := json.MarshalIndent(s.tree(), "", "  ")
	if err != nil {
		t.Fatalf("encode the configuration: %v", err)
	}
	path := filepath.Join(t.TempDir(), "outbox-relay.yaml")
	if err := os.WriteFile(path, encoded, 0o600); err != nil {
		t.Fatalf("write the configuration: %v", err)
	}
	return path
}

// FreeAddr returns a loopback address that nobody listened on a moment ago.
func FreeAddr(t testing.TB) string {
	t.Helper()
	var listen net.ListenConfig
	l, err := listen.Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatalf("find a free port: %v", err)
	}
	defer func() { _ = l.Close() }()
	return l.Addr().String()
}
