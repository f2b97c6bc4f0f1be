//go:build !unit

package inbox

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/race"
)

// built builds the consumer program once per test binary.
var built = sync.OnceValues(build)

// build leaves the program in the user's cache, one for each checkout, and replaces it by a rename.
func build() (string, error) {
	here, err := os.Getwd()
	if err != nil {
		return "", err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		cache = os.TempDir()
	}
	dir := filepath.Join(cache, "outbox-relay", "test-binaries")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	name, args := fmt.Sprintf("inbox-consumer-%x", sha256.Sum256([]byte(here)))[:28], []string{"build"}
	if race.Enabled {
		name, args = name+"-race", append(args, "-race")
	}
	fresh := filepath.Join(dir, fmt.Sprintf("%s.%d", name, os.Getpid()))
	out, err := exec.CommandContext(context.Background(), "go", append(args, "-o", fresh, "./consumer")...).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("build the consumer: %w\n%s", err, out)
	}
	return filepath.Join(dir, name), os.Rename(fresh, filepath.Join(dir, name))
}

// worker is one process of the consumer program.
type worker struct {
	cmd *exec.Cmd
	log *os.File
}

// crew are the processes of one group.
type crew struct {
	s       *scene
	adapter string
	static  bool // instance ids: a process that comes back takes its partitions up at once
	session time.Duration
	workers []*worker
}

func (s *scene) crew(adapter string, n int, static bool, session time.Duration) *crew {
	s.t.Helper()
	c := &crew{s: s, adapter: adapter, static: static, session: session, workers: make([]*worker, n)}
	for i := range c.workers {
		c.start(i)
	}
	return c
}

func (c *crew) start(i int) {
	c.s.t.Helper()
	binary, err := built()
	require.NoError(c.s.t, err)
	args := []string{
		"-adapter", c.adapter, "-brokers", strings.Join(c.s.kafka.Brokers, ","), "-topic", c.s.topic, "-group", c.s.group, "-dsn", c.s.dsn,
		"-session", c.session.String(),
	}
	if c.static {
		args = append(args, "-instance", fmt.Sprintf("worker-%d", i))
	}
	log, err := os.OpenFile(filepath.Join(c.s.t.ArtifactDir(), fmt.Sprintf("worker-%d.log", i)), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	require.NoError(c.s.t, err)
	w := &worker{cmd: exec.CommandContext(c.s.t.Context(), binary, args...), log: log}
	w.cmd.Stdout, w.cmd.Stderr = log, log
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	require.NoError(c.s.t, w.cmd.Start())
	c.workers[i] = w
}

// kill ends one process by SIGKILL and starts another in its place.
func (c *crew) kill(i int) {
	c.s.t.Helper()
	w := c.workers[i]
	require.NoError(c.s.t, w.cmd.Process.Kill())
	err := w.cmd.Wait()
	var exit *exec.ExitError
	require.True(c.s.t, errors.As(err, &exit) && !exit.Exited(), "killed, not ended by itself: %v", err)
	require.NoError(c.s.t, w.log.Close())
	c.start(i)
}

// killAtRandom kills a random process each time that another share of the messages is done, at a random moment of it.
func (c *crew) killAtRandom(kills, messages int, within time.Duration) {
	c.s.t.Helper()
	for k := range kills {
		share := messages / (kills + 1)
		c.s.handled(k*share+rand.IntN(share), within)
		c.kill(rand.IntN(len(c.workers)))
	}
}

// stop ends all processes by SIGTERM. They leave in good order, or the test fails with their logs.
func (c *crew) stop() {
	c.s.t.Helper()
	for _, w := range c.workers {
		require.NoError(c.s.t, w.cmd.Process.Signal(syscall.SIGTERM))
	}
	for i, w := range c.workers {
		assert.NoError(c.s.t, w.cmd.Wait(), "worker %d", i)
		require.NoError(c.s.t, w.log.Close())
	}
}

// caughtUp checks that the group has committed each partition's end.
func (c *crew) caughtUp(ends []int64) {
	c.s.t.Helper()
	for p, end := range ends {
		assert.Equal(c.s.t, end, c.s.committed(p), "partition %d", p)
	}
}

// ends returns the end of each partition, as it was produced.
func (s *scene) ends() []int64 {
	s.t.Helper()
	ends := make([]int64, s.partitions)
	for p := range s.partitions {
		ends[p] = s.end(p)
	}
	return ends
}

func TestKilledConsumersHaveEachEffectOnce(t *testing.T) {
	t.Parallel()
	const messages, kills = 5000, 5
	onBoth(t, 6, func(s *scene, adapter string) {
		s.produce(messages)
		c := s.crew(adapter, 2, true, 6*time.Second)
		c.killAtRandom(kills, messages, limit)
		s.handled(messages, limit)
		ends := s.ends()
		until(s, "all offsets are committed", func() bool {
			for p, end := range ends {
				if s.committed(p) != end {
					return false
				}
			}
			return true
		})
		c.stop()
		c.caughtUp(ends)
		s.exactlyOnce()
	})
}
