//go:build bench && !unit

package inbox_test

import (
	"fmt"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/test/rig"
)

// BenchmarkTransaction is a handler's transaction alone, BenchmarkDo the same with the record in it.
func BenchmarkTransaction(b *testing.B) {
	w := newWorld(b, rig.MySQL(b))
	db := w.open(b, func(cfg *mysql.Config) { cfg.InterpolateParams = true })
	handler := write("m")
	for b.Loop() {
		tx, err := db.BeginTx(b.Context(), nil)
		require.NoError(b, err)
		require.NoError(b, handler(b.Context(), tx))
		require.NoError(b, tx.Commit())
	}
}

// BenchmarkDo handles a new message each time.
func BenchmarkDo(b *testing.B) {
	w := newWorld(b, rig.MySQL(b))
	in, err := inbox.New(w.open(b, func(cfg *mysql.Config) { cfg.InterpolateParams = true }), inbox.Config{Group: "points"})
	require.NoError(b, err)
	handler := write("m")
	for i := 0; b.Loop(); i++ {
		result, err := in.Do(b.Context(), message(fmt.Sprintf("m-%d", i)), handler)
		require.NoError(b, err)
		require.Equal(b, inbox.Handled, result)
	}
}

// BenchmarkDuplicate handles the same message again and again.
func BenchmarkDuplicate(b *testing.B) {
	w := newWorld(b, rig.MySQL(b))
	in, err := inbox.New(w.open(b, nil), inbox.Config{Group: "points"})
	require.NoError(b, err)
	_, err = in.Do(b.Context(), message("m"), write("m"))
	require.NoError(b, err)
	for b.Loop() {
		result, err := in.Do(b.Context(), message("m"), write("m"))
		require.NoError(b, err)
		require.Equal(b, inbox.Duplicate, result)
	}
}
