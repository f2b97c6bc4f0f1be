package outbox_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
)

// stagingTopic remembers what it was given.
type stagingTopic struct {
	ids    []string
	bodies []string
	err    error
}

func (s *stagingTopic) stage(_ context.Context, msgID string, body []byte) (outbox.BodyRef, error) {
	s.ids, s.bodies = append(s.ids, msgID), append(s.bodies, string(body))
	return outbox.BodyRef{Topic: "staged", Partition: 2, Offset: int64(len(s.ids))}, s.err
}

func TestStage(t *testing.T) {
	t.Parallel()
	var topic stagingTopic
	for _, body := range []any{map[string]int{"n": 1}, []byte("%PDF-1.7 \xff")} {
		m, err := outbox.Stage(t.Context(), topic.stage, outbox.Message{Topic: "invoices", Key: "k", Body: body})
		require.NoError(t, err)
		assert.Equal(t, outbox.BodyRef{Topic: "staged", Partition: 2, Offset: int64(len(topic.ids))}, m.Body)
		assert.Equal(t, topic.ids[len(topic.ids)-1], m.ID)
		assert.Len(t, m.ID, 36)
	}
	assert.Equal(t, []string{`{"n":1}`, "%PDF-1.7 \xff"}, topic.bodies)
}

// What is wrong is found before anything is staged.
func TestStageRefuses(t *testing.T) {
	t.Parallel()
	var topic stagingTopic
	for name, m := range map[string]outbox.Message{
		"no topic":   {Body: []byte("x")},
		"no body":    {Topic: "t"},
		"empty body": {Topic: "t", Body: []byte{}},
		"staged":     {Topic: "t", Body: outbox.BodyRef{Topic: "staged"}},
		"no JSON":    {Topic: "t", Body: make(chan int)},
	} {
		_, err := outbox.Stage(t.Context(), topic.stage, m)
		require.ErrorIs(t, err, outbox.ErrInvalid, name)
	}
	assert.Empty(t, topic.ids)
	topic.err = errors.New("kafka is away")
	_, err := outbox.Stage(t.Context(), topic.stage, outbox.Message{Topic: "t", Body: 1})
	require.ErrorIs(t, err, topic.err)
}
