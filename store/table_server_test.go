//go:build !unit

package store

import (
	"testing"
	"time"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

// tryOpen opens a store that may fail.
func (d *desk) tryOpen(t *testing.T, tables ...string) (names []string, err error) {
	t.Helper()
	cfg := d.cfg
	cfg.Tables = tables
	s, err := Open(t.Context(), cfg, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	for _, table := range s.Tables() {
		names = append(names, table.Name)
	}
	return names, s.Close()
}

func TestS41NamesAreAnchoredAndLookAlikesAreNot(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		database := mysql.Identifier(d.Table.Database)
		for _, name := range []string{"local_message_bak", "xlocal_message", "local_message_1", "local_message_22", "`lösch`"} {
			d.Exec(t, "CREATE TABLE "+database+"."+name+" LIKE "+d.Name())
		}
		d.Exec(t, "CREATE VIEW "+database+".local_message_3 AS SELECT * FROM "+d.Name())
		for pattern, want := range map[string][]string{
			"local_message":                  {"local_message"},
			`/local_message_\d+/`:            {"local_message_1", "local_message_22"},
			`/local_message|xlocal_message/`: {"local_message", "xlocal_message"},
			"lösch":                          {"lösch"},
		} {
			names, err := d.tryOpen(t, d.Table.Database+"."+pattern)
			require.NoError(t, err, pattern)
			assert.Equal(t, want, names, pattern)
		}
		names, err := d.tryOpen(t, "/"+d.Table.Database+"/.local_message", d.Table.Database+"./local_message/")
		require.NoError(t, err)
		assert.Equal(t, []string{"local_message"}, names, "one table is one table, however often it is named")

		_, err = d.tryOpen(t, d.Table.Database+".local_mesage")
		require.ErrorIs(t, err, ErrGone)
		require.ErrorContains(t, err, "did you mean "+d.Table.Database+".local_message")
		_, err = d.tryOpen(t, d.Table.Database+"x.local_message")
		require.ErrorIs(t, err, ErrGone)
		require.ErrorContains(t, err, "did you mean "+d.Table.Database+"?")
		_, err = d.tryOpen(t, d.Table.Database+".local_message", d.Table.Database+".zzz")
		require.ErrorContains(t, err, ".zzz", "one table that matches does not hide one that does not")
		_, err = d.tryOpen(t, d.Table.Database+".Local_Message")
		require.ErrorIs(t, err, ErrGone, "this server minds case")
		require.ErrorContains(t, err, d.Table.Database+".local_message")
	})
}

func TestS41CaseDoesNotMatterWhereTheServerSaysSo(t *testing.T) {
	t.Parallel()
	for _, start := range []func(testing.TB, ...rig.Option) *rig.Server{rig.MariaDB} {
		srv := start(t, rig.Args("--lower-case-table-names=1"))
		d := newDesk(t, srv)
		names, err := d.tryOpen(t, d.Table.Database+".Local_Message", "/"+d.Table.Database+"/./LOCAL_MESSAGE/")
		require.NoError(t, err)
		assert.Equal(t, []string{"local_message"}, names)
		ref := d.Insert(t, "a", 0, "NULL")
		ref.Table.Name = "Local_Message"
		changed, err := d.MarkSent(t.Context(), []outbox.Ref{ref})
		require.NoError(t, err)
		assert.EqualValues(t, 1, changed)
	}
}

func TestS33NeededColumnMissing(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		ref := d.Insert(t, "a", 0, "NULL")
		d.Exec(t, "ALTER TABLE "+d.Name()+" RENAME COLUMN topic TO topic_name")
		_, err := d.Candidates(t.Context(), Query{})
		require.ErrorIs(t, err, ErrSchema)
		err = d.Refresh(t.Context())
		require.ErrorIs(t, err, ErrSchema)
		require.ErrorContains(t, err, d.Table.String()+" has no column topic (did you mean topic_name?)")
		require.ErrorContains(t, err, "source.columns.topic")
		assert.Zero(t, d.state(t, ref).Status)
		d.Exec(t, "ALTER TABLE "+d.Name()+" RENAME COLUMN topic_name TO topic")
		assert.Len(t, d.candidates(t, Query{}), 1, "it goes on after the repair")

		d.Exec(t, "ALTER TABLE "+d.Name()+" DROP COLUMN next_retry_time")
		_, err = d.tryOpen(t, d.Table.String())
		require.ErrorContains(t, err, "next_retry_time")
		d.Exec(t, "ALTER TABLE "+d.Name()+" ADD COLUMN next_retry_time BIGINT")
		_, err = d.tryOpen(t, d.Table.String())
		require.ErrorContains(t, err, "next_retry_time of "+d.Table.String()+" is BIGINT")
		require.ErrorContains(t, err, "change it to DATETIME")
	})
}

func TestS31InvisibleColumnsAndAnIDThatIsNotThePrimaryKey(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		create := "CREATE TABLE %s (my_row_id BIGINT UNSIGNED NOT NULL AUTO_INCREMENT PRIMARY KEY, id BIGINT NOT NULL, msg_id VARCHAR(64) NOT NULL," +
			" topic VARCHAR(64) NOT NULL, msg_content TEXT NOT NULL, status TINYINT NOT NULL, retry_count INT DEFAULT 0, next_retry_time DATETIME, last_error TEXT INVISIBLE," +
			" create_time DATETIME NOT NULL, update_time DATETIME NOT NULL, KEY (status, next_retry_time))"
		d := newDeskWith(t, srv, create)
		d.Exec(t, "INSERT INTO "+d.Name()+" (my_row_id,id,msg_id,topic,msg_content,status,create_time,update_time) VALUES (5,77,'a','t','{}',0,NOW(),NOW())")
		assert.True(t, d.Tables()[0].HasLastError)
		assert.Empty(t, d.Tables()[0].primary)
		rows := d.candidates(t, Query{})
		require.Len(t, rows, 1)
		assert.EqualValues(t, 77, rows[0].ID)
		changed, err := d.MarkSent(t.Context(), []outbox.Ref{rows[0].Ref()})
		require.NoError(t, err)
		assert.EqualValues(t, 1, changed)
	})
}

func TestRefreshFindsNewShardsAndColumns(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		create := outbox.Schema(outbox.Table{Name: "X"}, outbox.SchemaOptions{})
		d := newDeskWith(t, srv, "CREATE TABLE %s"+create[len("CREATE TABLE `X`"):])
		cfg := d.cfg
		cfg.Tables = []string{d.Table.Database + `./local_message\d*/`}
		s := open(t, cfg)
		table := s.Tables()[0]
		assert.False(t, table.HasLastError || table.HasKey || table.HasHeaders || table.HasTrace)
		d.Exec(t, "CREATE TABLE "+mysql.Identifier(d.Table.Database)+".local_message2 LIKE "+d.Name())
		d.Exec(t, "ALTER TABLE "+d.Name()+" ADD COLUMN LAST_ERROR TEXT, ADD COLUMN msg_key BIGINT")
		require.NoError(t, s.Refresh(t.Context()))
		require.Len(t, s.Tables(), 2)
		assert.True(t, s.Tables()[0].HasLastError)
		assert.True(t, s.Tables()[0].HasKey)

		d.Exec(t, "DROP TABLE "+d.Name())
		_, err := s.MarkSent(t.Context(), []outbox.Ref{{Table: d.Table, ID: 1, MsgID: "a"}})
		require.ErrorIs(t, err, ErrGone)
		_, err = s.MarkSent(t.Context(), []outbox.Ref{{Table: outbox.Table{Database: "no", Name: "such"}, ID: 1, MsgID: "a"}})
		require.ErrorIs(t, err, ErrGone)
	})
}

func TestMarkAfterAColumnWasDroppedUsesTheNewShape(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		ref := d.Insert(t, "a", 0, "NULL")
		d.Exec(t, "ALTER TABLE "+d.Name()+" DROP COLUMN last_error")
		_, err := d.MarkFailed(t.Context(), []Failure{{Ref: ref, Error: "no", Delay: time.Second, MaxRetries: 3}})
		require.NoError(t, err)
		assert.EqualValues(t, 2, d.One(t, "SELECT status FROM "+d.Name()))
		assert.False(t, d.Tables()[0].HasLastError)
	})
}

func TestOpenSaysWhatIsWrong(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		wrong := d.cfg
		wrong.Password = "canary-secret"
		_, err := Open(t.Context(), wrong, zerolog.Nop())
		require.ErrorIs(t, err, ErrPrivilege)
		assert.NotContains(t, err.Error(), "canary")
		nobody := d.cfg
		nobody.Addr = "127.0.0.1:1"
		_, err = Open(t.Context(), nobody, zerolog.Nop())
		require.ErrorIs(t, err, ErrUnreachable)
		require.ErrorContains(t, err, "127.0.0.1:1")
	})
}
