package kafka_test

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/router"
)

// waitFor is the longest that a test waits for something that takes moments.
const waitFor = 30 * time.Second

const tick = 5 * time.Millisecond

// fake starts an in-process cluster.
func fake(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	cluster, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	require.NoError(t, err)
	t.Cleanup(cluster.Close)
	return cluster
}

func open(t testing.TB, cfg kafka.Config) *kafka.Client {
	t.Helper()
	client, err := kafka.Open(t.Context(), cfg, zerolog.New(zerolog.NewTestWriter(t)).Level(zerolog.InfoLevel))
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, client.Close()) })
	return client
}

func openOn(t testing.TB, brokers []string) *kafka.Client {
	t.Helper()
	return open(t, kafka.Config{Brokers: brokers})
}

// results collects what becomes of records.
type results struct {
	mu  sync.Mutex
	all []kafka.Result
}

func (r *results) add(result kafka.Result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.all = append(r.all, result)
}

func (r *results) list() []kafka.Result {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]kafka.Result(nil), r.all...)
}

func (r *results) count() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.all)
}

func (r *results) waitFor(t testing.TB, n int) []kafka.Result {
	t.Helper()
	require.Eventually(t, func() bool { return r.count() >= n }, 2*waitFor, tick, "only %d of %d results", r.count(), n)
	return r.list()
}

// producer makes a producer that is closed, and must have nothing left, at the end of the test.
func producer(t testing.TB, client *kafka.Client) (*kafka.Producer, *results) {
	t.Helper()
	got := &results{}
	p, err := client.NewProducer(got.add)
	require.NoError(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), waitFor)
		defer cancel()
		assert.NoError(t, p.Close(ctx))
	})
	return p, got
}

// number is the token that most tests send with a record.
func number(t testing.TB, r kafka.Result) int {
	t.Helper()
	n, ok := r.Token.(int)
	require.True(t, ok, "token %v", r.Token)
	return n
}

func record(topic, key string, n int) *router.Record {
	id := key + "-" + strconv.Itoa(n)
	return &router.Record{
		Topic: topic, Key: []byte(key), Value: fmt.Appendf(nil, `{"n":%d}`, n),
		Headers: []router.Header{
			{Key: words.HeaderMsgID, Value: []byte(id)},
			{Key: words.HeaderSource, Value: []byte("test")},
			{Key: "own", Value: []byte("x")},
		},
	}
}

func send(t testing.TB, p *kafka.Producer, rec *router.Record, token any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	require.NoError(t, p.Send(ctx, rec, token))
}

// consume reads the first n records of a topic.
func consume(t testing.TB, brokers []string, topic string, n int) []*kgo.Record {
	t.Helper()
	reader, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics(topic), kgo.FetchMaxWait(100*time.Millisecond))
	require.NoError(t, err)
	defer reader.Close()
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	var got []*kgo.Record
	for len(got) < n {
		fetches := reader.PollFetches(ctx)
		require.NoError(t, ctx.Err(), "only %d of %d records", len(got), n)
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, r) })
	}
	return got
}

// requireOrder reads the topic and checks that each key's records came once and in order, and where they were said to
// be.
func requireOrder(t *testing.T, brokers []string, topic string, acked []kafka.Result) {
	t.Helper()
	where := map[[2]int64]int{}
	for _, r := range acked {
		require.NoError(t, r.Err)
		require.NotEqual(t, kafka.OffsetUnknown, r.Offset)
		where[[2]int64{int64(r.Partition), r.Offset}] = number(t, r)
	}
	require.Len(t, where, len(acked))
	last := map[string]int{}
	for _, r := range consume(t, brokers, topic, len(acked)) {
		i, ok := where[[2]int64{int64(r.Partition), r.Offset}]
		require.True(t, ok, "an unknown record at %d/%d", r.Partition, r.Offset)
		require.Equal(t, string(record(topic, string(r.Key), i).Value), string(r.Value))
		before, seen := last[string(r.Key)]
		require.False(t, seen && i <= before, "key %s: %d after %d", r.Key, i, before)
		last[string(r.Key)] = i
	}
}

// ask sends one request of the protocol.
func ask(t testing.TB, brokers []string, req kmsg.Request) kmsg.Response {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	resp, err := client.Request(ctx, req)
	require.NoError(t, err)
	return resp
}
