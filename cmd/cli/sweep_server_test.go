//go:build !unit

package cli_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

type swept struct {
	Swept              bool
	Sent, Failed, Dead int
	Due                []message
	Leader             struct{ Led bool }
}

// received consumes a topic until so many records have come.
func received(t *testing.T, kafka *rig.KafkaServer, topic string, n int) []string {
	t.Helper()
	var ids []string
	for _, r := range consumed(t, kafka, topic, n) {
		ids = append(ids, r.MsgID)
	}
	return ids
}

// Without a relay one pass sends everything that is due and marks it; what is not due or is impossible stays or dies.
func TestSweepOnce(t *testing.T) {
	flavors(t, func(t *testing.T, server *rig.Server) {
		kafka := rig.Kafka(t)
		s := newScene(t, server, kafka)
		topic := kafka.Topic(t, 1)
		s.insertMany("m", topic, 30)
		s.insert("retry", topic, "status=2, retry_count=1, next_retry_time=NOW()-INTERVAL 1 MINUTE")
		s.insert("later", topic, "next_retry_time=NOW()+INTERVAL 1 HOUR")
		s.insert("impossible", "bad topic", "")
		s.insert("nowhere", topic+"-none", "")

		var r swept
		s.json(&r, "sweep", "--dry-run")
		assert.False(t, r.Swept)
		assert.Len(t, r.Due, 20)
		r = swept{}
		s.json(&r, "sweep")
		assert.True(t, r.Swept)
		assert.Equal(t, 31, r.Sent)
		assert.Equal(t, 1, r.Failed)
		assert.Equal(t, 1, r.Dead)
		assert.Empty(t, r.Due)
		for name, want := range map[string]int{"m-029": 1, "retry": 1, "later": 0, "impossible": 4, "nowhere": 2} {
			status, _ := s.status(name)
			assert.Equal(t, want, status, name)
		}
		assert.Len(t, received(t, kafka, topic, 31), 31)
		assert.Contains(t, s.ok("messages", "show", "nowhere"), "It was refused 1 time")
		assert.Contains(t, s.ok("sweep"), "due      nothing")
	})
}

// A relay that leads sweeps by itself: nothing is sent from here, and its lock is left alone.
func TestSweepBesideARelay(t *testing.T) {
	t.Parallel()
	kafka := rig.Kafka(t)
	s := newScene(t, rig.MySQL(t), kafka)
	topic := kafka.Topic(t, 1)
	relay := s.lead()
	s.insert("far", topic, "status=2, next_retry_time=NOW()+INTERVAL 1 HOUR")
	o := s.run("sweep", "-o", "json")
	assert.Zero(t, o.code)
	assert.Contains(t, o.err, "sweeps every 30s by itself")
	var r swept
	decode(t, o.out, &r)
	assert.False(t, r.Swept)
	assert.True(t, r.Leader.Led)

	s.insert("a", topic, "")
	harness.Eventually(t, 20*time.Second, "row sent", func() (bool, string) {
		status, _ := s.status("a")
		return status == 1, ""
	})
	out := s.ok("status")
	assert.Contains(t, out, "role        leader")
	assert.Contains(t, out, "settled     binlog.")
	s.ok("healthcheck")
	code, _ := relay.Stop()
	assert.Zero(t, code)

	// With the relay gone, status tells what can be known from outside.
	o = s.run("status")
	assert.Zero(t, o.code, o.err)
	assert.Contains(t, o.err, "no running relay to ask")
	assert.Contains(t, o.out, "leader")
	assert.Contains(t, o.out, "checkpoint")
	assert.Contains(t, o.out, "0 pending, 1 failed, 0 dead")
	var outside struct {
		Running bool
		Sources []struct {
			Checkpoint struct{ Present bool }
		}
	}
	s.json(&outside, "status")
	assert.False(t, outside.Running)
	assert.True(t, outside.Sources[0].Checkpoint.Present)
}
