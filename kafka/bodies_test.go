package kafka_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/retry"
)

// staged writes n bodies and returns where each lies, by its number.
func staged(t *testing.T, client *kafka.Client, topic string, n int) []outbox.BodyRef {
	t.Helper()
	refs := make([]outbox.BodyRef, n)
	for _, r := range fill(t, client, topic, n) {
		refs[number(t, r)] = outbox.BodyRef{Topic: topic, Partition: r.Partition, Offset: r.Offset}
	}
	return refs
}

func TestBodiesAreReadInTheirOrder(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.NumBrokers(3), kfake.SeedTopics(4, "staged"), kfake.SeedTopics(2, "other"))
	client := openOn(t, cluster.ListenAddrs())
	refs := append(staged(t, client, "staged", 500), staged(t, client, "other", 100)...)
	numbers := rand.Perm(len(refs))
	numbers = append(numbers, numbers[0]) // the same twice
	asked := make([]outbox.BodyRef, len(numbers))
	for i, n := range numbers {
		asked[i] = refs[n]
	}
	for i, body := range client.Bodies(t.Context(), asked) {
		require.NoError(t, body.Err)
		n := numbers[i] % 500
		require.Equal(t, fmt.Sprintf(`{"n":%d}`, n), string(body.Value))
		require.Equal(t, fmt.Sprintf("k%d-%d", n%5, n), body.MsgID)
		require.Less(t, cap(body.Value), 64, "it keeps nothing else of what was fetched in memory")
	}
}

func TestBodiesThatAreGone(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "staged"))
	client := openOn(t, cluster.ListenAddrs())
	refs := staged(t, client, "staged", 10)
	require.NoError(t, cluster.DeleteRecords("staged", 0, 5))
	bodies := client.Bodies(t.Context(), append(refs, outbox.BodyRef{Topic: "staged", Offset: 1000}))
	for i, body := range bodies {
		if i < 5 || i == 10 {
			require.ErrorIs(t, body.Err, kafka.ErrBodyGone, "%d", i)
			assert.Equal(t, retry.Never, kafka.Classify(body.Err))
			assert.Equal(t, "body_gone", kafka.Reason(body.Err))
			continue
		}
		require.NoError(t, body.Err, "%d", i)
	}
}

func TestBodiesThatMayComeLater(t *testing.T) {
	t.Parallel()
	t.Run("BehindTheEnd", func(t *testing.T) {
		t.Parallel()
		cluster := fake(t, kfake.SeedTopics(1, "staged"))
		client := openOn(t, cluster.ListenAddrs())
		refs := staged(t, client, "staged", 1)
		bodies := client.Bodies(t.Context(), append(refs, outbox.BodyRef{Topic: "staged", Offset: 1}))
		require.NoError(t, bodies[0].Err, "one that is missing takes nothing from the others")
		require.ErrorContains(t, bodies[1].Err, "ends before")
		assert.Equal(t, retry.Refused, kafka.Classify(bodies[1].Err))
	})
	t.Run("NoTopic", func(t *testing.T) {
		t.Parallel()
		client := openOn(t, fake(t).ListenAddrs())
		bodies := client.Bodies(t.Context(), []outbox.BodyRef{{Topic: "missing"}})
		require.Error(t, bodies[0].Err)
		assert.Equal(t, retry.Refused, kafka.Classify(bodies[0].Err))
	})
	t.Run("Forbidden", func(t *testing.T) {
		t.Parallel()
		cluster := fake(t, kfake.SeedTopics(1, "staged"))
		client := openOn(t, cluster.ListenAddrs())
		refs := staged(t, client, "staged", 1)
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Fetch}, Err: kerr.TopicAuthorizationFailed, Count: -1})
		bodies := client.Bodies(t.Context(), refs)
		require.ErrorContains(t, bodies[0].Err, "the right to Read")
		assert.Equal(t, retry.Refused, kafka.Classify(bodies[0].Err))
	})
	t.Run("Unreachable", func(t *testing.T) {
		t.Parallel()
		client := openOn(t, []string{"127.0.0.1:1"})
		bodies := client.Bodies(t.Context(), []outbox.BodyRef{{Topic: "staged"}})
		require.Error(t, bodies[0].Err)
		assert.Equal(t, retry.Unreachable, kafka.Classify(bodies[0].Err))
	})
}

// A leader that moves is found again within the reading.
func TestBodiesFollowTheLeader(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.NumBrokers(2), kfake.SeedTopics(1, "staged"))
	client := openOn(t, cluster.ListenAddrs())
	refs := staged(t, client, "staged", 3)
	leader := cluster.LeaderFor("staged", 0)
	require.NoError(t, cluster.MoveTopicPartition("staged", 0, 1-leader))
	for _, body := range client.Bodies(t.Context(), refs) {
		require.NoError(t, body.Err)
	}
}
