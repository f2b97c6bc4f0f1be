//go:build !unit

package stories

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/test/harness"
	"example.com/outbox-relay/test/rig"
)

// TestThreeTimeZones: the server's, the relay's and the writers' time zones are all different. Retries and delayed
// messages come at their time by the database's clock.
func TestThreeTimeZones(t *testing.T) {
	t.Setenv("TZ", "America/New_York") // the relay's; this is why the test is not parallel
	scenes := map[string]*harness.Scene{}
	for name, server := range map[string]*rig.Server{
		"MySQL":   rig.MySQL(t, rig.Args("--default-time-zone=+08:00")),
		"MariaDB": rig.MariaDB(t, rig.Args("--default-time-zone=+08:00")),
	} {
		s := harness.NewScene(t, harness.Cast{SQL: server, Missing: 1})
		scenes[name] = s
		s.Set("retry.backoff", []string{"3s"}, "retry.jitter", 0)
		s.Start()
		writer := s.Session("SET SESSION time_zone = '+08:00'")
		now := time.Now().Truncate(time.Second)
		for i := range 4 {
			s.Post(writer, harness.Letter{ID: fmt.Sprintf("delayed-%d", i), Due: now.Add(time.Duration(2+i) * time.Second)})
		}
		s.Post(writer, harness.Letter{ID: "fails", Topic: s.Missing[0], Key: "k"})
	}
	for name, s := range scenes {
		tried := s.Number("SELECT retry_count FROM " + s.Tables[0] + " WHERE msg_id = 'fails'")
		eventually(t, 10*time.Second, "a failure counted", func() bool {
			return s.Number("SELECT retry_count FROM "+s.Tables[0]+" WHERE msg_id = 'fails'") > tried
		})
		left := s.Number("SELECT TIMESTAMPDIFF(SECOND, NOW(), next_retry_time) FROM " + s.Tables[0] + " WHERE msg_id = 'fails'")
		assert.InDelta(t, 3, left, 2, "%s: the next try", name)
		s.Cast.Kafka.CreateTopic(t, s.Missing[0], 1, nil)
		s.Exact(20*time.Second, oracle.Options{Retries: true, Tolerance: 1500 * time.Millisecond})
	}
}
