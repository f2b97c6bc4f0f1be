package yamltext_test

import (
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/yamltext"
)

func TestStyles(t *testing.T) {
	t.Parallel()
	tree := yaml.MapSlice{
		{Key: "size", Value: "1MiB"},
		{Key: "url", Value: "redis://h:6379/0"},
		{Key: "words", Value: "two words"},
		{Key: "number", Value: "12"},
		{Key: "n", Value: 12},
		{Key: "switch", Value: "Off"},
		{Key: "none", Value: nil},
		{Key: "list", Value: []any{
			yaml.MapSlice{{Key: "a", Value: "x"}, {Key: "b", Value: []any{}}}, "z",
		}},
	}
	settings, err := yamltext.Write(tree, yamltext.Settings())
	require.NoError(t, err)
	assert.Equal(t, `size: 1MiB
url: redis://h:6379/0
words: "two words"
number: "12"
"n": 12
switch: "Off"
none: null
list:
  - a: x
    b: []
  - z
`, string(settings))
	results, err := yamltext.FromJSON([]byte(`{"size":"1MiB","url":"redis://h:6379/0","words":"two words","number":"12","list":[{"a":1.50,"b":{}}]}`), yamltext.Results())
	require.NoError(t, err)
	assert.Equal(t, `size: "1MiB"
url: "redis://h:6379/0"
words: two words
number: "12"
list:
  - a: 1.50
    b: {}
`, string(results))
	_, err = yamltext.FromJSON([]byte(`{"a":`), yamltext.Results())
	require.Error(t, err)
}
