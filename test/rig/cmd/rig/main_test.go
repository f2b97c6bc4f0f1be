package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestWrongUsageStartsNothing(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{nil, {"exec"}, {"exec", "--"}, {"exec", "true"}, {"up", "more"}, {"down"}} {
		code, err := run(t.Context(), args, &bytes.Buffer{})
		require.EqualError(t, err, usage, args)
		assert.Equal(t, 2, code, args)
	}
}
