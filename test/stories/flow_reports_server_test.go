//go:build !unit

package stories

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/outbox-relay/inbox/report"
	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/internal/reports/acks"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// reporting is a scene whose messages are reported back.
type reporting struct {
	*harness.Scene
	t    *testing.T
	acks string // the topic of reports
}

func newReporting(t *testing.T, c harness.Cast, groups func(topics []string) map[string][]string) *reporting {
	t.Helper()
	s := &reporting{Scene: harness.NewScene(t, c), t: t}
	s.acks = s.Cast.Kafka.Topic(t, 2)
	for _, table := range s.ackTables() {
		_, err := s.DB.ExecContext(t.Context(), acks.Schema(table, 0))
		require.NoError(t, err)
	}
	s.Set("acks.enabled", true, "acks.topic", s.acks, "acks.groups", groups(s.Topics),
		"acks.consumer_group", s.Source+"-acks", "console.token", "secret token")
	return s
}

// start starts a relay on the console that consumers report to, and does not wait.
func (s *reporting) start() *harness.Relay {
	s.t.Helper()
	return harness.Start(s.t, s.Settings)
}

func (s *reporting) messageTables() (tables []outbox.Table) {
	for _, name := range s.Tables {
		database, table, _ := strings.Cut(name, ".")
		tables = append(tables, outbox.Table{Database: database, Name: table})
	}
	return tables
}

func (s *reporting) ackTables() []outbox.Table {
	tables := s.messageTables()
	for i := range tables {
		tables[i].Name += "_ack"
	}
	return tables
}

// group starts a consumer group that reports what it reads before it commits its offsets; a nil sender reports nothing.
func (s *reporting) group(name string, send report.Sender, topics ...string) {
	s.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Cast.Kafka.Brokers...), kgo.ConsumerGroup(s.Source+"-"+name), kgo.ConsumeTopics(topics...),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(), kgo.FetchMaxWait(250*time.Millisecond))
	require.NoError(s.t, err)
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.consumeAndReport(ctx, client, report.NewBatch(name, 200, send), send != nil) })
	s.t.Cleanup(func() {
		cancel()
		running.Wait()
		client.Close()
	})
}

func (s *reporting) consumeAndReport(ctx context.Context, client *kgo.Client, batch *report.Batch, reports bool) {
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		for _, r := range fetches.Records() {
			headers := map[string]string{}
			for _, h := range r.Headers {
				headers[h.Key] = string(h.Value)
			}
			if reports {
				// An error leaves the message gathered: Flush sends it.
				_ = batch.Add(ctx, headers["outbox_source"], r.Topic, headers[report.HeaderMsgID])
			}
		}
		for batch.Flush(ctx) != nil && ctx.Err() == nil {
			pass(ctx, 50*time.Millisecond)
		}
		if err := client.CommitUncommittedOffsets(ctx); err != nil && ctx.Err() == nil {
			s.t.Logf("commit offsets: %v", err)
		}
	}
}

// byKafka reports through the topic of reports.
func (s *reporting) byKafka() report.Sender {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Cast.Kafka.Brokers...), kgo.DefaultProduceTopic(s.acks))
	require.NoError(s.t, err)
	s.t.Cleanup(client.Close)
	return report.SenderFunc(func(ctx context.Context, r report.Report) error {
		value, err := r.Encode()
		if err != nil {
			return err
		}
		return client.ProduceSync(ctx, &kgo.Record{Value: value}).FirstErr()
	})
}

func (s *reporting) byHTTP() report.Sender {
	address, _ := s.Settings["console.listen"].(string)
	transport := &http.Transport{DisableKeepAlives: true}
	return &report.HTTP{URLs: []string{"http://" + address}, Token: "secret token", Client: &http.Client{Transport: transport}}
}

// bySQL reports as a handler does in its own transaction.
func (s *reporting) bySQL(groups ...string) report.Sender {
	return report.SenderFunc(func(ctx context.Context, r report.Report) error {
		tx, err := s.DB.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		for _, table := range s.messageTables() {
			if _, err := (report.SQL{Table: table, Groups: groups}).MarkConsumed(ctx, tx, r.Group, r.MsgIDs...); err != nil {
				return errors.Join(err, tx.Rollback())
			}
		}
		return tx.Commit()
	})
}

// neverBack watches the rows until the test ends: one that was seen consumed stays so.
func (s *reporting) neverBack() {
	ctx, cancel := context.WithCancel(s.t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		consumed := map[string]bool{}
		for ctx.Err() == nil {
			rows, err := workload.Rows(ctx, s.DB, s.Tables...)
			if err != nil {
				continue
			}
			for _, row := range rows {
				if consumed[row.MsgID] && row.Status != outbox.Consumed {
					s.t.Errorf("%s went back from consumed to %s", row.MsgID, row.Status)
				}
				consumed[row.MsgID] = consumed[row.MsgID] || row.Status == outbox.Consumed
			}
			pass(ctx, 100*time.Millisecond)
		}
	})
	s.t.Cleanup(func() { cancel(); running.Wait() })
}

// statusesOf counts the rows of a topic by status.
func (s *reporting) statusesOf(topic string) map[int]int {
	counts := map[int]int{}
	for _, table := range s.Tables {
		s.countStatuses(table, topic, counts)
	}
	return counts
}

func (s *reporting) countStatuses(table, topic string, counts map[int]int) {
	rows, err := s.DB.QueryContext(s.t.Context(), "SELECT status, COUNT(*) FROM "+table+" WHERE topic = ? GROUP BY status", topic)
	require.NoError(s.t, err)
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var status, n int
		require.NoError(s.t, rows.Scan(&status, &n))
		counts[status] += n
	}
	require.NoError(s.t, rows.Err())
}

// TestReportsUnderKills: consumers report by each of the three ways, some topics by several groups, while the relay is
// killed again and again. Every message ends consumed, none goes back, and the topic that nobody reports is left alone.
func TestReportsUnderKills(t *testing.T) {
	const rows, kills = 3000, 4
	s := newReporting(t, harness.Cast{Tables: 2, Topics: 5, Patient: true}, func(topics []string) map[string][]string {
		return map[string][]string{
			topics[1]: {"points"}, topics[2]: {"points", "logistics"}, topics[3]: {"one", "two"},
		}
	})
	s.group("points", s.byKafka(), s.Topics[0], s.Topics[1], s.Topics[2])
	s.group("logistics", s.byHTTP(), s.Topics[2])
	s.group("one", s.bySQL("one", "two"), s.Topics[3])
	s.group("two", s.bySQL("one", "two"), s.Topics[3])
	s.neverBack()
	relay := s.start()
	s.Leads(relay)
	finish := s.Writing(func(cfg *workload.Config) { cfg.Rows, cfg.Rate = rows, 800 })
	for range kills {
		pass(t.Context(), time.Duration(500+rand.IntN(700))*time.Millisecond)
		relay.Kill()
		relay = s.start()
	}
	finish()
	junk := s.byKafka()
	require.NoError(t, junk.Send(t.Context(), report.Report{Source: s.Source, Group: "points", MsgIDs: []string{"nobody's"}}))
	s.produceJunk()
	s.Exact(60*time.Second, oracle.Options{Duplicates: true})
	for i, topic := range s.Topics[:4] {
		harness.Eventually(t, 30*time.Second, fmt.Sprintf("topic %d consumed", i), func() (bool, string) {
			counts := s.statusesOf(topic)
			return len(counts) == 1 && counts[3] > 0, fmt.Sprint(counts)
		})
	}
	untouched := s.statusesOf(s.Topics[4])
	assert.Positive(t, untouched[1])
	assert.Len(t, untouched, 1, "%v", untouched)
	for _, acks := range s.ackTables() {
		var left int
		require.NoError(t, s.DB.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+outbox.QuoteTable(acks)).Scan(&left))
		assert.Zero(t, left, "who has reported is forgotten once all have")
	}
	harness.Eventually(t, 20*time.Second, "junk and strangers counted", func() (bool, string) {
		m, err := relay.Metrics()
		if err != nil {
			return false, err.Error()
		}
		return m.Sum("acks_total", "result", "junk", "via", "kafka") >= 2 && m.Sum("acks_total", "result", "unknown") >= 1 && m.Sum("acks_behind_records") == 0,
			fmt.Sprint(m.Sum("acks_total", "result", "junk"), m.Sum("acks_total", "result", "unknown"), m.Sum("acks_behind_records"))
	})
}

// produceJunk writes what is no report, and then a report behind it.
func (s *reporting) produceJunk() {
	s.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Cast.Kafka.Brokers...), kgo.DefaultProduceTopic(s.acks))
	require.NoError(s.t, err)
	defer client.Close()
	for _, value := range []string{"no report", `{"group":"points","msg_ids":[]}`} {
		require.NoError(s.t, client.ProduceSync(s.t.Context(), &kgo.Record{Value: []byte(value)}).FirstErr())
	}
}

// TestReportsOnMariaDB is the three ways once, without trouble.
func TestReportsOnMariaDB(t *testing.T) {
	s := newReporting(t, harness.Cast{SQL: rig.MariaDB(t), Topics: 3, Patient: true}, func(topics []string) map[string][]string {
		return map[string][]string{topics[1]: {"points", "logistics"}}
	})
	s.group("points", s.byKafka(), s.Topics[0], s.Topics[1])
	s.group("logistics", s.byHTTP(), s.Topics[1])
	s.group("billing", s.bySQL(), s.Topics[2])
	s.neverBack()
	relay := s.start()
	s.Leads(relay)
	s.CaughtUp(12 * time.Second)
	before, err := relay.Metrics()
	require.NoError(t, err)
	s.Write(func(cfg *workload.Config) { cfg.Rows, cfg.Rate = 1000, 500 })
	s.Exact(30*time.Second, oracle.Options{})
	for i, topic := range s.Topics {
		harness.Eventually(t, 20*time.Second, fmt.Sprintf("topic %d consumed", i), func() (bool, string) {
			counts := s.statusesOf(topic)
			return len(counts) == 1 && counts[3] > 0, fmt.Sprint(counts)
		})
	}
	s.CaughtUp(12 * time.Second)
	after, err := relay.Metrics()
	require.NoError(t, err)
	// The stream passes over the consumers' updates: it publishes nothing, misses nothing and wakes nobody.
	assert.InDelta(t, 1000, after.Sum("messages_published_total"), 0)
	assert.Zero(t, after.Sum("stream_missed_total"))
	rounds := after.Sum("sweep_rounds_total") - before.Sum("sweep_rounds_total")
	assert.Less(t, rounds, 10.0, "a consumer's update to 3 must not wake the sweeper")
	code, _ := relay.Stop()
	assert.Zero(t, code)
}

// TestUnreportedMessages: for each group the relay tells how old the oldest message is that it has not reported, and whether
// it has read past it.
func TestUnreportedMessages(t *testing.T) {
	s := newReporting(t, harness.Cast{Topics: 2, Patient: true}, func(topics []string) map[string][]string {
		return map[string][]string{topics[0]: {"reports", "reads", "sleeps"}, topics[1]: {"reports"}}
	})
	// The groups in Kafka bear the source's name here, so that tests do not meet.
	named := map[string][]string{}
	for topic, groups := range map[string][]string{s.Topics[0]: {"reports", "reads", "sleeps"}, s.Topics[1]: {"reports"}} {
		for _, group := range groups {
			named[topic] = append(named[topic], s.Source+"-"+group)
		}
	}
	s.Set("acks.groups", named)
	s.group("reads", nil, s.Topics[0])
	reports := s.byKafka()
	s.group("reports", report.SenderFunc(func(ctx context.Context, r report.Report) error {
		r.Group = s.Source + "-reports"
		return reports.Send(ctx, r)
	}), s.Topics...)
	relay := s.start()
	s.Leads(relay)
	for i := range 40 {
		s.Post(s.DB, harness.Letter{ID: fmt.Sprint("m", i), Topic: s.Topics[i%2]})
	}
	s.Exact(20*time.Second, oracle.Options{})
	harness.Eventually(t, 20*time.Second, "reports taken", func() (bool, string) {
		counts := s.statusesOf(s.Topics[1])
		return counts[3] == 20, fmt.Sprint(counts)
	})
	// A new leader looks at once.
	code, _ := relay.Stop()
	require.Zero(t, code)
	relay = s.start()
	s.Leads(relay)
	metric := func(m harness.Metrics, name string, topic int, group string) (float64, bool) {
		labels := []string{"topic", s.Topics[topic], "group", s.Source + "-" + group}
		return m.Sum(name, labels...), m.Has(name, labels...)
	}
	harness.Eventually(t, 45*time.Second, "metrics of unreported messages", func() (bool, string) {
		m, err := relay.Metrics()
		if err != nil {
			return false, err.Error()
		}
		var seen []string
		right := true
		for _, want := range []struct {
			topic         int
			group         string
			oldest, known bool
			read          float64
		}{{0, "reports", false, false, 0}, {1, "reports", false, false, 0}, {0, "reads", true, true, 1}, {0, "sleeps", true, true, 0}} {
			age, has := metric(m, "oldest_unreported_seconds", want.topic, want.group)
			read, known := metric(m, "group_read_past_oldest", want.topic, want.group)
			right = right && has && (age > 0) == want.oldest && known == want.known && read == want.read
			seen = append(seen, fmt.Sprint(want.group, age, has, read, known))
		}
		return right, strings.Join(seen, "; ")
	})
	assert.True(t, slices.Equal([]int{1}, keys(s.statusesOf(s.Topics[0]))), "two groups have not reported")
}

func keys(m map[int]int) (all []int) {
	for k := range m {
		all = append(all, k)
	}
	slices.Sort(all)
	return all
}
