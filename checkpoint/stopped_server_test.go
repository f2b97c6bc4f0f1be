//go:build !unit

package checkpoint_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"syscall"
	"testing"

	"github.com/google/uuid"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/test/rig"
)

// S86: a leader is stopped (SIGSTOP) for longer than its lease, another takes over, the leader wakes up. It must know at once
// that its lease is over, and its save must be refused.
func TestAStoppedLeaderKnowsThatItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	server := rig.Redis(t)
	prefix := "t" + uuid.NewString() + ":"
	where, err := json.Marshal(map[string]string{"URL": server.URL(), "Prefix": prefix})
	require.NoError(t, err)
	self, err := os.Executable()
	require.NoError(t, err)
	child := exec.CommandContext(t.Context(), self)
	child.Env = append(os.Environ(), childEnv+"="+string(where))
	in, err := child.StdinPipe()
	require.NoError(t, err)
	out, err := child.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, child.Start())
	answers := json.NewDecoder(out)

	var before childAnswer
	require.NoError(t, answers.Decode(&before))
	require.Equal(t, childAnswer{Valid: true}, before)

	require.NoError(t, child.Process.Signal(syscall.SIGSTOP))
	store, err := checkpoint.Open(checkpoint.Config{URLs: []string{server.URL()}, Prefix: prefix, Owner: "parent"}, zerolog.Nop())
	require.NoError(t, err)
	defer func() { assert.NoError(t, store.Close()) }()
	lease, err := store.AcquireLease(t.Context(), source, ttl)
	require.NoError(t, err)
	epoch, err := store.NextEpoch(t.Context(), source)
	require.NoError(t, err)
	require.NoError(t, store.Save(t.Context(), source, record(epoch, 100)))

	// The question waits in the pipe: it is the first thing that the child does when it wakes.
	_, err = in.Write([]byte("?\n"))
	require.NoError(t, err)
	require.NoError(t, child.Process.Signal(syscall.SIGCONT))
	var after childAnswer
	require.NoError(t, answers.Decode(&after))
	assert.False(t, after.Valid)
	assert.True(t, after.Lost)
	assert.True(t, after.Fenced, after.Error)

	got, err := store.Load(t.Context(), source)
	require.NoError(t, err)
	assert.EqualValues(t, 100, got.Position.Pos)
	assert.True(t, lease.Valid(), "the woken one must not take the lease away")
	require.NoError(t, lease.Release(t.Context()))
	require.NoError(t, in.Close())
	require.NoError(t, child.Wait())
}
