package kafka_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/outbox-relay/kafka"
)

// post produces values to a topic, as a consumer does that reports.
func post(t testing.TB, brokers []string, topic string, values ...string) {
	t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.DefaultProduceTopic(topic), kgo.RecordPartitioner(kgo.RoundRobinPartitioner()))
	require.NoError(t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	for _, value := range values {
		require.NoError(t, client.ProduceSync(ctx, &kgo.Record{Value: []byte(value)}).FirstErr())
	}
}

func numbered(from, to int) (values []string) {
	for i := from; i < to; i++ {
		values = append(values, fmt.Sprint("report ", i))
	}
	return values
}

func reportReader(t testing.TB, client *kafka.Client, topic string) *kafka.ReportReader {
	t.Helper()
	r, err := client.NewReportReader(topic, "acks")
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, r.Close()) })
	return r
}

// fetchAll fetches until so many values have come, and expects no more.
func fetchAll(t testing.TB, r *kafka.ReportReader, n int) []string {
	t.Helper()
	got := []string{}
	ctx, cancel := context.WithTimeout(t.Context(), waitFor)
	defer cancel()
	for rounds := 0; len(got) < n || rounds == 0; rounds++ {
		values, _, err := r.Fetch(ctx)
		require.NoError(t, err)
		for _, v := range values {
			got = append(got, string(v))
		}
	}
	values, behind, err := r.Fetch(ctx)
	require.NoError(t, err)
	require.Empty(t, values)
	require.Zero(t, behind)
	slices.Sort(got)
	return got
}

func sorted(values []string) []string { slices.Sort(values); return values }

func TestReportsAreReturnedOnceAndAgainUntilCommitted(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.NumBrokers(3), kfake.SeedTopics(4, "acks"))
	client := openOn(t, cluster.ListenAddrs())
	post(t, cluster.ListenAddrs(), "acks", numbered(0, 20)...)
	first := reportReader(t, client, "acks")
	assert.Equal(t, sorted(numbered(0, 20)), fetchAll(t, first, 20), "a group that has read nothing begins at the start")
	again := reportReader(t, client, "acks")
	assert.Len(t, fetchAll(t, again, 20), 20, "nothing was committed")
	require.NoError(t, again.Commit(t.Context()))
	require.NoError(t, again.Commit(t.Context()), "nothing new is nothing to do")
	post(t, cluster.ListenAddrs(), "acks", numbered(20, 27)...)
	assert.Equal(t, sorted(numbered(20, 27)), fetchAll(t, reportReader(t, client, "acks"), 7))
	assert.Equal(t, sorted(numbered(20, 27)), fetchAll(t, again, 7))
}

// What a consumer's aborted transaction has reported was not reported.
func TestReportsOfAbortedTransactions(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "acks"))
	producer, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.DefaultProduceTopic("acks"), kgo.TransactionalID("consumer"))
	require.NoError(t, err)
	defer producer.Close()
	want := []string{}
	for i, commit := range []bool{true, false, false, true, false, true} {
		require.NoError(t, producer.BeginTransaction())
		value := fmt.Sprint("report ", i)
		require.NoError(t, producer.ProduceSync(t.Context(), &kgo.Record{Value: []byte(value)}).FirstErr())
		require.NoError(t, producer.EndTransaction(t.Context(), kgo.TransactionEndTry(commit)))
		if commit {
			want = append(want, value)
		}
	}
	post(t, cluster.ListenAddrs(), "acks", "without a transaction")
	want = append(want, "without a transaction")
	assert.Equal(t, sorted(want), fetchAll(t, reportReader(t, openOn(t, cluster.ListenAddrs()), "acks"), len(want)))
}

func TestReportsThatWereDeletedAreSkipped(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "acks"))
	client := openOn(t, cluster.ListenAddrs())
	post(t, cluster.ListenAddrs(), "acks", numbered(0, 5)...)
	r := reportReader(t, client, "acks")
	fetchAll(t, r, 5)
	require.NoError(t, r.Commit(t.Context()))
	post(t, cluster.ListenAddrs(), "acks", numbered(5, 9)...)
	require.NoError(t, cluster.DeleteRecords("acks", 0, 7))
	assert.Equal(t, numbered(7, 9), fetchAll(t, reportReader(t, client, "acks"), 2))
}

// A fetch that nobody waits for any more ends by itself, and what comes of it is nobody's.
func TestReportsWhenTheCallerGivesUp(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(1, "acks"))
	client := openOn(t, cluster.ListenAddrs())
	r := reportReader(t, client, "acks")
	fetchAll(t, r, 0)
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		_, _, err := r.Fetch(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
	}
	post(t, cluster.ListenAddrs(), "acks", numbered(0, 3)...)
	assert.Equal(t, numbered(0, 3), fetchAll(t, r, 3))
}

func TestReportsOfATopicThatIsMissing(t *testing.T) {
	t.Parallel()
	cluster := fake(t)
	r := reportReader(t, openOn(t, cluster.ListenAddrs()), "acks")
	_, _, err := r.Fetch(t.Context())
	require.ErrorContains(t, err, "create the topic")
}

func TestReadPast(t *testing.T) {
	t.Parallel()
	cluster := fake(t, kfake.SeedTopics(2, "orders"))
	brokers := cluster.ListenAddrs()
	client := openOn(t, brokers)
	past := func(moment time.Time) bool {
		t.Helper()
		is, err := client.ReadPast(t.Context(), "points", "orders", 0, moment)
		require.NoError(t, err)
		return is
	}
	produce := func(at time.Time) {
		t.Helper()
		writer, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		require.NoError(t, err)
		defer writer.Close()
		require.NoError(t, writer.ProduceSync(t.Context(), &kgo.Record{Topic: "orders", Partition: 0, Timestamp: at, Value: []byte("x")}).FirstErr())
	}
	commit := func(offset int64) {
		t.Helper()
		member, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ConsumeTopics("orders"), kgo.ConsumerGroup("points"), kgo.DisableAutoCommit())
		require.NoError(t, err)
		defer member.Close()
		ctx, cancel := context.WithTimeout(t.Context(), waitFor)
		defer cancel()
		for {
			fetches := member.PollFetches(ctx)
			require.NoError(t, ctx.Err())
			var record *kgo.Record
			fetches.EachRecord(func(r *kgo.Record) {
				if r.Offset == offset-1 {
					record = r
				}
			})
			if record != nil {
				require.NoError(t, member.CommitRecords(ctx, record))
				return
			}
		}
	}
	start := time.Now().Truncate(time.Second)
	produce(start)
	produce(start.Add(time.Minute))
	assert.False(t, past(start.Add(time.Second)), "a group that has committed nothing has read nothing")
	commit(1)
	assert.True(t, past(start.Add(time.Second)))
	assert.False(t, past(start.Add(2*time.Minute)), "the second one is not read")
	commit(2)
	assert.True(t, past(start.Add(2*time.Minute)))
}
