//go:build !unit

package stories

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/oracle"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/harness"
)

// TestPutIsDelivered is the whole path: what outbox.Put has written in a service's transaction comes out of Kafka with its bytes, its
// key, its headers and its trace; what was rolled back does not, a repeated id comes once, and a delayed one not before its
// time.
func TestPutIsDelivered(t *testing.T) {
	t.Parallel()
	for name, start := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.NewScene(t, harness.Cast{SQL: start(t)})
			s.Start()
			const trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
			database, table, _ := strings.Cut(s.Tables[0], ".")
			box, err := outbox.New(outbox.Config{
				Table: outbox.Table{Database: database, Name: table}, TraceParent: func(context.Context) string { return trace },
			})
			require.NoError(t, err)
			due := time.Now().Add(3 * time.Second)
			write := func(messages []outbox.Message, end error) (receipts []outbox.Receipt) {
				err := outbox.Within(t.Context(), s.DB, func(ctx context.Context, tx *sql.Tx) error {
					for _, m := range messages {
						receipt, err := box.Put(ctx, tx, m)
						if err != nil {
							return err
						}
						receipts = append(receipts, receipt)
					}
					more, err := box.PutAll(ctx, tx, []outbox.Message{{Topic: s.Topics[1], Body: 1}, {Topic: s.Topics[1], Body: 2}})
					receipts = append(receipts, more...)
					return errors.Join(err, end)
				})
				require.ErrorIs(t, err, end)
				return receipts
			}
			body := ` {"order_id": 4711, "text": "` + "号 😀" + `"} `
			paid := outbox.Message{ID: "order-4711-paid", Topic: s.Topics[0], Key: "4711", Body: []byte(body), Headers: map[string]string{"tenant": "eu"}}
			write([]outbox.Message{{ID: "never", Topic: s.Topics[0], Body: 0}}, errRollback)
			write([]outbox.Message{paid, paid, {ID: "late", Topic: s.Topics[0], Body: 0, NotBefore: due}}, nil)
			write([]outbox.Message{paid}, nil)
			s.Seen(6, 30*time.Second)
			s.Quiet()

			records := s.Log.Records()
			require.Len(t, records, 6)
			byID := map[string]oracle.Record{}
			for _, r := range records {
				byID[r.MsgID] = r
			}
			got := byID[paid.ID]
			assert.Equal(t, []string{s.Topics[0], "4711", "eu", trace}, []string{got.Topic, got.Key, got.Headers["tenant"], got.Headers["traceparent"]})
			assert.Equal(t, oracle.HashOf([]byte(body)), got.Value)
			assert.NotContains(t, byID, "never")
			assert.False(t, byID["late"].Timestamp.Before(due.Truncate(time.Second)), "sent at %s, not before %s", byID["late"].Timestamp, due)
		})
	}
}

var errRollback = errors.New("rolled back on purpose")
