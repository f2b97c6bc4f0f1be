package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/cmd/cli"
)

// canaries are secrets that no command may ever show, in any form.
var canaries = []string{"hunter2-mysql", "hunter2-replica", "hunter2-redis", "hunter2-kafka", "hunter2-token", "hunter2-file"}

// everyCommand is a call of every command.
var everyCommand = []string{
	"run", "doctor --timeout 2s", "init", "init --print-sql", "config check", "config print", "config schema",
	"checkpoint show", "checkpoint history", "checkpoint reset --to now", "checkpoint reset --to table --yes --force",
	"checkpoint set binlog.000001:4 --yes", "checkpoint undo", "messages list", "messages show 1 --content", "messages retry 1 --yes",
	"messages discard 1", "messages stats", "sweep", "sweep --dry-run", "status", "healthcheck", "healthcheck --live", "version",
	"completion bash",
}

// secretive is a configuration full of secrets, in every form that there is.
func secretive(t *testing.T) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte("hunter2-file\n"), 0o600))
	settings := nowhere(t)
	return settings.With(
		"source.replica", map[string]any{"address": settings["source.primary.address"], "password": "hunter2-replica"},
		"kafka.sasl", map[string]any{"mechanism": "plain", "user": "relay", "password": "hunter2-kafka"},
		"console.token", "hunter2-token",
	).Write(t)
}

func TestSecretsNeverShow(t *testing.T) {
	t.Parallel()
	path := secretive(t)
	for _, args := range everyCommand {
		for _, level := range []string{"trace", "debug", "info", "warn", "error"} {
			for _, format := range []string{"table", "json", "yaml"} {
				if format != "table" && level != "trace" {
					continue // the log has nothing to do with the format
				}
				t.Run(strings.Join([]string{args, level, format}, " "), func(t *testing.T) {
					t.Parallel()
					o := commandWithin(t, 2*time.Second, append(strings.Fields(args), "--config", path, "--set", "log.level="+level, "-o", format)...)
					assertSecret(t, o)
				})
			}
		}
	}
}

func assertSecret(t *testing.T, o outcome) {
	t.Helper()
	for _, secret := range canaries {
		assert.NotContains(t, o.out, secret)
		assert.NotContains(t, o.err, secret)
	}
}

// A configuration that is wrong in the very place of the secret is the most likely to show it.
func TestSecretsNeverShowInComplaints(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"URL":       "redis: {url: 'redis//:hunter2-redis@x'}\n",
		"Mapping":   "console: {token: {hunter2-token: 1}}\n",
		"List":      "source: {primary: {password: [hunter2-mysql]}}\n",
		"Indent":    "source:\n  primary:\n    password: hunter2-mysql\n   user: x\n",
		"Set":       "{}\n",
		"Both":      "console: {token: hunter2-token, token_file: /nowhere}\n",
		"Reference": "console: {token: '${hunter2-token}'}\n",
	} {
		args := []string{"--config", written(t, text)}
		if name == "Set" {
			args = append(args, "--set", "console.tokn=hunter2-token", "--set", "redis.url=:hunter2-redis")
		}
		for _, cmd := range []string{"config check", "config check -o json", "config print", "run", "status"} {
			o := command(t, append(strings.Fields(cmd), args...)...)
			if name != "Set" {
				assert.Equal(t, cli.ExitUsage, o.code, "%s %s: %s", name, cmd, o.err)
			}
			assertSecret(t, o)
		}
	}
}

// The commands that find nobody say so soon.
func TestAwayIsToldSoon(t *testing.T) {
	t.Parallel()
	path := nowhere(t).Write(t)
	for _, args := range []string{"checkpoint show", "messages stats", "status", "healthcheck", "doctor --timeout 2s"} {
		begun := time.Now()
		command(t, append(strings.Fields(args), "--config", path)...)
		assert.Less(t, time.Since(begun), 15*time.Second, args)
	}
}
