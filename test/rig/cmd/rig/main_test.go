package main

import (
	"bytes"
	"os"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestWrongUsageStartsNothing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"exec"}, {"exec", "--"}, {"exec", "true"}, {"up", "more"}, {"down"}} {
		code, err := run(t.Context(), args, &bytes.Buffer{})
		require.EqualError(t, err, usage, args)
		assert.Equal(t, 2, code, args)
	}
}

func TestUnknownProgramStartsNothing(t *testing.T) {
	t.Parallel()
	code, err := run(t.Context(), []string{"exec", "--", "/no/such/program"}, &bytes.Buffer{})
	require.ErrorIs(t, err, os.ErrNotExist)
	assert.Equal(t, 1, code)
}
