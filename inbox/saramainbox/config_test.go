package saramainbox_test

import (
	"testing"
	"time"

	"github.com/IBM/sarama"
	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/inbox/saramainbox"
)

func TestCooperativeStrategiesAndLongGracesAreRefused(t *testing.T) {
	t.Parallel()
	sc := saramainbox.NewConfig()
	sc.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategyCooperativeSticky(), sarama.NewBalanceStrategyRange()}
	cfg := saramainbox.Config{
		Brokers: []string{"127.0.0.1:1"}, Topics: []string{"orders"}, Sarama: sc, CommitEvery: -1,
		Policy: inbox.Policy{DeadLetterTopic: "dead", Grace: time.Minute},
	}
	err := saramainbox.Run(t.Context(), nil, nil, cfg, zerolog.Nop())
	for _, part := range []string{"cooperative strategy", "rebalance timeout of 1m0s", "commit every -1ns"} {
		require.ErrorContains(t, err, part)
	}
}

func TestCallersConfigurationIsNotChanged(t *testing.T) {
	t.Parallel()
	sc := saramainbox.NewConfig()
	sc.Consumer.Offsets.AutoCommit.Enable = false
	require.Error(t, saramainbox.Run(t.Context(), nil, nil, saramainbox.Config{Sarama: sc}, zerolog.Nop()), "no brokers")
	assert.False(t, sc.Consumer.Offsets.AutoCommit.Enable)
	assert.False(t, sc.Consumer.Return.Errors)
	assert.Equal(t, sarama.OffsetOldest, sc.Consumer.Offsets.Initial, "a new group begins at the start")
}
