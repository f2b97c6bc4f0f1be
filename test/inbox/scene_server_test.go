//go:build !unit

package inbox

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

const limit = 40 * time.Second

var effectTables = []string{
	`CREATE TABLE effect (id INT AUTO_INCREMENT PRIMARY KEY, msg_id VARCHAR(64) NOT NULL, partition_no INT NOT NULL, record_offset BIGINT NOT NULL)`,
	`CREATE TABLE account (id INT PRIMARY KEY, points INT NOT NULL)`,
}

// scene is a topic, a group, and a database for the effects.
type scene struct {
	t          *testing.T
	kafka      *rig.KafkaServer
	topic      string
	dead       string
	group      string
	partitions int
	dsn        string
	db         *sql.DB
	in         *inbox.Inbox
	client     *kgo.Client
	expected   map[string]bool // the msg_ids that were produced
}

func newScene(t *testing.T, kafka *rig.KafkaServer, partitions int) *scene {
	t.Helper()
	server := rig.MySQL(t)
	s := &scene{t: t, kafka: kafka, partitions: partitions, topic: kafka.Topic(t, partitions), dead: kafka.Topic(t, 1), expected: map[string]bool{}}
	s.group = "group-" + s.topic
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr, cfg.User, cfg.Passwd, cfg.DBName = "tcp", server.Addr, server.User, server.Password, server.Database(t)
	cfg.InterpolateParams = true
	s.dsn = cfg.FormatDSN()
	connector, err := mysql.NewConnector(cfg)
	require.NoError(t, err)
	s.db = sql.OpenDB(connector)
	t.Cleanup(func() { assert.NoError(t, s.db.Close()) })
	for _, statement := range append([]string{inbox.Schema(inbox.SchemaOptions{})}, effectTables...) {
		_, err := s.db.ExecContext(t.Context(), statement)
		require.NoError(t, err)
	}
	for p := range partitions {
		_, err := s.db.ExecContext(t.Context(), "INSERT INTO account VALUES (?, 0)", p)
		require.NoError(t, err)
	}
	s.in, err = inbox.New(s.db, inbox.Config{Group: s.group})
	require.NoError(t, err)
	s.client, err = kgo.NewClient(kgo.SeedBrokers(kafka.Brokers...), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	require.NoError(t, err)
	t.Cleanup(s.client.Close)
	return s
}

// produce writes n messages, spread over the partitions, the twentieth of them twice, as a relay would after a crash.
func (s *scene) produce(n int) {
	s.t.Helper()
	var records []*kgo.Record
	for i := range n {
		id := fmt.Sprintf("m-%d", len(s.expected))
		s.expected[id] = true
		record := s.record(id, i%s.partitions)
		records = append(records, record)
		if i%20 == 7 {
			again := *record
			records = append(records, &again)
		}
	}
	require.NoError(s.t, s.client.ProduceSync(s.t.Context(), records...).FirstErr())
}

func (s *scene) record(id string, partition int) *kgo.Record {
	record := &kgo.Record{Topic: s.topic, Partition: int32(partition), Key: []byte(id), Value: []byte(`{"id":"` + id + `"}`)}
	if id != "" {
		record.Headers = []kgo.RecordHeader{{Key: inbox.HeaderMsgID, Value: []byte(id)}}
	}
	return record
}

func (s *scene) count(query string, args ...any) int {
	s.t.Helper()
	var n int
	require.NoError(s.t, s.db.QueryRowContext(s.t.Context(), query, args...).Scan(&n), query)
	return n
}

func (s *scene) effects() int { return s.count("SELECT COUNT(*) FROM effect") }

// handled waits until so many effects are committed.
func (s *scene) handled(n int, within time.Duration) {
	s.t.Helper()
	harness.Eventually(s.t, within, "effects committed", func() (bool, string) {
		got := s.effects()
		return got >= n, fmt.Sprintf("%d of %d", got, n)
	})
}

// exactlyOnce compares the database with what was produced, and each partition's effects with its order.
func (s *scene) exactlyOnce() {
	s.t.Helper()
	rows, err := s.db.QueryContext(s.t.Context(), "SELECT msg_id, partition_no, record_offset FROM effect ORDER BY id")
	require.NoError(s.t, err)
	defer func() { require.NoError(s.t, rows.Close()) }()
	times, last := map[string]int{}, map[int]int64{}
	inversions := 0
	for rows.Next() {
		var id string
		var partition int
		var offset int64
		require.NoError(s.t, rows.Scan(&id, &partition, &offset))
		times[id]++
		if before, ok := last[partition]; ok && offset <= before {
			inversions++
		}
		last[partition] = offset
	}
	require.NoError(s.t, rows.Err())
	lost, repeated, foreign := 0, 0, 0
	for id := range s.expected {
		if times[id] == 0 {
			lost++
		}
	}
	for id, n := range times {
		repeated += n - 1
		if !s.expected[id] {
			foreign++
		}
	}
	assert.Equal(s.t, []int{0, 0, 0, 0}, []int{lost, repeated, foreign, inversions}, "lost, repeated, foreign, out of order")
	assert.Equal(s.t, len(s.expected), s.count("SELECT SUM(points) FROM account"), "the sums")
	assert.Equal(s.t, len(s.expected), s.count("SELECT COUNT(*) FROM consumed_message"), "the records")
}

// committed returns the group's offset of a partition, -1 for none.
func (s *scene) committed(partition int) int64 {
	s.t.Helper()
	req := kmsg.NewPtrOffsetFetchRequest()
	req.Group = s.group
	topic := kmsg.NewOffsetFetchRequestTopic()
	topic.Topic, topic.Partitions = s.topic, []int32{int32(partition)}
	req.Topics = append(req.Topics, topic)
	group := kmsg.NewOffsetFetchRequestGroup()
	group.Group = s.group
	of := kmsg.NewOffsetFetchRequestGroupTopic()
	of.Topic, of.Partitions = s.topic, topic.Partitions
	group.Topics = append(group.Topics, of)
	req.Groups = append(req.Groups, group)
	resp, err := req.RequestWith(s.t.Context(), s.client)
	require.NoError(s.t, err)
	if len(resp.Groups) > 0 {
		require.Zero(s.t, resp.Groups[0].ErrorCode)
		return resp.Groups[0].Topics[0].Partitions[0].Offset
	}
	return resp.Topics[0].Partitions[0].Offset
}

// read returns the first n records of a topic with one partition.
func (s *scene) read(topic string, n int) []*kgo.Record {
	s.t.Helper()
	client, err := kgo.NewClient(kgo.SeedBrokers(s.kafka.Brokers...), kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	require.NoError(s.t, err)
	defer client.Close()
	ctx, cancel := context.WithTimeout(s.t.Context(), limit)
	defer cancel()
	var records []*kgo.Record
	for len(records) < n {
		fetches := client.PollFetches(ctx)
		require.NoError(s.t, ctx.Err(), "%d of %d records in %s", len(records), n, topic)
		records = append(records, fetches.Records()...)
	}
	return records
}

func headerOf(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// point is the handler's effect.
func point(ctx context.Context, tx *sql.Tx, d *inbox.Delivery) error {
	_, err := tx.ExecContext(ctx, "INSERT INTO effect (msg_id, partition_no, record_offset) VALUES (?, ?, ?)", d.ID, d.Partition, d.Offset)
	if err != nil {
		return err
	}
	_, err = tx.ExecContext(ctx, "UPDATE account SET points = points + 1 WHERE id = "+strconv.Itoa(int(d.Partition)))
	return err
}

// end returns the offset of a partition's next record.
func (s *scene) end(partition int) int64 {
	s.t.Helper()
	req := kmsg.NewPtrListOffsetsRequest()
	req.ReplicaID = -1
	topic := kmsg.NewListOffsetsRequestTopic()
	topic.Topic = s.topic
	of := kmsg.NewListOffsetsRequestTopicPartition()
	of.Partition, of.Timestamp = int32(partition), -1 // the latest
	topic.Partitions = append(topic.Partitions, of)
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(s.t.Context(), s.client)
	require.NoError(s.t, err)
	require.Zero(s.t, resp.Topics[0].Partitions[0].ErrorCode)
	return resp.Topics[0].Partitions[0].Offset
}
