package nearest

import (
	"testing"

	"github.com/stretchr/testify/assert"
)

func TestNames(t *testing.T) {
	t.Parallel()
	names := []string{"orders", "local_message", "Local_Messages", "local_massage", "x"}
	assert.Equal(t, []string{"local_message", "Local_Messages", "local_massage"}, Names("local_mesage", names))
	assert.Empty(t, Names("zzzzzzzz", names))
}

func TestWord(t *testing.T) {
	t.Parallel()
	words := []string{"brokers", "Broker", "tls", "a"}
	assert.Equal(t, "Broker", Word("broker", words), "the nearest, whatever its case")
	assert.Equal(t, "brokers", Word("brokerss", words))
	assert.Empty(t, Word("zzzzzzzz", words))
	assert.Empty(t, Word("b", []string{"a"}), "nothing of the word is left")
}

func TestDistance(t *testing.T) {
	t.Parallel()
	assert.Equal(t, 3, distance("kitten", "sitting"))
	assert.Equal(t, 4, distance("", "four"))
	assert.Equal(t, 4, distance("four", ""))
}
