package mysql

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
)

func TestLiterals(t *testing.T) {
	t.Parallel()
	assert.Equal(t, `'plain é 中'`, Literal("plain é 中"))
	assert.Equal(t, `'it''s \\ \0'`, Literal("it's \\ \x00"))
	assert.Equal(t, "`we``ird`", Identifier("we`ird"))
	assert.Equal(t, "X'00ff27'", BinaryLiteral("\x00\xff'"))
	assert.Equal(t, "''", BinaryLiteral(""))
	assert.Equal(t, "INTERVAL 1500000 MICROSECOND", Interval(1500*time.Millisecond))
	assert.Equal(t, "INTERVAL 0 MICROSECOND", Interval(-time.Second))
}

func TestLockNames(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "outbox-relay:default", lockName("default"))
	long := strings.Repeat("x", 80)
	assert.Len(t, lockName(long), maxLockName)
	assert.NotEqual(t, lockName(long), lockName(long+"y"))
}
