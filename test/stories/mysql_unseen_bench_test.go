//go:build bench && !unit

package stories

import (
	"testing"
	"time"
)

// TestKickedRowsWithinTwoSeconds is the promise of a sweep that was started by the stream, on a machine that has time.
func TestKickedRowsWithinTwoSeconds(t *testing.T) {
	onBoth(t, func(t *testing.T, start starter) {
		t.Run("by hand", func(t *testing.T) { handSetRows(t, start, 2*time.Second) })
		t.Run("XA", func(t *testing.T) { xaForms(t, start, 2*time.Second) })
	})
}
