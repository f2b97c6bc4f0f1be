//go:build !unit

package store

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

func TestClaimTakesWhatIsStillDue(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Exec(t, "UPDATE "+d.Name()+" SET id=id")
		pending, failed := d.Insert(t, "pending", 0, "NULL"), d.Insert(t, "failed", 2, "NOW()")
		d.Exec(t, "UPDATE "+d.Name()+" SET msg_key='k', headers='{\"a\":\"b\"}', trace_parent='00-1', retry_count=3 WHERE msg_id='failed'")
		refs := []outbox.Ref{
			failed, pending, d.Insert(t, "delayed", 0, "NOW()+INTERVAL 1 HOUR"), d.Insert(t, "sent", 1, "NULL"),
			{Table: d.Table, ID: d.Insert(t, "another msg_id", 0, "NULL").ID, MsgID: "x"},
		}
		rows, err := d.Claim(t.Context(), refs, 30*time.Second)
		require.NoError(t, err)
		require.Equal(t, []string{"pending", "failed"}, msgIDs(rows), "by id")
		assert.Equal(t, `{"id":"failed"}`, string(rows[1].Content)) //nolint:testifylint // the bytes count, not their meaning
		assert.Equal(t, "k", string(rows[1].Key))
		assert.JSONEq(t, `{"a":"b"}`, string(rows[1].Headers))
		assert.Equal(t, "00-1", rows[1].TraceParent)
		assert.Equal(t, 3, rows[1].RetryCount)
		assert.Equal(t, outbox.Failed, rows[1].Status)
		assert.Nil(t, rows[0].Key)
		assert.Nil(t, rows[0].Headers)
		assert.Empty(t, rows[0].NextRetry)
		assert.NotEmpty(t, rows[1].NextRetry)
		assert.EqualValues(t, 2, d.One(t, "SELECT COUNT(*) FROM "+d.Name()+" WHERE TIMESTAMPDIFF(SECOND,NOW(),next_retry_time) BETWEEN 25 AND 30"))

		again, err := d.Claim(t.Context(), refs, 30*time.Second)
		require.NoError(t, err)
		assert.Empty(t, again, "a claimed row is nobody else's until the lease is over")
		require.NoError(t, d.Release(t.Context(), []outbox.Ref{failed}))
		again, err = d.Claim(t.Context(), refs, 30*time.Second)
		require.NoError(t, err)
		assert.Equal(t, []string{"failed"}, msgIDs(again))
	})
}

func TestS91TwoClaimersNeverTakeTheSameRow(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		const rows = 500
		refs := make([]outbox.Ref, rows)
		for i := range refs {
			refs[i] = d.Insert(t, fmt.Sprintf("m%d", i), 2, "NOW()")
		}
		stores := []*Store{d.Store, open(t, d.cfg), open(t, d.cfg)}
		var mu sync.Mutex
		taken := map[string]int{}
		var wg sync.WaitGroup
		for _, s := range stores {
			wg.Go(func() {
				for from := 0; from < rows; from += 50 {
					got, err := s.Claim(t.Context(), refs[from:from+50], 30*time.Second)
					if !assert.NoError(t, err) { //nolint:testifylint // require must not be called off the test's goroutine
						return
					}
					mu.Lock()
					for _, row := range got {
						taken[row.MsgID]++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		assert.Len(t, taken, rows)
		for msgID, n := range taken {
			assert.Equal(t, 1, n, msgID)
		}
	})
}

func TestS97ClaimsBlockNoWriter(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		refs := make([]outbox.Ref, 0, 200)
		for i := range 200 {
			refs = append(refs, d.Insert(t, fmt.Sprintf("m%d", i), 0, "NULL"))
		}
		// A writer that holds one of the rows, and never ends while the claim runs: it is skipped, not waited for.
		holder, err := d.DB.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = holder.ExecContext(t.Context(), fmt.Sprintf("UPDATE %s SET topic='held' WHERE id=%d", d.Name(), refs[100].ID))
		require.NoError(t, err)
		start := time.Now()
		rows, err := d.Claim(t.Context(), refs, time.Minute)
		require.NoError(t, err)
		assert.Len(t, rows, 199)
		assert.Less(t, time.Since(start), 2*time.Second)

		// The claim's transaction is over: nothing of it is open while the caller sends, and inserts pass at once,
		// into the very gaps between the claimed rows too.
		assert.Zero(t, rig.Transactions(t, d.DB, "trx_query LIKE '%"+d.Table.Database+"%'"))
		for _, s := range d.Sessions(t) {
			old := fmt.Sprintf("trx_started<NOW()-INTERVAL 1 SECOND AND trx_mysql_thread_id=%d", s.ID)
			assert.Zero(t, rig.Transactions(t, d.DB, old))
		}
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		_, err = d.DB.ExecContext(ctx, "INSERT INTO "+d.Name()+" (msg_id,topic,msg_content,status,create_time,update_time) VALUES ('new','t','{}',0,NOW(),NOW())")
		require.NoError(t, err)
		require.NoError(t, holder.Rollback())
	})
}

func TestS97WritersPassWhileAClaimIsOpen(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.Exec(t, "INSERT INTO "+d.Name()+" (id,msg_id,topic,msg_content,status,create_time,update_time) VALUES (10,'a','t','{}',0,NOW(),NOW()),(20,'c','t','{}',0,NOW(),NOW())")
		table := d.Tables()[0]
		require.NoError(t, d.work.Run(t.Context(), "claim", func(ctx context.Context, conn *sql.Conn) error {
			tx, err := conn.BeginTx(ctx, nil)
			require.NoError(t, err)
			rows, err := d.claimIn(ctx, tx, &table, []outbox.Ref{{Table: d.Table, ID: 10, MsgID: "a"}, {Table: d.Table, ID: 20, MsgID: "c"}, {Table: d.Table, ID: 15, MsgID: "b"}}, time.Minute, claimDue)
			require.NoError(t, err)
			require.Len(t, rows, 2)
			writer, err := d.DB.Conn(ctx)
			require.NoError(t, err)
			defer func() { require.NoError(t, writer.Close()) }()
			_, err = writer.ExecContext(ctx, "SET SESSION innodb_lock_wait_timeout=1; INSERT INTO "+d.Name()+
				" (id,msg_id,topic,msg_content,status,next_retry_time,create_time,update_time) VALUES (15,'b','t','{}',0,NULL,NOW(),NOW()),(30,'d','t','{}',0,NOW(),NOW(),NOW())")
			require.NoError(t, err, "no gap is locked, neither of the key nor of (status, next_retry_time)")
			require.NoError(t, tx.Rollback())
			return nil
		}))
	})
}

func TestClaimWithoutSkipLockedLeavesLockedRowsOut(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		refs := []outbox.Ref{d.Insert(t, "a", 0, "NULL"), d.Insert(t, "held", 0, "NULL"), d.Insert(t, "c", 0, "NULL"), d.Insert(t, "d", 0, "NULL")}
		d.mu.Lock()
		d.server = mysql.NewServer("5.7.44", "", "0")
		d.mu.Unlock()
		hasty, err := d.NewPool(mysql.Options{Size: 1, Hasty: true})
		require.NoError(t, err)
		d.work = hasty
		holder, err := d.DB.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = holder.ExecContext(t.Context(), "UPDATE "+d.Name()+" SET topic='held' WHERE msg_id='held'")
		require.NoError(t, err)
		rows, err := d.Claim(t.Context(), refs, time.Minute)
		require.NoError(t, err)
		assert.Equal(t, []string{"a", "c", "d"}, msgIDs(rows))
		require.NoError(t, holder.Rollback())
	})
}

func TestS101OneClockForWritingAndComparing(t *testing.T) {
	t.Parallel()
	for _, start := range []func(testing.TB, ...rig.Option) *rig.Server{rig.MySQL, rig.MariaDB} {
		for _, zone := range []string{"+08:00", "-05:00", "SYSTEM"} {
			t.Run(zone, func(t *testing.T) {
				t.Parallel()
				srv := start(t, rig.Args("--default-time-zone="+zone))
				d := newDesk(t, srv)
				ref := d.Insert(t, "m", 0, "NULL")
				began := time.Now()
				_, err := d.MarkFailed(t.Context(), []Failure{{Ref: ref, Delay: 3 * time.Second, MaxRetries: 5}})
				require.NoError(t, err)
				assert.Empty(t, d.candidates(t, Query{}), "not before its time")
				due, ok, err := d.NextDue(t.Context())
				require.NoError(t, err)
				require.True(t, ok)
				assert.WithinDuration(t, began.Add(3*time.Second), due, 2*time.Second)
				until(t, "the row becomes due", func() bool { return len(d.candidates(t, Query{Grace: time.Minute})) == 1 })
				assert.InDelta(t, 3, time.Since(began).Seconds(), 2)
				rows, err := d.Claim(t.Context(), []outbox.Ref{ref}, time.Minute)
				require.NoError(t, err)
				assert.Len(t, rows, 1)

				offset, err := d.Offset(t.Context())
				require.NoError(t, err)
				created, err := time.Parse(time.DateTime, rows[0].Created)
				require.NoError(t, err)
				assert.WithinDuration(t, time.Now().UTC().Add(-time.Minute), created.Add(-offset), 20*time.Second)
				_, oldest, err := d.Count(t.Context())
				require.NoError(t, err)
				assert.Zero(t, oldest, "the row is failed, not pending")
			})
		}
	}
}

func TestTimestampColumnsAreToldInUTC(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		create := "CREATE TABLE %s (id BIGINT PRIMARY KEY AUTO_INCREMENT, msg_id VARCHAR(64) NOT NULL UNIQUE, topic VARCHAR(64) NOT NULL, msg_content JSON NOT NULL," +
			" status TINYINT NOT NULL, retry_count INT DEFAULT 0, next_retry_time TIMESTAMP(3) NULL, create_time TIMESTAMP NULL, update_time TIMESTAMP(6) NULL, KEY k (status, next_retry_time, topic))"
		d := newDeskWith(t, srv, create)
		conn, err := d.DB.Conn(t.Context())
		require.NoError(t, err)
		// Written in UTC, so that the texts below are what the columns hold, whatever the zone of the server.
		_, err = conn.ExecContext(t.Context(), "SET SESSION time_zone='+00:00', sql_mode=''; INSERT INTO "+d.Name()+
			" (msg_id,topic,msg_content,status,next_retry_time,create_time,update_time) VALUES ('a','t','{\"a\":1}',0,'2025-10-26 00:30:00.250','2025-10-26 01:30:00',NULL),('b','t','[]',2,NULL,'0000-00-00 00:00:00',NULL)")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		rows := d.candidates(t, Query{Only: "t"})
		require.Len(t, rows, 2)
		assert.Equal(t, "2025-10-26 00:30:00.250", rows[0].NextRetry)
		assert.Equal(t, "2025-10-26 01:30:00", rows[0].Created)
		assert.Empty(t, rows[1].NextRetry)
		assert.Equal(t, "0000-00-00 00:00:00", rows[1].Created)
		assert.JSONEq(t, `{"a":1}`, string(rows[0].Content))
		assert.Equal(t, "k", d.Tables()[0].due)
	})
}
