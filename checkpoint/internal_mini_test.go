package checkpoint

import (
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/canal/position"
)

func openMini(t *testing.T) *Store {
	t.Helper()
	s, err := Open(Config{URLs: []string{"redis://" + miniredis.RunT(t).Addr()}}, zerolog.Nop())
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return s
}

func rec(epoch int64, pos uint64) Record {
	return Record{Epoch: epoch, Position: position.Position{Server: "s", Flavor: position.MySQL, File: "b.1", Pos: pos}}
}
