//go:build !unit

package outbox_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/rig"
)

// TestPutAllGoesInChunks, bounded by rows and by bytes, in the order given.
func TestPutAllGoesInChunks(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d, b := newDesk(t, srv), box(t, outbox.Config{})
		many := make([]outbox.Message, 1203)
		for i := range many {
			many[i] = outbox.Message{Topic: "orders", Body: i}
			if i%3 == 0 {
				many[i].Key, many[i].Headers = fmt.Sprint(i), map[string]string{"i": fmt.Sprint(i)}
			}
		}
		large := make([]outbox.Message, 40)
		for i := range large {
			large[i] = outbox.Message{Topic: "orders", Body: strings.Repeat("x", 60_000)}
		}
		tx := &counter{Tx: d.begin(t)}
		receipts, err := b.PutAll(t.Context(), tx, many)
		require.NoError(t, err)
		assert.Equal(t, []int{3, 1}, []int{tx.execs, tx.queries}, "500 rows a statement, and the question for the columns")
		more, err := b.PutAll(t.Context(), tx, large)
		require.NoError(t, err)
		assert.Equal(t, []int{6, 1}, []int{tx.execs, tx.queries}, "1 MiB a statement: 17 messages")
		none, err := b.PutAll(t.Context(), tx, nil)
		require.NoError(t, err)
		assert.Empty(t, none)
		require.NoError(t, tx.Commit())
		var want []string
		for _, r := range append(receipts, more...) {
			want = append(want, r.ID)
			assert.False(t, r.Duplicate)
		}
		assert.Equal(t, want, d.ids(t))
		assert.IsIncreasing(t, want, "ids that are made grow")
		assert.Equal(t, [][]string{{"401", "401"}}, d.rows(t,
			"SELECT COUNT(*), SUM(msg_key = msg_content AND JSON_UNQUOTE(JSON_EXTRACT(headers, '$.i')) = msg_content) FROM local_message WHERE msg_key IS NOT NULL"))
	})
}

// TestTextIsConvertedByTheServer: whatever the columns' character set, what is read in utf8mb4 is what was put; what the character set
// lacks is refused and not replaced.
func TestTextIsConvertedByTheServer(t *testing.T) {
	drivers(t, func(t *testing.T, srv *rig.Server, setup func(*mysql.Config)) {
		for charset, text := range map[string]string{"utf8mb4": "号 ä 😀 \u2028", "gbk": "号 订单", "latin1": "Größe ÿ", "utf16": "号 😀"} {
			opts := outbox.AllColumns()
			opts.Options = "DEFAULT CHARSET=" + charset
			d := newDeskWith(t, srv, outbox.Schema(outbox.Table{Name: plainTable}, opts), setup)
			b := box(t, outbox.Config{})
			m := outbox.Message{ID: text, Topic: "orders", Key: text, Body: []byte(`{"text":"` + text + `"}`), Headers: map[string]string{text: text}}
			d.put(t, b, m)
			assert.True(t, d.put(t, b, m)[0].Duplicate)
			assert.Equal(t, []outbox.Receipt{{ID: text, Duplicate: true}, {ID: text + "2"}}, d.putAll(t, b, m, outbox.Message{ID: text + "2", Topic: "orders", Body: 1}))
			assert.Equal(t, [][]string{{text, text, `{"text":"` + text + `"}`, `{"` + text + `":"` + text + `"}`}},
				d.rows(t, "SELECT msg_id, msg_key, msg_content, headers FROM local_message WHERE msg_key IS NOT NULL"), charset)
			if charset == "latin1" {
				tx := d.begin(t)
				_, err := b.Put(t.Context(), tx, outbox.Message{Topic: "orders", Body: "号"})
				require.Error(t, err)
				require.NoError(t, tx.Rollback())
			}
		}
	})
}

// TestNotBeforeInThreeTimeZones: the server's, the session's and the service's are all different. The relay compares with NOW()
// in the server's time zone.
func TestNotBeforeInThreeTimeZones(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(testing.TB, ...rig.Option) *rig.Server{"mysql": rig.MySQL, "mariadb": rig.MariaDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := start(t, rig.Args("--default-time-zone=+08:00"))
			for _, column := range []string{"DATETIME", "TIMESTAMP NULL"} {
				d, b := newDesk(t, srv), box(t, outbox.Config{})
				d.exec(t, "ALTER TABLE local_message MODIFY next_retry_time "+column)
				due := time.Now().Add(time.Hour).In(time.FixedZone("service", 3*3600))
				for _, zone := range []string{"+00:00", "-05:00", "+08:00"} {
					tx := d.begin(t)
					_, err := tx.ExecContext(t.Context(), "SET SESSION time_zone = ?", zone)
					require.NoError(t, err)
					_, err = b.Put(t.Context(), tx, outbox.Message{ID: zone, Topic: "orders", Body: 1, NotBefore: due})
					require.NoError(t, err)
					_, err = b.PutAll(t.Context(), tx, []outbox.Message{
						{ID: "all" + zone, Topic: "orders", Body: 1, NotBefore: due}, {ID: "past" + zone, Topic: "orders", Body: 1, NotBefore: time.Now()},
					})
					require.NoError(t, err)
					require.NoError(t, tx.Commit())
				}
				// The connections above keep their zones; the relay's have the server's.
				relay := &desk{DB: d.open(t), srv: srv, database: d.database}
				assert.Equal(t, [][]string{{"9", "6", "6"}}, relay.rows(t, `SELECT COUNT(*), COUNT(next_retry_time),
					SUM(next_retry_time BETWEEN FROM_UNIXTIME(?) AND FROM_UNIXTIME(?) + INTERVAL 1 SECOND) FROM local_message`, due.Unix(), due.Unix()), column)
			}
		})
	}
}
