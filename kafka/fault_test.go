package kafka_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/retry"
)

func TestFaultsOfTheWayAreWaitedForInOrder(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]*kerr.Error{
		"NotLeader":             kerr.NotLeaderForPartition,
		"NotEnoughReplicas":     kerr.NotEnoughReplicas,
		"AfterAppend":           kerr.NotEnoughReplicasAfterAppend,
		"TimedOutAfterTheWrite": kerr.RequestTimedOut,
		"Storage":               kerr.KafkaStorageError,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			cluster := fake(t, kfake.SeedTopics(2, "orders"))
			p, got := producer(t, openOn(t, cluster.ListenAddrs()))
			send(t, p, record("orders", "a", 0), 0)
			got.waitFor(t, 1)
			cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: fault, Count: 5})
			const n = 600
			for i := 1; i < n; i++ {
				send(t, p, record("orders", string(rune('a'+i%5)), i), i)
			}
			requireOrder(t, cluster.ListenAddrs(), "orders", got.waitFor(t, n))
		})
	}
}

func TestRefusedTopicDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "good", "forbidden"))
	cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "forbidden", Err: kerr.TopicAuthorizationFailed, Count: -1})
	p, got := producer(t, openOn(t, cluster.ListenAddrs()))
	for i := range 100 {
		send(t, p, record("good", "a", i), true)
		send(t, p, record("forbidden", "a", i), false)
	}
	for _, r := range got.waitFor(t, 200) {
		if r.Token == true {
			require.NoError(t, r.Err)
			continue
		}
		require.Error(t, r.Err)
		require.Equal(t, retry.Refused, kafka.Classify(r.Err))
		require.Contains(t, r.Err.Error(), "give the relay's user the rights")
	}
}

// A partition without a leader must not fill up sarama's stages, which all topics share.
func TestStuckTopicDoesNotHoldUpOthers(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "good", "stuck"))
	faults := cluster.Fault(
		kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: "stuck", Err: kerr.NotLeaderForPartition, Count: -1},
		kfake.Fault{Keys: []kmsg.Key{kmsg.Metadata}, Topic: "stuck", Err: kerr.LeaderNotAvailable, Count: -1},
	)
	client := openOn(t, cluster.ListenAddrs())
	p, got := producer(t, client)
	const stuck = 7000 // several times what sarama's stages hold
	for i := range stuck {
		send(t, p, record("stuck", "a", i), -1)
	}
	const good = 3000
	for i := range good {
		send(t, p, record("good", string(rune('a'+i%5)), i), i)
	}
	acked := got.waitFor(t, good)
	requireOrder(t, cluster.ListenAddrs(), "good", acked)
	faults.Remove()
	got.waitFor(t, good+stuck)
	var n int
	for _, r := range consume(t, cluster.ListenAddrs(), "stuck", stuck) {
		require.Equal(t, string(record("stuck", "a", n).Value), string(r.Value))
		n++
	}
}

func TestTopicThatIsDeletedComesBackAsRefused(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "good", "gone"))
	p, got := producer(t, openOn(t, cluster.ListenAddrs()))
	send(t, p, record("gone", "a", 0), 0)
	got.waitFor(t, 1)
	require.NoError(t, cluster.DeleteTopic("gone"))
	for i := range 20 {
		send(t, p, record("gone", "a", i), "gone")
		send(t, p, record("good", "a", i), "good")
	}
	refused := 0
	for _, r := range got.waitFor(t, 41)[1:] {
		if r.Token == "good" {
			require.NoError(t, r.Err)
			continue
		}
		require.Error(t, r.Err)
		require.Equal(t, retry.Refused, kafka.Classify(r.Err), "%v", r.Err)
		refused++
	}
	assert.Equal(t, 20, refused)
}

// A topic may take less than the relay is configured for. Its batches must fit too, not only each record (S66).
func TestS66BatchesFitTheTopicsLimit(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	require.NoError(t, cluster.CreateTopic("small", 1, map[string]string{"max.message.bytes": "2000"}))
	require.NoError(t, cluster.CreateTopic("large", 1, nil))
	p, got := producer(t, openOn(t, cluster.ListenAddrs()))
	const n = 2000
	for i := range n {
		send(t, p, record("small", "a", i), i)
		send(t, p, record("large", "a", i), i)
	}
	for _, r := range got.waitFor(t, 2*n) {
		require.NoError(t, r.Err)
	}
}

// A limit that is lowered while records flow: the batch is refused for now, whoever sends them alone learns the truth,
// and later batches fit.
func TestS66LoweredLimit(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	require.NoError(t, cluster.CreateTopic("small", 1, nil))
	client := openOn(t, cluster.ListenAddrs())
	p, got := producer(t, client)
	send(t, p, record("small", "a", 0), 0)
	got.waitFor(t, 1)
	lower(t, cluster, "small", "2000")
	large := record("small", "a", 1)
	large.Value = []byte(strings.Repeat("x", 3000))
	send(t, p, large, 1)
	err := got.waitFor(t, 2)[1].Err
	require.ErrorIs(t, err, kafka.ErrBatchRefused)
	require.Equal(t, retry.Refused, kafka.Classify(err))
	_, _, err = client.Probe(t.Context(), large)
	require.Error(t, err)
	require.Equal(t, retry.Never, kafka.Classify(err))
	require.Contains(t, err.Error(), "max.message.bytes")
	for i := range 500 {
		send(t, p, record("small", "a", i), i)
	}
	for _, r := range got.waitFor(t, 502)[2:] {
		require.NoError(t, r.Err)
	}
}

// A refused batch lets the topic's limit be asked anew while thousands of records wait behind it: each of them gets
// its result without another Send.
func TestRefusedBatchStrandsNoneBehindIt(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	require.NoError(t, cluster.CreateTopic("small", 1, nil))
	p, got := producer(t, openOn(t, cluster.ListenAddrs()))
	send(t, p, record("small", "a", 0), 0)
	got.waitFor(t, 1)
	hold := cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
	lower(t, cluster, "small", "2000")
	const n = 6000 // several times what sarama takes of one topic
	for i := 1; i <= n; i++ {
		rec := record("small", "a", i)
		if i == 1 {
			rec.Value = []byte(strings.Repeat("x", 3000))
		}
		send(t, p, rec, i)
	}
	hold.Remove()
	got.waitFor(t, n+1)
}

func lower(t *testing.T, cluster *kfake.Cluster, topic, limit string) {
	t.Helper()
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeTopic, topic
	config := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
	config.Name, config.Value = "max.message.bytes", &limit
	resource.Configs = append(resource.Configs, config)
	req.Resources = append(req.Resources, resource)
	ask(t, cluster.ListenAddrs(), req)
}

// S79: sarama alone waits until each record has used up its retries, or for ever.
func TestS79CloseEndsSoonEachTime(t *testing.T) {
	t.Parallel()
	for range 20 {
		cluster := fake(t, kfake.SeedTopics(4, "orders", "others"))
		got := &results{}
		client := openOn(t, cluster.ListenAddrs())
		p, err := client.NewProducer(got.add)
		require.NoError(t, err)
		send(t, p, record("orders", "a", 0), 0)
		cluster.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.NotEnoughReplicas, Count: -1})
		const n = 2500
		for i := range n {
			if i == n/2 {
				cluster.Close()
			}
			send(t, p, record([]string{"orders", "orders", "others"}[i%3], string(rune('a'+i%9)), i), i)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		start := time.Now()
		require.Error(t, p.Close(ctx))
		cancel()
		t.Logf("closed after %s", time.Since(start))
		require.Less(t, time.Since(start), 3*time.Second)
		require.Equal(t, n+1, got.count(), "each record has a result")
		require.NoError(t, client.Close())
	}
}

func TestSendWaitsForTheFirstBroker(t *testing.T) {
	t.Parallel()
	client := openOn(t, []string{"127.0.0.1:1"})
	p, got := producer(t, client)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	err := p.Send(ctx, record("orders", "a", 0), 0)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	assert.Equal(t, retry.Unreachable, kafka.Classify(err))
	assert.Zero(t, got.count(), "what was not handed over has no result")
}

func TestCloseEndsASendThatWaits(t *testing.T) {
	t.Parallel()
	p, err := openOn(t, []string{"127.0.0.1:1"}).NewProducer(func(kafka.Result) {})
	require.NoError(t, err)
	sent := make(chan error)
	go func() { sent <- p.Send(t.Context(), record("orders", "a", 0), 0) }()
	require.NoError(t, p.Close(t.Context()))
	select {
	case err := <-sent:
		require.Error(t, err)
	case <-time.After(waitFor):
		t.Fatal("Send still waits")
	}
	require.ErrorIs(t, p.Send(t.Context(), record("orders", "a", 0), 0), kafka.ErrClosed)
	require.NoError(t, p.Close(t.Context()), "closing twice")
}

func TestCloseWaitsForWhatIsOnItsWay(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(2, "orders"))
	got := &results{}
	p, err := openOn(t, cluster.ListenAddrs()).NewProducer(got.add)
	require.NoError(t, err)
	const n = 6000 // more than one topic's share of sarama
	for i := range n {
		send(t, p, record("orders", string(rune('a'+i%7)), i), i)
	}
	require.NoError(t, p.Close(t.Context()))
	require.Equal(t, n, got.count())
	requireOrder(t, cluster.ListenAddrs(), "orders", got.list())
}
