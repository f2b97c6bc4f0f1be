//go:build !unit

package stories

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/demo/workload"
	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// gated is a scene with a topic that does not exist yet. Only its coming makes the relay try it again within the test.
type gated struct {
	*harness.Scene
	t    *testing.T
	late string
}

func newGated(t *testing.T) *gated {
	t.Helper()
	s := harness.NewScene(t, harness.Cast{Topics: 1, Missing: 1})
	s.Set("retry.backoff", []string{"1h"})
	return &gated{Scene: s, t: t, late: s.Missing[0]}
}

// write commits so many rows of the keys that all runs of the scene share.
func (g *gated) write(prefix string, rows int) {
	g.t.Helper()
	g.writing(prefix, func(cfg *workload.Config) { cfg.Rows = rows })()
}

func (g *gated) writing(prefix string, change func(*workload.Config)) (finish func() workload.Stats) {
	g.t.Helper()
	return g.Writing(func(cfg *workload.Config) {
		cfg.Writers, cfg.Keys, cfg.Prefix, cfg.KeyPrefix = 4, 5, prefix, "k"
		change(cfg)
	})
}

// first has the topic found missing by the row that is its oldest by id, too: ids commit out of order, and the oldest by id is
// what the sweeper tries.
func (g *gated) first() {
	g.t.Helper()
	g.Post(g.DB, harness.Letter{ID: "first", Topic: g.late, Key: "first"})
	harness.Eventually(g.t, 20*time.Second, "the first is tried", func() (bool, string) {
		return g.Statuses()[2] == 1, fmt.Sprint(g.Statuses())
	})
}

// create makes the topic.
func (g *gated) create() {
	g.t.Helper()
	g.Cast.Kafka.CreateTopic(g.t, g.late, 3, nil)
}

// closed waits until the table tells the whole of it: the topic's oldest row has failed once and says why, the others of the
// topic are deferred and have spent nothing, and everything else is sent.
func (g *gated) closed() {
	g.t.Helper()
	harness.Eventually(g.t, 20*time.Second, "one tried, the others deferred", func() (bool, string) {
		tried := g.Number("SELECT COUNT(*) FROM "+g.Tables[0]+" WHERE topic = ? AND status = 2 AND retry_count = 1 AND next_retry_time > NOW() AND last_error LIKE '%does not exist%'", g.late)
		deferred := g.Number("SELECT COUNT(*) FROM "+g.Tables[0]+" WHERE topic = ? AND status = 0 AND retry_count = 0 AND next_retry_time IS NOT NULL", g.late)
		all := g.Number("SELECT COUNT(*) FROM "+g.Tables[0]+" WHERE topic = ?", g.late)
		waiting := g.Number("SELECT COUNT(*) FROM "+g.Tables[0]+" WHERE topic <> ? AND (status <> 1 OR retry_count > 0)", g.late)
		return tried == 1 && deferred > 0 && tried+deferred == all && waiting == 0,
			fmt.Sprintf("%d tried and %d deferred of %d, %d of other topics wait", tried, deferred, all, waiting)
	})
}

// TestGateClosesDefersDrainsAndHandsBack: a topic that does not exist costs one try and holds nobody else up. It comes while
// its keys are being written: what waited goes first, and then the topic is the stream's again.
func TestGateClosesDefersDrainsAndHandsBack(t *testing.T) {
	t.Parallel()
	g := newGated(t)
	relay := g.Start()
	g.first()
	g.write("a", 1500)
	g.closed()
	finish := g.writing("b", func(cfg *workload.Config) { cfg.Rate = 400 })
	g.Committed(200)
	g.create()
	g.Committed(800)
	relay.WaitLog(20*time.Second, "topic open again") // handed back while it is written to
	finish()
	v := g.Exact(30*time.Second, oracle.Options{Retries: true})
	assert.Positive(t, v.Swept)
	assert.Zero(t, g.Number("SELECT COUNT(*) FROM "+g.Tables[0]+" WHERE retry_count > 1"), "nothing was tried twice in vain")
	g.Post(g.DB, harness.Letter{ID: "afterwards", Topic: g.late, Key: "k"})
	g.Exact(20*time.Second, oracle.Options{Retries: true})
	at := slices.IndexFunc(g.Log.Records(), func(r oracle.Record) bool { return r.MsgID == "afterwards" })
	require.GreaterOrEqual(t, at, 0)
	assert.NotEqual(t, "sweep", g.Log.Records()[at].Headers["outbox_position"], "the topic is the stream's again")
}

// TestGateIsRebuiltAtStart: the relay ends while rows of a topic wait in the table. By the time it is back the topic is there,
// and newer messages of the same keys are in the stream: they wait behind the older ones.
func TestGateIsRebuiltAtStart(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*harness.Relay){"SIGTERM": func(r *harness.Relay) { r.Stop() }, "SIGKILL": (*harness.Relay).Kill} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGated(t)
			relay := g.Start()
			g.first()
			g.write("a", 1000)
			g.closed()
			end(relay)
			g.create()
			g.Exec(g.DB, "UPDATE "+g.Tables[0]+" SET next_retry_time = NOW() WHERE status = 2") // its time has come meanwhile
			finish := g.writing("b", func(cfg *workload.Config) { cfg.Rate = 400 })
			g.Committed(100)
			g.Start()
			g.Committed(400)
			finish()
			v := g.Exact(30*time.Second, oracle.Options{Retries: true})
			assert.Positive(t, v.Swept)
		})
	}
}

// TestStrictAndRelaxed: a topic comes that many messages of a few keys wait for. With order: strict new ones of the keys wait
// behind those; with relaxed they are sent at once. Neither loses or copies anything.
func TestStrictAndRelaxed(t *testing.T) {
	t.Parallel()
	for _, order := range []string{"strict", "relaxed"} {
		t.Run(order, func(t *testing.T) {
			t.Parallel()
			g := newGated(t)
			g.Set("router.order", order, "sweep.batch", 50)
			g.Start()
			g.first()
			g.write("a", 3000)
			g.closed()
			finish := g.writing("b", func(cfg *workload.Config) { cfg.Rate = 400 })
			g.Committed(100)
			g.create()
			g.Committed(800)
			finish()
			v := g.Judge(30*time.Second, oracle.Options{Retries: true})
			if order == "relaxed" {
				assert.Positive(t, v.Count(oracle.Inverted), "new messages pass those that wait")
				v.Faults = slices.DeleteFunc(v.Faults, func(f oracle.Fault) bool { return f.Kind == oracle.Inverted })
			}
			require.NoError(t, v.Err())
		})
	}
}

// TestPartitionWithoutALeader: the only broker that has a topic's partitions dies while the topic is pipelined. The topic is
// closed before its messages have filled the window for long; they spend no retries, and go out in order when the broker is
// back. The other topic does not wait longer than that takes.
func TestPartitionWithoutALeader(t *testing.T) {
	t.Parallel()
	kafka := rig.Kafka(t, rig.KafkaBrokers(2))
	s := harness.NewScene(t, harness.Cast{Kafka: kafka, Topics: 1})
	steady, stuck := s.Topics[0]+"-steady", s.Topics[0]+"-stuck"
	kafka.CreateTopicOn(t, 0, steady, 3)
	kafka.CreateTopicOn(t, 1, stuck, 3)
	s.Consume(steady, stuck)
	s.Set("limits.in_flight", 400, "retry.backoff", []string{"1s"})
	relay := s.Start()
	write := func(topic, prefix string) (finish func() workload.Stats) {
		return s.Writing(func(cfg *workload.Config) {
			cfg.Topics, cfg.Prefix, cfg.Rate, cfg.Writers = []string{topic}, prefix, 100, 2
		})
	}
	finishSteady, finishStuck := write(steady, "steady"), write(stuck, "stuck")
	s.Committed(200)
	kafka.Broker(t, 1).Kill(t)
	begun := time.Now()
	harness.Eventually(t, time.Minute, "the topic is closed", func() (bool, string) { return closedTopic(relay, stuck) })
	assert.Contains(t, relay.Log(), "a record got no answer for long", "closed because of what did not come back")
	took := time.Since(begun)
	s.Committed(400)
	harness.Eventually(t, 20*time.Second, "one waits in the table, the other flows on", func() (bool, string) {
		deferred := s.Number("SELECT COUNT(*) FROM "+s.Tables[0]+" WHERE topic = ? AND status = 0 AND next_retry_time IS NOT NULL", stuck)
		waiting := s.Number("SELECT COUNT(*) FROM "+s.Tables[0]+" WHERE topic = ? AND status <> 1 AND create_time < NOW() - INTERVAL 3 SECOND", steady)
		return waiting == 0 && deferred > 0, fmt.Sprintf("%d deferred, %d of the other topic wait", deferred, waiting)
	})
	closed, detail := closedTopic(relay, stuck)
	assert.True(t, closed, detail)
	assert.Zero(t, s.Number("SELECT SUM(retry_count) + SUM(status = 2) FROM "+s.Tables[0]), "nobody can say that a message has failed")
	kafka.Broker(t, 1).Start(t)
	s.Committed(200)
	finishSteady()
	finishStuck()
	// What was on its way to the broker when it died has an unknown outcome.
	v := s.Exact(time.Minute, oracle.Options{Duplicates: true})
	assert.LessOrEqual(t, v.Duplicates, 400, "no more than was in flight")
	waited := oracle.LatencyOfRun(s.Ledger, s.Log.Records(), "steady")
	t.Logf("closed %s after the broker died; the other topic from commit to consumed: %+v; %d copies", took.Round(time.Second), waited, v.Duplicates)
	assert.Less(t, waited.Max, 35*time.Second)
}

// closedTopic tells whether a topic is the only one that is closed.
func closedTopic(r *harness.Relay, topic string) (closed bool, detail string) {
	code, body := r.Fetch("/api/v1/status")
	var status struct {
		Sources []struct {
			Status struct {
				Closed []struct{ Name, State string } `json:"closed_topics"`
			}
		}
	}
	if err := json.Unmarshal([]byte(body), &status); err != nil || len(status.Sources) != 1 {
		return false, fmt.Sprint(code, " ", err, " ", body)
	}
	list := status.Sources[0].Status.Closed
	return len(list) == 1 && list[0].Name == topic && list[0].State == "closed", fmt.Sprint(list)
}
