package harness

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"example.com/outbox-relay/test/race"
)

// BinaryEnv names a binary to use instead of building one. It does not begin with the relay's own prefix, because the
// relay takes every such variable for configuration.
const BinaryEnv = "RELAY_TEST_BINARY"

// built builds the binary once per test binary.
var built = sync.OnceValues(build)

// Binary returns the path of the relay's binary, built from this checkout.
func Binary(t testing.TB) string {
	t.Helper()
	path, err := built()
	if err != nil {
		t.Fatalf("build the relay: %v", err)
	}
	return path
}

// build leaves the binary in the user's cache, one for each checkout, and replaces it by a rename, so that test
// binaries running side by side do not pull it from under each other.
func build() (string, error) {
	if given := os.Getenv(BinaryEnv); given != "" {
		return given, nil
	}
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "outbox-relay", "test-binaries")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("folder for the binary: %w", err)
	}
	name := fmt.Sprintf("outbox-relay-%x", sha256.Sum256([]byte(root)))[:24]
	args, cgo := []string{"build"}, "CGO_ENABLED=0"
	if race.Enabled {
		name, args, cgo = name+"-race", append(args, "-race"), "CGO_ENABLED=1"
	}
	fresh := filepath.Join(dir, fmt.Sprintf("%s.%d", name, os.Getpid()))
	cmd := exec.CommandContext(context.Background(), "go", append(args, "-o", fresh, "./cmd/outbox-relay")...)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), cgo)
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w\n%s", strings.Join(cmd.Args, " "), err, out)
	}
	final := filepath.Join(dir, name)
	if err := os.Rename(fresh, final); err != nil {
		return "", fmt.Errorf("keep the binary: %w", err)
	}
	return final, nil
}

func moduleRoot() (string, error) {
	out, err := exec.CommandContext(context.Background(), "go", "list", "-m", "-f", "{{.Dir}}").Output()
	if err != nil {
		return "", fmt.Errorf("find the module: %w", err)
	}
	return strings.TrimSpace(string(out)), nil
}
