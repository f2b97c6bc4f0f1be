package kafka

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What LogLibrary sets is one for the process, and sarama's connections close in the background: only the adapter is
// tested here.
func TestLibraryLogIsDemotedToDebug(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	quiet := libraryLog{zerolog.New(&out).Level(zerolog.InfoLevel)}
	quiet.Printf("%d", 1)
	quiet.Println("x")
	quiet.Print("x")
	assert.Empty(t, out.String())
	loud := libraryLog{zerolog.New(&out).Level(zerolog.DebugLevel)}
	loud.Printf("broker %d", 1)
	loud.Println("closed")
	loud.Print("opened")
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	require.Len(t, lines, 3)
	for i, message := range []string{"broker 1", "closed", "opened"} {
		assert.JSONEq(t, `{"level":"debug","message":"`+message+`"}`, lines[i])
	}
}
