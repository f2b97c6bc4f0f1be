// Package install knows where the servers' programs are and keeps data folders that were initialised once.
//
// scripts/setup.sh brings the programs: Debian's own into /usr, the others into the cache folder outside the
// checkout. Nothing here downloads anything; what is missing is an error that says what to run.
package install

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"example.com/outbox-relay/test/rig/internal/proc"
)

// Names of the installs in the cache folder; scripts/lib.sh has the same.
const (
	mysqlDir = "mysql-9.7"
	kafkaDir = "kafka-4.1"
)

// ErrMissing is returned when a server's program is not installed.
var ErrMissing = errors.New("not installed: run `make setup` (scripts/setup.sh) once, as root or with sudo")

// Cache returns the folder of downloads and prepared data. The rig's command hands it on as RIG_CACHE, because the
// product refuses unknown OUTBOX_RELAY_ variables and tests run the product.
func Cache() (string, error) {
	for _, name := range []string{"RIG_CACHE", "OUTBOX_RELAY_CACHE"} {
		if dir := os.Getenv(name); dir != "" {
			return filepath.Abs(dir)
		}
	}
	dir, err := os.UserHomeDir()
	if err != nil {
		return "", fmt.Errorf("find the cache folder (OUTBOX_RELAY_CACHE names it): %w", err)
	}
	return filepath.Join(dir, ".cache", "outbox-relay"), nil
}

// MySQL returns the command that runs MySQL's mysqld, to be followed by options.
//
// The program comes from a newer Debian than the machine's; its own loader and libraries run it in place, without
// chroot, so that data folders may be anywhere.
func MySQL() ([]string, error) {
	root, err := installed(mysqlDir)
	if err != nil {
		return nil, fmt.Errorf("MySQL: %w", err)
	}
	loaders, err := filepath.Glob(filepath.Join(root, "lib*", "ld-linux-*.so.*"))
	if err != nil || len(loaders) == 0 {
		return nil, fmt.Errorf("MySQL: no loader in %s, remove the folder: %w", root, ErrMissing)
	}
	libs, err := filepath.Glob(filepath.Join(root, "usr", "lib", "*-linux-gnu*"))
	if err != nil || len(libs) == 0 {
		return nil, fmt.Errorf("MySQL: no libraries in %s, remove the folder: %w", root, ErrMissing)
	}
	libs = append(libs, filepath.Join(root, "usr", "lib", "mysql", "private"))
	return []string{
		loaders[0], "--library-path", strings.Join(libs, ":"), filepath.Join(root, "usr", "sbin", "mysqld"),
		"--no-defaults", "--basedir=" + filepath.Join(root, "usr"),
		"--plugin-dir=" + filepath.Join(root, "usr", "lib", "mysql", "plugin"),
	}, nil
}

// Program returns the path of a program that a Debian package brings.
func Program(name string) (string, error) {
	if path, err := exec.LookPath(name); err == nil {
		return path, nil
	}
	for _, dir := range []string{"/usr/sbin", "/usr/bin"} { // sbin is not in every user's PATH
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	return "", fmt.Errorf("%s: %w", name, ErrMissing)
}

// Kafka returns the class path of Kafka's libraries.
func Kafka() (string, error) {
	root, err := installed(kafkaDir)
	if err != nil {
		return "", fmt.Errorf("Kafka: %w", err)
	}
	return filepath.Join(root, "libs", "*"), nil
}

// installed returns an install's folder if it is complete.
func installed(name string) (string, error) {
	cache, err := Cache()
	if err != nil {
		return "", err
	}
	root := filepath.Join(cache, name)
	if _, err := os.Stat(filepath.Join(root, "complete")); err != nil {
		return "", fmt.Errorf("%s: %w", root, ErrMissing)
	}
	return root, nil
}

// Template returns a folder that build has filled once, on this machine, for this key. Callers copy it.
// The key must change with whatever build depends on.
func Template(ctx context.Context, key string, build func(ctx context.Context, dir string) error) (string, error) {
	cache, err := Cache()
	if err != nil {
		return "", err
	}
	templates := filepath.Join(cache, "templates")
	if err := os.MkdirAll(templates, 0o755); err != nil {
		return "", fmt.Errorf("prepare %s: %w", key, err)
	}
	// Other test binaries want the same folder at the same moment: one builds, the others wait.
	lock, err := proc.Lock(filepath.Join(templates, key+".lock"))
	if err != nil {
		return "", fmt.Errorf("prepare %s: %w", key, err)
	}
	defer lock.Close() //nolint:errcheck // closing releases the lock, nothing was written
	done := filepath.Join(templates, key)
	if _, err := os.Stat(done); err == nil {
		return done, nil
	}
	building := done + ".building"
	if err := os.RemoveAll(building); err != nil {
		return "", fmt.Errorf("prepare %s: %w", key, err)
	}
	if err := os.Mkdir(building, 0o755); err != nil {
		return "", fmt.Errorf("prepare %s: %w", key, err)
	}
	if err := build(ctx, building); err != nil {
		return "", fmt.Errorf("prepare %s: %w", key, err)
	}
	if err := os.Rename(building, done); err != nil {
		return "", fmt.Errorf("prepare %s: %w", key, err)
	}
	return done, nil
}

// Copy copies a folder, by reference where the file system can.
func Copy(ctx context.Context, from, to string) error {
	return Run(ctx, "", "cp", "-a", "--reflink=auto", "--sparse=always", from, to)
}

// Run runs a command to its end, with the given standard input.
func Run(ctx context.Context, stdin string, command ...string) error {
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin = strings.NewReader(stdin)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("run %s: %w: %s", filepath.Base(command[0]), err, strings.TrimSpace(string(out)))
	}
	return nil
}
