//go:build !unit

package cli_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// With servers that answer, neither their passwords nor what a message says shows, at any log level.
func TestSecretsNeverShowOnServers(t *testing.T) {
	t.Parallel()
	kafka := rig.Kafka(t)
	s := newScene(t, rig.MySQL(t), kafka)
	topic := kafka.Topic(t, 1)
	const payload = "hunter2-payload"
	fill := func(msgID string, status string) {
		s.insert(msgID, topic, "status="+status+", msg_content=?, headers=?", `{"card":"`+payload+`"}`, `{"card":"`+payload+`"}`)
	}
	secrets := []string{payload, s.settings["source.primary.password"].(string), rig.Redis(t).Password, "hunter2-token"} //nolint:forcetypeassert,errcheck // the test's own
	assertNone := func(what, text string) {
		t.Helper()
		for _, secret := range secrets {
			assert.NotContains(t, text, secret, what)
		}
	}
	s.with("log.level", "trace")
	fill("dead", "4")
	s.insert("bad", "bad topic", "msg_content=?", payload)
	relay := s.lead()
	fill("sent", "0")
	harness.Eventually(t, 20*time.Second, "row sent", func() (bool, string) {
		status, _ := s.status("sent")
		return status == 1, ""
	})
	s.ok("status")
	for _, args := range everyCommand {
		if args == "run" || strings.Contains(args, "--content") {
			continue
		}
		o := s.run(strings.Fields(args)...)
		assertNone(args, o.out+o.err)
	}
	for _, args := range []string{"messages show sent", "messages show dead -o json", "messages list", "sweep", "doctor -o yaml"} {
		o := s.run(strings.Fields(args)...)
		assert.NotEmpty(t, o.out)
		assertNone(args, o.out+o.err)
	}
	code, _ := relay.Stop()
	assert.Zero(t, code)
	assertNone("the relay's log", relay.Log())

	// A password that is refused is not repeated.
	s.with("console.token", "hunter2-token", "source.primary.password", "hunter2-token", "redis.url", "redis://:hunter2-token@"+rig.Redis(t).Addr+"/0")
	for _, args := range []string{"doctor", "messages stats", "checkpoint show", "status", "init"} {
		o := s.run(strings.Fields(args)...)
		assertNone(args, o.out+o.err)
	}
}
