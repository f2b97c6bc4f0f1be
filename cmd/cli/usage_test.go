package cli_test

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/cmd/cli"
)

// Every mistake in what was typed, or in the configuration, exits 2 and says what to do; nothing goes to stdout.
func TestWrongUsage(t *testing.T) {
	t.Parallel()
	several := written(t, "sources:\n- {name: a}\n- {name: b}\n")
	for _, tt := range []struct{ args, says string }{
		{"", "name one of the commands; see outbox-relay --help"},
		{"frobnicate", `unknown command "frobnicate"`},
		{"stats", `did you mean status?`},
		{"docter", "did you mean doctor?"},
		{"checkpoint", "name one of the commands; see outbox-relay checkpoint --help"},
		{"checkpoint shwo", "did you mean show?"},
		{"messages lsit", "did you mean list?"},
		{"config", "name one of the commands"},
		{"config prnt", "did you mean print?"},
		{"completion", "name one of the commands"},
		{"completion tcsh", "unknown command"},
		{"completion bash extra", "unknown command"},
		{"help frobnicate", "no help about"},
		{"help checkpoint frobnicate", "no help about"},
		{"run extra", `unexpected argument "extra"`},
		{"doctor extra", "unexpected argument"},
		{"init extra", "unexpected argument"},
		{"sweep extra", "unexpected argument"},
		{"status extra", "unexpected argument"},
		{"version extra", "unexpected argument"},
		{"healthcheck extra", "unexpected argument"},
		{"config check extra", "unexpected argument"},
		{"checkpoint show extra", "unexpected argument"},
		{"messages stats extra", "unexpected argument"},
		{"version --frobnicate", "unknown flag: --frobnicate"},
		{"version -o xml", "unknown output format"},
		{"version -o", "flag needs an argument"},
		{"run -o xml", "unknown output format"},
		{"config check --config /does/not/exist.yaml", "name an existing file with --config"},
		{"config check --set kafka.brockers=x", "did you mean kafka.brokers?"},
		{"config check --set kafka", "key.path=value"},
		{"checkpoint reset", "--to must be now, earliest or table"},
		{"checkpoint reset --to yesterday", "--to must be now, earliest or table"},
		{"checkpoint reset --to now --yes --dry-run", "contradict"},
		{"checkpoint reset --to now --measure -1s", "negative"},
		{"checkpoint set", "accepts 1 arg"},
		{"checkpoint set a b", "accepts 1 arg"},
		{"checkpoint set binlog", "give FILE:POS"},
		{"checkpoint undo extra", "unexpected argument"},
		{"checkpoint history --limit 0", "--limit must be 1 or more"},
		{"checkpoint history --limit x", "invalid argument"},
		{"messages list --status lost", "unknown status"},
		{"messages list --limit 0", "--limit must be 1 or more"},
		{"messages list --limit -1", "--limit must not be negative"},
		{"messages list --older-than yesterday", "invalid argument"},
		{"messages list --older-than -1m", "negative"},
		{"messages show", "accepts 1 arg"},
		{"messages show 1 2", "accepts 1 arg"},
		{"messages retry --yes", "say --all"},
		{"messages retry 1 --yes --dry-run", "contradict"},
		{"messages discard --yes", "say --all"},
		{"sweep --for 0s", "--for must be more than 0"},
		{"doctor --timeout 0s", "--timeout must be more than 0"},
		{"status --every 1ms", "--every must be"},
		{"status --url ftp://x", "http://"},
		{"healthcheck --url relay:9180", "--url must be"},
		{"healthcheck --url https://relay:9180", "no TLS"},
		{"init --password-file x", "goes with --user"},
		{"checkpoint show --config " + several, "several sources are configured: choose one with --source a|b"},
		{"checkpoint show --source c --config " + several, "use --source a|b"},
		{"run --source c --config " + several, "use --source a|b"},
		{"doctor --source c --config " + several, "use --source a|b"},
	} {
		t.Run(strings.ReplaceAll(tt.args, "/", "_"), func(t *testing.T) {
			t.Parallel()
			args := strings.Fields(tt.args)
			if !strings.Contains(tt.args, "--config") {
				args = append([]string{"--config", empty(t)}, args...)
			}
			o := command(t, args...)
			assert.Equal(t, cli.ExitUsage, o.code, o.err)
			assert.Empty(t, o.out)
			assert.Contains(t, o.err, tt.says)
			assert.Equal(t, 1, strings.Count(o.err, "error: "), o.err)
		})
	}
}

// empty is a configuration of defaults; nothing of this machine is found by it.
func empty(t *testing.T) string {
	t.Helper()
	return written(t, "{}\n")
}

// A configuration that is wrong exits 2 whatever the command, and names everything at once.
func TestWrongConfiguration(t *testing.T) {
	t.Parallel()
	path := written(t, "source:\n  primary: {adress: 'x:1'}\nkafka: {compression: zip}\n")
	for _, args := range []string{
		"run", "doctor", "init", "config check", "config print", "checkpoint show", "checkpoint history", "checkpoint undo",
		"checkpoint reset --to now", "checkpoint set b.1:4", "messages list", "messages show 1", "messages retry 1",
		"messages discard 1", "messages stats", "sweep", "status", "healthcheck",
	} {
		o := command(t, append(strings.Fields(args), "--config", path)...)
		assert.Equal(t, cli.ExitUsage, o.code, args)
		assert.Empty(t, o.out, args)
		assert.Contains(t, o.err, path+":2:13: source.primary.adress: unknown key; did you mean source.primary.address?", args)
		assert.Contains(t, o.err, path+":3:22: kafka.compression", args)
	}
}

// Servers that are away are a failure while running, not wrong usage.
func TestServersAway(t *testing.T) {
	t.Parallel()
	path := nowhere(t).Write(t)
	for args, code := range map[string]int{
		"doctor --timeout 3s": cli.ExitProblems, "init": cli.ExitFailed, "init --print-sql": cli.ExitOK,
		"checkpoint show": cli.ExitFailed, "checkpoint history": cli.ExitFailed, "checkpoint undo": cli.ExitFailed,
		"checkpoint reset --to table": cli.ExitFailed, "checkpoint set b.1:4": cli.ExitFailed, "messages list": cli.ExitFailed,
		"messages show 1": cli.ExitFailed, "messages retry 1": cli.ExitFailed, "messages discard 1": cli.ExitFailed,
		"messages stats": cli.ExitFailed, "sweep": cli.ExitFailed, "status": cli.ExitFailed, "healthcheck": cli.ExitFailed,
		"config check": cli.ExitOK,
	} {
		t.Run(args, func(t *testing.T) {
			t.Parallel()
			o := command(t, append(strings.Fields(args), "--config", path)...)
			assert.Equal(t, code, o.code, o.err)
			if code == cli.ExitFailed {
				assert.Contains(t, o.err, "error: ")
			}
		})
	}
}

// A relay waits for a primary that is away, says so, and ends well when it is told to.
func TestRunWaitsForThePrimary(t *testing.T) {
	t.Parallel()
	o := commandWithin(t, time.Second, "run", "--config", nowhere(t).Write(t))
	assert.Equal(t, cli.ExitOK, o.code)
	assert.Contains(t, o.err, "the primary can't be reached, will go on trying")
	assert.Empty(t, o.out)
}

// What can be asked for help has an example, and help is a result: it goes to stdout and exits 0.
func TestHelp(t *testing.T) {
	t.Parallel()
	for _, path := range commandPaths(t) {
		help := ok(t, append(path, "--help")...)
		assert.Contains(t, help, "Usage:", path)
		if name := strings.Join(path, " "); !strings.HasPrefix(name, "completion") {
			assert.Contains(t, help, "Examples:", name)
		}
	}
	assert.Contains(t, ok(t, "help", "checkpoint", "reset"), "checkpoint reset --to table")
}

func TestRunWithoutConfigurationUsesDefaults(t *testing.T) {
	t.Parallel()
	var printed struct {
		Redis struct{ Prefix string }
	}
	decode(t, ok(t, "config", "print", "-o", "json", "--config", empty(t)), &printed)
	assert.Equal(t, "outbox-relay:", printed.Redis.Prefix)
}

func TestCompletionScripts(t *testing.T) {
	t.Parallel()
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		assert.Contains(t, ok(t, "completion", shell), "outbox-relay")
	}
}

// What the shell is offered behind a flag.
func TestCompletion(t *testing.T) {
	t.Parallel()
	path := written(t, "sources:\n- {name: orders}\n- {name: bills}\n")
	for _, tt := range []struct {
		args string
		want []string
	}{
		{"version -o", []string{"table", "json", "yaml"}},
		{"--config " + path + " checkpoint show --source", []string{"orders", "bills"}},
		{"--config " + filepath.Join(t.TempDir(), "none") + " checkpoint show --source", nil},
		{"messages list --status", []string{"pending", "sent", "failed", "consumed", "dead", "discarded"}},
		{"checkpoint reset --to", []string{"now", "earliest", "table"}},
		{"checkpoint", []string{"history", "reset", "set", "show", "undo"}},
		{"help checkpoint", []string{"history", "reset", "set", "show", "undo"}},
		{"doctor", nil},
		{"messages list --topic", nil},
	} {
		out := ok(t, append(append([]string{"__complete"}, strings.Fields(tt.args)...), "")...)
		lines := strings.Split(strings.TrimSpace(out), "\n")
		require.NotEmpty(t, lines)
		assert.Equal(t, ":4", lines[len(lines)-1], "%s: no files are offered", tt.args)
		var words []string
		for _, line := range lines[:len(lines)-1] {
			word, _, _ := strings.Cut(line, "\t")
			words = append(words, word)
		}
		assert.Equal(t, tt.want, words, tt.args)
	}
}
