//go:build !unit

package store

import (
	"context"
	"database/sql"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

func TestMarkSentIsGuarded(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		pending := d.Insert(t, "pending", 0, "NULL")
		failed := d.Insert(t, "failed", 2, "NOW()")
		done := map[string]int{"sent": 1, "consumed": 3, "dead": 4, "discarded": 5, "foreign": 9}
		refs := []outbox.Ref{pending, failed, {Table: d.Table, ID: 999, MsgID: "missing"}}
		for msgID, status := range done {
			refs = append(refs, d.Insert(t, msgID, status, "NULL"))
		}
		other := d.Insert(t, "reused id", 0, "NULL")
		refs = append(refs, outbox.Ref{Table: d.Table, ID: other.ID, MsgID: "the message before TRUNCATE"})

		changed, err := d.MarkSent(t.Context(), refs)
		require.NoError(t, err)
		assert.EqualValues(t, 2, changed)
		assert.Equal(t, 1, d.state(t, pending).Status)
		assert.Equal(t, 1, d.state(t, failed).Status)
		assert.Zero(t, d.state(t, other).Status)
		for msgID, status := range done {
			assert.Equal(t, status, d.state(t, outbox.Ref{MsgID: msgID}).Status, msgID)
		}
		assert.Zero(t, d.One(t, "SELECT COUNT(*) FROM "+d.Name()+" WHERE status=1 AND msg_id IN ('pending','failed') AND update_time<NOW()-INTERVAL 30 SECOND"),
			"update_time is written, though the column has no ON UPDATE")
	})
}

func TestMarkSentNeverPairsTheIDOfOneWithTheMsgIDOfAnother(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		a, b := d.Insert(t, "a", 0, "NULL"), d.Insert(t, "b", 0, "NULL")
		// What a REPLACE after a TRUNCATE can leave: both halves are known, but not together.
		crossed := []outbox.Ref{{Table: d.Table, ID: a.ID, MsgID: "b"}, {Table: d.Table, ID: b.ID, MsgID: "a"}}
		_, err := d.MarkSent(t.Context(), crossed)
		require.NoError(t, err)
		assert.Zero(t, d.state(t, a).Status)
		assert.Zero(t, d.state(t, b).Status)
	})
}

func TestS35UnsignedIDsOverTwoToThe63(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		create := strings.Replace(outbox.Schema(outbox.Table{Name: "X"}, outbox.AllColumns()), "`X`", "%s", 1)
		for _, tc := range []struct {
			kind string
			ids  []uint64
			text []string
		}{
			{"BIGINT UNSIGNED", []uint64{9223372036854775810, 18446744073709551614}, []string{"9223372036854775810", "18446744073709551614"}},
			{"BIGINT", []uint64{math.MaxUint64, 1 << 63}, []string{"-1", "-9223372036854775808"}},
		} {
			d := newDeskWith(t, srv, strings.Replace(create, "BIGINT PRIMARY KEY AUTO_INCREMENT", tc.kind+" PRIMARY KEY", 1))
			assert.Equal(t, tc.kind != "BIGINT", d.Tables()[0].Unsigned)
			var refs []outbox.Ref
			for i, id := range tc.ids {
				msgID := fmt.Sprintf("m%d", i)
				d.Exec(t, "INSERT INTO "+d.Name()+" (id,msg_id,topic,msg_content,status,create_time,update_time) VALUES ("+tc.text[i]+",'"+msgID+"','t','{}',0,NOW(),NOW())")
				refs = append(refs, outbox.Ref{Table: d.Table, ID: id, MsgID: msgID})
			}
			found, err := d.Lookup(t.Context(), refs)
			require.NoError(t, err)
			assert.Len(t, found, 2, tc.kind)
			rows, err := d.Claim(t.Context(), refs, 0)
			require.NoError(t, err)
			var ids []uint64
			for _, row := range rows {
				ids = append(ids, row.ID)
			}
			assert.ElementsMatch(t, tc.ids, ids, tc.kind)
			changed, err := d.MarkSent(t.Context(), refs)
			require.NoError(t, err)
			assert.EqualValues(t, 2, changed, tc.kind)
		}
	})
}

func TestS36MarkByMsgIDInAnyCharacterSet(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		for _, tc := range []struct{ charset, msgID, topic, content, stored string }{
			{"gbk", "中-1", "订单", `{"s":"中文"}`, "7B2273223A22D6D0CEC4227D"},
			{"latin1 COLLATE latin1_general_cs", "l1é", "café", `{"s":"é€"}`, "7B2273223A22E980227D"},
			{"utf8mb4", "😀", "t", `{"s":"😀'\\"}`, ""},
			{"ucs2", "中é", "t", `{"s":"中é"}`, ""},
		} {
			create := strings.Replace(outbox.Schema(outbox.Table{Name: "X"}, outbox.AllColumns()), "`X`", "%s", 1)
			d := newDeskWith(t, srv, create+" DEFAULT CHARSET="+tc.charset)
			d.Exec(t, "INSERT INTO "+d.Name()+" (msg_id,topic,msg_content,status,create_time,update_time) VALUES ("+
				mysql.Literal(tc.msgID)+","+mysql.Literal(tc.topic)+","+mysql.Literal(tc.content)+",0,NOW(),NOW())")
			if tc.stored != "" {
				require.EqualValues(t, 1, d.One(t, "SELECT COUNT(*) FROM "+d.Name()+" WHERE HEX(msg_content)='"+tc.stored+"'"), "the column holds its own bytes")
			}
			rows, err := d.Candidates(t.Context(), Query{})
			require.NoError(t, err)
			require.Len(t, rows, 1)
			assert.Equal(t, tc.msgID, rows[0].MsgID)
			assert.Equal(t, tc.topic, rows[0].Topic)
			assert.Equal(t, tc.content, string(rows[0].Content))
			assert.Len(t, d.candidates(t, Query{Only: tc.topic}), 1)
			assert.Empty(t, d.candidates(t, Query{Except: []string{tc.topic}}))

			refs := []outbox.Ref{rows[0].Ref()}
			found, err := d.Lookup(t.Context(), refs)
			require.NoError(t, err)
			assert.Contains(t, found, refs[0], tc.charset)
			table := d.Tables()[0]
			plan := d.Plan(t, "UPDATE "+table.From()+table.ByID()+" SET status=1 WHERE "+table.These(refs)+" AND status IN (0,2)")
			assert.Contains(t, plan, "PRIMARY", tc.charset)
			assert.NotContains(t, plan, `"ALL"`, tc.charset)
			changed, err := d.MarkSent(t.Context(), refs)
			require.NoError(t, err)
			assert.EqualValues(t, 1, changed, tc.charset)
		}
	})
}

func TestMarkSentOfABinaryMsgID(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		create := strings.Replace(outbox.Schema(outbox.Table{Name: "X"}, outbox.AllColumns()), "`X`", "%s", 1)
		d := newDeskWith(t, srv, strings.Replace(create, "`msg_id` VARCHAR(64)", "`msg_id` VARBINARY(64)", 1))
		d.Exec(t, "INSERT INTO "+d.Name()+" (msg_id,topic,msg_content,status,create_time,update_time) VALUES (X'00FF2780C0','t','{}',0,NOW(),NOW())")
		changed, err := d.MarkSent(t.Context(), []outbox.Ref{{Table: d.Table, ID: 1, MsgID: "\x00\xff\x27\x80\xc0"}})
		require.NoError(t, err)
		assert.EqualValues(t, 1, changed)
	})
}

func TestS39ZeroAndPartialDates(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		conn, err := d.DB.Conn(t.Context())
		require.NoError(t, err)
		_, err = conn.ExecContext(t.Context(), "SET SESSION sql_mode=''; INSERT INTO "+d.Name()+
			" (msg_id,topic,msg_content,status,next_retry_time,create_time,update_time) VALUES"+
			" ('zero','t','{}',0,'0000-00-00 00:00:00','2026-00-10 00:00:00','0000-00-00'), ('zero2','t','{}',0,NULL,'0000-00-00 00:00:00','2026-00-00')")
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		fine := d.Insert(t, "fine", 0, "NULL")

		rows, err := d.Candidates(t.Context(), Query{Grace: 5 * time.Second})
		require.NoError(t, err)
		assert.ElementsMatch(t, []string{"zero", "zero2", "fine"}, msgIDs(rows))
		byID := map[string]outbox.Row{}
		refs := make([]outbox.Ref, len(rows))
		for i, row := range rows {
			byID[row.MsgID], refs[i] = row, row.Ref()
		}
		assert.Equal(t, "0000-00-00 00:00:00", byID["zero"].NextRetry)
		assert.Equal(t, "2026-00-10 00:00:00", byID["zero"].Created)
		_, _, err = d.NextDue(t.Context())
		require.NoError(t, err)
		_, _, err = d.Count(t.Context())
		require.NoError(t, err)
		listed, err := d.List(t.Context(), Filter{})
		require.NoError(t, err)
		assert.Len(t, listed, 3)

		zero2 := byID["zero2"]
		claimed, err := d.Claim(t.Context(), refs, 30*time.Second)
		require.NoError(t, err)
		assert.Len(t, claimed, 3)
		_, err = d.MarkFailed(t.Context(), []Failure{{Ref: zero2.Ref(), Error: "no", MaxRetries: 3}})
		require.NoError(t, err)
		require.NoError(t, d.Release(t.Context(), refs))
		_, err = d.MarkSent(t.Context(), refs)
		require.NoError(t, err)
		assert.Equal(t, 1, d.state(t, fine).Status)
		assert.EqualValues(t, 3, d.One(t, "SELECT COUNT(*) FROM "+d.Name()+" WHERE status=1"))
		assert.EqualValues(t, 1, d.One(t, "SELECT COUNT(*) FROM "+d.Name()+" WHERE msg_id='zero' AND CONCAT(create_time)='2026-00-10 00:00:00'"), "create_time is the user's")
	})
}

func TestS96ZeroRowsAffected(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		for _, foundRows := range []bool{false, true} {
			d := newDesk(t, srv, func(c *Config) { c.foundRows = foundRows })
			ref := d.Insert(t, "twice", 0, "NULL")
			for range 2 {
				_, err := d.MarkSent(t.Context(), []outbox.Ref{ref})
				require.NoError(t, err)
				assert.Equal(t, 1, d.state(t, ref).Status)
			}
			dead := d.Insert(t, "failing", 0, "NULL")
			for range 2 {
				require.NoError(t, d.Defer(t.Context(), []outbox.Ref{dead}))
			}
			rows, err := d.Claim(t.Context(), []outbox.Ref{dead}, 0)
			require.NoError(t, err)
			assert.Len(t, rows, 1, "a claim that does not move next_retry_time within the second is a claim")
			gone, err := d.MarkFailed(t.Context(), []Failure{{Ref: dead, MaxRetries: 5}, {Ref: ref, MaxRetries: 0}})
			require.NoError(t, err)
			assert.Empty(t, gone)
			assert.Equal(t, state{Status: 2, Retries: 1, HasNext: true}, d.state(t, dead))
		}
	})
}

func TestMarkFailedCountsAndBuries(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		ref := d.Insert(t, "m", 0, "NULL")
		d.Exec(t, "UPDATE "+d.Name()+" SET retry_count=NULL")
		fail := func() []outbox.Ref {
			dead, err := d.MarkFailed(t.Context(), []Failure{{Ref: ref, Delay: 90 * time.Second, Error: "broker's \\ 'no' 😀", MaxRetries: 2}})
			require.NoError(t, err)
			return dead
		}
		assert.Empty(t, fail())
		assert.Equal(t, state{Status: 2, Retries: 1, HasNext: true, LastError: "broker's \\ 'no' 😀"}, d.state(t, ref))
		assert.EqualValues(t, 1, d.One(t, "SELECT COUNT(*) FROM "+d.Name()+" WHERE TIMESTAMPDIFF(SECOND,NOW(),next_retry_time) BETWEEN 85 AND 90"))
		assert.Empty(t, fail())
		assert.Equal(t, []outbox.Ref{ref}, fail(), "two retries are allowed, the third failure is one too many")
		assert.Equal(t, state{Status: 4, Retries: 3, LastError: "broker's \\ 'no' 😀"}, d.state(t, ref))
		assert.Empty(t, fail(), "nobody but a person moves a dead letter")
		assert.Equal(t, 3, d.state(t, ref).Retries)
	})
}

func TestMarkFailedTriedAgainAfterALostAnswer(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		table := d.Tables()[0]
		failures := []Failure{
			{Ref: d.Insert(t, "alive", 0, "NULL"), MaxRetries: 5},
			{Ref: d.Insert(t, "dying", 2, "NULL"), MaxRetries: 0},
			{Ref: d.Insert(t, "long dead", 4, "NULL"), MaxRetries: 0},
		}
		for i := range failures {
			failures[i].Memory = new(Memory)
		}
		for range 2 {
			require.NoError(t, d.work.Run(t.Context(), "fail", func(ctx context.Context, conn *sql.Conn) error {
				return mysql.Transact(ctx, conn, func(tx *sql.Tx) error {
					dead, err := d.failIn(ctx, tx, &table, failures)
					assert.Equal(t, []outbox.Ref{failures[1].Ref}, dead)
					return err
				})
			}))
			assert.Equal(t, 1, d.state(t, failures[0].Ref).Retries, "one failure counts once")
			assert.Equal(t, 1, d.state(t, failures[1].Ref).Retries)
			assert.Equal(t, 0, d.state(t, failures[2].Ref).Retries)
		}
	})
}

// The caller hears of an error although the failure is in the table, and asks again. With a memory it counts once.
func TestMarkFailedRepeatedByTheCaller(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		alive := Failure{Ref: d.Insert(t, "alive", 0, "NULL"), MaxRetries: 5, Memory: new(Memory)}
		dying := Failure{Ref: d.Insert(t, "dying", 2, "NULL"), MaxRetries: 0, Memory: new(Memory)}
		gone := Failure{Ref: d.Insert(t, "consumed", 3, "NULL"), MaxRetries: 0, Memory: new(Memory)}
		for range 3 {
			dead, err := d.MarkFailed(t.Context(), []Failure{alive, dying, gone})
			require.NoError(t, err)
			assert.Equal(t, []outbox.Ref{dying.Ref}, dead)
		}
		assert.Equal(t, 1, d.state(t, alive.Ref).Retries)
		assert.Equal(t, state{Status: 4, Retries: 1}, d.state(t, dying.Ref))
		assert.Equal(t, state{Status: 3}, d.state(t, gone.Ref))

		next := alive
		next.Memory = new(Memory)
		_, err := d.MarkFailed(t.Context(), []Failure{next})
		require.NoError(t, err)
		assert.Equal(t, 2, d.state(t, alive.Ref).Retries, "another failure counts")
	})
}

func TestMarkDeadKeepsTheReason(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		a, sent := d.Insert(t, "a", 0, "NOW()"), d.Insert(t, "sent", 1, "NULL")
		long := strings.Repeat("é", 3000)
		require.NoError(t, d.MarkDead(t.Context(), []Failure{{Ref: a, Error: long}, {Ref: sent, Error: "no"}}))
		assert.Equal(t, state{Status: 4, LastError: strings.Repeat("é", 1024)}, d.state(t, a))
		assert.Equal(t, state{Status: 1}, d.state(t, sent))
	})
}

func TestOwnStatusNumbersAndColumnNames(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		columns := outbox.DefaultColumns()
		columns.Status, columns.NextRetryTime, columns.ID, columns.MsgID = "State", "due at", "seq", "uuid"
		create := strings.Replace(outbox.Schema(outbox.Table{Name: "X"}, outbox.SchemaOptions{Columns: columns}), "`X`", "%s", 1)
		d := newDeskWith(t, srv, create, func(c *Config) { c.Columns, c.Statuses = columns, outbox.Statuses{10, 11, 12, 13, 14, 15} })
		d.Exec(t, "INSERT INTO "+d.Name()+" (uuid,topic,msg_content,State,create_time,update_time) VALUES ('a','t','{}',10,NOW(),NOW()),('b','t','{}',0,NOW(),NOW()),('c','t','{}',10,NOW(),NOW())")
		rows := d.candidates(t, Query{})
		require.Equal(t, []string{"a", "c"}, msgIDs(rows))
		assert.Equal(t, outbox.Pending, rows[0].Status)
		_, err := d.MarkSent(t.Context(), []outbox.Ref{rows[0].Ref()})
		require.NoError(t, err)
		_, err = d.MarkFailed(t.Context(), []Failure{{Ref: rows[1].Ref(), Error: "has no column to go to", MaxRetries: 1}})
		require.NoError(t, err)
		assert.EqualValues(t, 11, d.One(t, "SELECT State FROM "+d.Name()+" WHERE uuid='a'"))
		assert.EqualValues(t, 12, d.One(t, "SELECT State FROM "+d.Name()+" WHERE uuid='c'"))
	})
}

func TestMarkSentWaitsForARowThatIsNotReadableYet(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		tx, err := d.DB.BeginTx(t.Context(), nil)
		require.NoError(t, err)
		_, err = tx.ExecContext(t.Context(), "INSERT INTO "+d.Name()+" (id,msg_id,topic,msg_content,status,create_time,update_time) VALUES (7,'late','t','{}',0,NOW(),NOW())")
		require.NoError(t, err)
		ref := outbox.Ref{Table: d.Table, ID: 7, MsgID: "late"}
		found, err := d.Lookup(t.Context(), []outbox.Ref{ref})
		require.NoError(t, err)
		require.Empty(t, found, "a SELECT does not see it")
		marked := make(chan error, 1) // the one result of the goroutine
		go func() {
			_, err := d.MarkSent(t.Context(), []outbox.Ref{ref})
			marked <- err
		}()
		// The server gives the same answer again when it is asked within 0.1 s.
		require.Eventually(t, func() bool {
			return rig.Transactions(t, d.DB, "trx_state='LOCK WAIT' AND trx_query LIKE '%"+d.Table.Database+"%'") > 0
		}, 20*time.Second, 250*time.Millisecond, "the mark waits for the lock")
		require.NoError(t, tx.Commit())
		require.NoError(t, <-marked)
		assert.Equal(t, 1, d.state(t, ref).Status)
	})
}

func TestMarkingSurvivesItsConnectionBeingKilled(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		ref := d.Insert(t, "a", 0, "NULL")
		require.NoError(t, d.Defer(t.Context(), []outbox.Ref{ref}))
		sessions := d.Sessions(t)
		require.NotEmpty(t, sessions)
		for _, s := range sessions {
			d.Exec(t, fmt.Sprintf("KILL %d", s.ID))
		}
		_, err := d.MarkSent(t.Context(), []outbox.Ref{ref})
		require.NoError(t, err)
		assert.Equal(t, 1, d.state(t, ref).Status)
	})
}
