package checkpoint

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// answer is an error as Redis sends it.
type answer string

func (a answer) Error() string { return string(a) }
func (answer) RedisError()     {}

func TestCodeOf(t *testing.T) {
	t.Parallel()
	for want, errs := range map[Code][]error{
		CodeNone:    {nil},
		CodeFenced:  {ErrFenced, fmt.Errorf("save: %w", ErrFenced)},
		CodeNewer:   {newerError("9")},
		CodeLoading: {answer("LOADING Redis is loading the dataset in memory")},
		CodeMisconf: {
			answer("MISCONF Redis is configured to save RDB snapshots, but it's currently unable to persist to disk."),
			// Redis 6, inside a script.
			answer("ERR Error running script (call to f_6b1bf486c81ceb7edf3c093f4c48582e38c0e791): @user_script:1: @user_script: 1: " +
				"-MISCONF Redis is configured to save RDB snapshots"),
		},
		CodeMemory:    {answer("OOM command not allowed when used memory > 'maxmemory'.")},
		CodeReadOnly:  {answer("READONLY You can't write against a read only replica."), answer("NOREPLICAS Not enough good replicas to write."), answer("MASTERDOWN Link with MASTER is down")},
		CodeAuth:      {answer("NOAUTH Authentication required."), answer("WRONGPASS invalid username-password pair"), answer("NOPERM this user has no permissions"), answer("ERR Protocol error: unauthenticated multibulk length")},
		CodeBusy:      {answer("BUSY Redis is busy running a script."), answer("TRYAGAIN Multiple keys request during rehashing of slot"), answer("ERR max number of clients reached")},
		CodeTopology:  {answer("MOVED 866 127.0.0.1:7001"), answer("CROSSSLOT Keys in request don't hash to the same slot"), answer("CLUSTERDOWN The cluster is down")},
		CodeWrongType: {answer("WRONGTYPE Operation against a key holding the wrong kind of value")},
		CodeStopped:   {context.Canceled, fmt.Errorf("x: %w", context.Canceled)},
		CodeAway: {
			io.EOF, io.ErrUnexpectedEOF, context.DeadlineExceeded, redis.ErrPoolTimeout, &net.OpError{Op: "dial", Err: errors.New("refused")},
			errors.New("redis: all sentinels specified in configuration are unreachable: x"),
		},
		CodeOther: {errors.New("something"), answer("ERR syntax error"), answer("")},
	} {
		for _, err := range errs {
			assert.Equal(t, want, CodeOf(err), "%v", err)
		}
	}
}

func TestEveryRefusalHasAdvice(t *testing.T) {
	t.Parallel()
	for _, code := range []Code{
		CodeAway, CodeLoading, CodeMisconf, CodeMemory, CodeReadOnly, CodeAuth, CodeBusy, CodeTopology, CodeWrongType,
	} {
		assert.NotEmpty(t, advice(code), code)
	}
}

// A server that doesn't know a command repeats its arguments, AUTH's too.
func TestErrorsHideThePassword(t *testing.T) {
	t.Parallel()
	s, err := Open(Config{URLs: []string{"redis://u:hunter2@h?sentinel_password=s3ntinel"}, Password: "overridden"}, zerolog.Nop())
	require.NoError(t, err)
	defer func() { assert.NoError(t, s.Close()) }()
	cause := answer("ERR unknown command `AUTH`, with args beginning with: `u`, `overridden`, `s3ntinel`, ")
	wrapped := s.wrap("read", cause)
	assert.NotContains(t, wrapped.Error(), "overridden")
	assert.NotContains(t, wrapped.Error(), "s3ntinel")
	require.ErrorIs(t, wrapped, cause)
}

func TestKeysShareASlotInAClusterOnly(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ url, prefix, want string }{
		{"redis://h", "", "outbox-relay:default:checkpoint"},
		{"redis+sentinel://h/m", "", "outbox-relay:default:checkpoint"},
		{"redis://h", "x:", "x:default:checkpoint"},
		{"redis+cluster://h", "", "outbox-relay:{default}:checkpoint"},
		{"redis://h,h2", "x{", "x{{default}:checkpoint"},
		{"redis+cluster://h", "{team}:", "{team}:default:checkpoint"},
	} {
		s, err := Open(Config{URLs: []string{c.url}, Prefix: c.prefix}, zerolog.Nop())
		require.NoError(t, err)
		k, err := s.keys("default")
		require.NoError(t, err)
		assert.Equal(t, c.want, k.checkpoint)
		require.NoError(t, s.Close())
	}
	assert.False(t, hasTag("a{}b"), "redis takes an empty tag for none")
}

func TestElapsedTakesTheClockThatSaysMore(t *testing.T) {
	t.Parallel()
	start := time.Now()
	assert.GreaterOrEqual(t, elapsed(start, start.Add(time.Minute)), time.Minute)
	// The machine slept: the monotonic clock stood still, the wall clock went on.
	slept := start.Round(0).Add(-time.Hour)
	assert.GreaterOrEqual(t, elapsed(slept, start), time.Hour)
}

// A request that was stuck on its way arrives after a later one of the same relay.
func TestALateSaveIsDropped(t *testing.T) {
	t.Parallel()
	s := openMini(t)
	epoch, err := s.NextEpoch(t.Context(), "s")
	require.NoError(t, err)
	late := s.seq.Load()
	require.NoError(t, s.Save(t.Context(), "s", rec(epoch, 10)))
	require.NoError(t, s.Save(t.Context(), "s", rec(epoch, 20)))
	s.seq.Store(late)
	require.NoError(t, s.Save(t.Context(), "s", rec(epoch, 10)))
	got, err := s.Load(t.Context(), "s")
	require.NoError(t, err)
	assert.EqualValues(t, 20, got.Position.Pos)
}
