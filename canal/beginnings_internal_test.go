package canal

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

// A file's beginning is asked for once, and not at all where the file was seen to come.
func TestBeginnings(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	logs := func(names ...string) (list []logFile) {
		for _, name := range names {
			list = append(list, logFile{name: name})
		}
		return list
	}
	b := &beginnings{}
	known := func(file string) bool { _, ok := b.of("a", file); return ok }
	assert.False(t, known("1"))
	b.note("a", logs("1", "2"), now)
	assert.False(t, known("1"), "it was there before")
	b.learn("a", "1", now.Add(-time.Hour))
	b.note("a", logs("1", "2", "3"), now.Add(15*time.Second))
	at, ok := b.of("a", "3")
	assert.True(t, ok)
	assert.Equal(t, now, at, "begun since the list before")
	assert.False(t, known("2"))
	at, _ = b.of("a", "1")
	assert.Equal(t, now.Add(-time.Hour), at)
	b.note("a", logs("2", "3"), now.Add(20*time.Second))
	assert.False(t, known("1"), "purged")
	b.learn("a", "1", now)
	assert.False(t, known("1"), "purged meanwhile")
	b.note("a", logs("2", "3", "4"), now.Add(time.Hour))
	assert.True(t, known("3"))
	assert.False(t, known("4"), "any time in the last hour")
	b.note("a", logs("3"), now.Add(time.Hour))
	assert.False(t, known("3"), "the binlog was reset")
	b.note("a", logs("3", "4"), now.Add(time.Hour))
	assert.True(t, known("4"))
	b.note("b", logs("3", "4"), now.Add(time.Hour+time.Second))
	assert.False(t, known("3"), "another server's files")
	_, ok = b.of("b", "3")
	assert.False(t, ok)
	b.learn("a", "3", now)
	_, ok = b.of("b", "3")
	assert.False(t, ok)
}
