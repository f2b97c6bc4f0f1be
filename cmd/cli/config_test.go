package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/cmd/cli"
)

func TestConfigCheck(t *testing.T) {
	t.Parallel()
	path := written(t, "source: {primary: {password: x}}\n")
	assert.Equal(t, "ok\n", ok(t, "config", "check", "--config", path))
	assert.JSONEq(t, `{"ok":true,"file":"`+path+`","problems":[],"warnings":[]}`, ok(t, "config", "check", "--config", path, "-o", "json"))

	require.NoError(t, os.Chmod(path, 0o644))
	out := ok(t, "config", "check", "--config", path)
	assert.Contains(t, out, "warning: "+path+" can be read by every user of this machine")
	assert.True(t, strings.HasSuffix(out, "\nok\n"))
}

// Everything at once, with path, line and column, in the order of the file.
func TestConfigCheckReportsEverything(t *testing.T) {
	t.Parallel()
	path := written(t, `source:
  primary: {adress: "x:1"}
  tables: [local_message]
kafka:
  compression: zip
router:
  after_dead: held
sweep: {interval: 30}
`)
	o := command(t, "config", "check", "--config", path)
	assert.Equal(t, cli.ExitUsage, o.code)
	golden(t, "config-problems", strings.ReplaceAll(o.err, path, "outbox-relay.yaml"))

	o = command(t, "config", "check", "--config", path, "-o", "json")
	assert.Equal(t, cli.ExitUsage, o.code)
	assert.Empty(t, o.err)
	golden(t, "config-problems-json", strings.ReplaceAll(o.out, path, "outbox-relay.yaml"))
}

// What only the packages behind the configuration know is asked as well.
func TestConfigCheckAsksThePackages(t *testing.T) {
	t.Parallel()
	o := command(t, "config", "check", "--config", written(t, "router: {routes: [{match: x, topic: 'a b'}]}\n"))
	assert.Equal(t, cli.ExitUsage, o.code)
	assert.Contains(t, o.err, "router.routes[0]: topic")
	assert.Empty(t, o.out)
}

// What print prints, check reads, and print prints again.
func TestConfigPrintIsRead(t *testing.T) {
	t.Parallel()
	first := ok(t, "config", "print", "--config", empty(t), "--set", "limits.in_flight=123")
	assert.Contains(t, first, "in_flight: 123")
	assert.Equal(t, first, ok(t, "config", "print", "--config", written(t, first)))
	assert.Equal(t, first, ok(t, "config", "print", "--config", written(t, first), "-o", "yaml"))
	golden(t, "config-print", first)
	assert.True(t, json.Valid([]byte(ok(t, "config", "print", "--config", empty(t), "-o", "json"))))
}

func TestConfigSchema(t *testing.T) {
	t.Parallel()
	assert.True(t, json.Valid([]byte(ok(t, "config", "schema"))))
}

func TestVersion(t *testing.T) {
	t.Parallel()
	assert.Contains(t, ok(t, "version"), "outbox-relay v1.2.3")
	var v struct{ Version, Go, Platform string }
	decode(t, ok(t, "version", "-o", "json"), &v)
	assert.Equal(t, "v1.2.3", v.Version)
	assert.NotEmpty(t, v.Go)
}
