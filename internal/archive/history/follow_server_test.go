//go:build !unit

package history

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
	"example.com/outbox-relay/test/fixture"
	"example.com/outbox-relay/test/rig"
)

// A table with all that makes copying hard: ids that do not fit a signed column, a character set of its own, a comment
// that looks like DDL, defaults, invisible and generated columns, fractions of seconds, zero dates.
const oddTable = "CREATE TABLE %s (id BIGINT UNSIGNED PRIMARY KEY AUTO_INCREMENT, msg_id VARCHAR(64) NOT NULL, topic VARCHAR(64) CHARACTER SET latin1 NOT NULL," +
	" msg_content MEDIUMTEXT NOT NULL COMMENT 'it''s AUTO_INCREMENT, \\n `x` text', status TINYINT NOT NULL, retry_count INT DEFAULT 0, next_retry_time DATETIME," +
	" create_time DATETIME(3) NOT NULL, update_time DATETIME(6) NOT NULL, `we``ird` VARCHAR(9) DEFAULT 'a, b', big DECIMAL(30,10), note ENUM('AUTO_INCREMENT','b')," +
	" twice INT GENERATED ALWAYS AS (retry_count*2) VIRTUAL, kept INT GENERATED ALWAYS AS (retry_count*3) STORED, hidden INT DEFAULT 7 INVISIBLE, bits BIT(5), raw VARBINARY(9)," +
	" UNIQUE KEY uk (msg_id), KEY idx_status_retry (status, next_retry_time), KEY k (kept)) AUTO_INCREMENT=77 COMMENT='x AUTO_INCREMENT=5' DEFAULT CHARSET=utf8mb4"

// contents reads every column of the table's, hidden ones too, as text.
func (d *desk) contents(t *testing.T, table string) []string {
	t.Helper()
	return d.Texts(t, "SELECT CONCAT_WS('|',id,msg_id,topic,HEX(msg_content),status,retry_count,next_retry_time,create_time,update_time,COALESCE(`we``ird`,'NULL'),"+
		"COALESCE(big,'NULL'),COALESCE(note,'NULL'),twice,kept,hidden,bits+0,HEX(raw)) FROM "+table+" ORDER BY id")
}

func TestMoveKeepsEveryColumn(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDeskWith(t, srv, oddTable)
		d.mayAlter(t)
		d.Exec(t, "INSERT INTO "+d.Name()+" (id,msg_id,topic,msg_content,status,retry_count,create_time,update_time,big,note,hidden,bits,raw) VALUES "+
			"(18446744073709551614,'m1','é','{\"s\":\"中文😀\"}',3,2,'2020-01-02 03:04:05.678','2020-01-02 03:04:05.678901',12345678901234567890.0123456789,'b',9,5,X'00FF27'),"+
			"(9223372036854775810,'m2','t','',3,NULL,'2020-01-02 03:04:05','2020-01-02 03:04:05',NULL,NULL,NULL,NULL,NULL)")
		conn, err := d.DB.Conn(t.Context())
		require.NoError(t, err)
		defer func() { _ = conn.Close() }()
		for _, statement := range []string{
			"SET SESSION sql_mode='NO_AUTO_VALUE_ON_ZERO,ALLOW_INVALID_DATES'",
			"INSERT INTO " + d.Name() + " (id,msg_id,topic,msg_content,status,next_retry_time,create_time,update_time) VALUES (0,'zero','t','z',3,'0000-00-00','2020-00-10','0000-00-00')",
		} {
			_, err := conn.ExecContext(t.Context(), statement)
			require.NoError(t, err)
		}
		before := d.contents(t, d.Name())
		n, err := d.Move(t.Context(), d.Table, []uint64{18446744073709551614, 9223372036854775810, 0})
		require.NoError(t, err)
		assert.Equal(t, 3, n)
		assert.Equal(t, before, d.contents(t, d.history()))
		assert.Empty(t, d.contents(t, d.Name()))
		created := d.texts2(t, "SHOW CREATE TABLE "+d.history())
		assert.NotContains(t, strings.ReplaceAll(strings.ReplaceAll(created, "'AUTO_INCREMENT'", ""), "AUTO_INCREMENT, ", ""), "AUTO_INCREMENT,", "%s", created)
		assert.Contains(t, created, "x AUTO_INCREMENT=5", "comments stay")
	})
}

// texts2 reads the second column of a query's only row.
func (d *desk) texts2(t *testing.T, query string) string {
	t.Helper()
	var first, second string
	require.NoError(t, d.DB.QueryRowContext(t.Context(), query).Scan(&first, &second))
	return second
}

// Columns that are added follow before the next batch, whatever they are; each row keeps its values.
func TestHistoryFollowsNewColumns(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.mayAlter(t)
		first := d.Insert(t, "first", 3, "NULL")
		d.old(t)
		require.Equal(t, 1, d.move(t, first))
		d.Exec(t, "ALTER TABLE "+d.Name()+" ADD COLUMN shard INT NOT NULL DEFAULT 4, ADD COLUMN lang VARCHAR(20) CHARACTER SET latin1, ADD COLUMN twice INT GENERATED ALWAYS AS (shard*2) VIRTUAL, ADD COLUMN h INT DEFAULT 1 INVISIBLE")
		second := d.Insert(t, "second", 3, "NULL")
		d.Exec(t, "UPDATE "+d.Name()+" SET shard=9, lang='é', h=5")
		d.old(t)
		require.Equal(t, 1, d.move(t, second))
		assert.Equal(t, []string{"first|4|NULL|8|1", "second|9|é|18|5"},
			d.Texts(t, "SELECT CONCAT_WS('|',msg_id,shard,COALESCE(lang,'NULL'),twice,h) FROM "+d.history()+" ORDER BY id"))
	})
}

// What can't be followed stops archiving with the statement that helps, and nothing is lost.
func TestHistoryThatCannotFollow(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.mayAlter(t)
		ref := d.Insert(t, "m", 3, "NULL")
		d.old(t)
		require.NoError(t, d.Follow(t.Context(), d.Table))
		refused := func(because string) {
			t.Helper()
			_, err := d.Move(t.Context(), d.Table, idsOf(ref))
			require.ErrorIs(t, err, ErrHistory)
			require.ErrorContains(t, err, because)
			assert.Equal(t, []string{"m"}, d.Texts(t, "SELECT msg_id FROM "+d.Name()))
			assert.Empty(t, d.Texts(t, "SELECT msg_id FROM "+d.history()))
		}
		d.Exec(t, "ALTER TABLE "+d.Name()+" MODIFY COLUMN topic VARCHAR(100) NOT NULL")
		refused("column topic is varchar(100) utf8mb4, and the history's is varchar(64) utf8mb4; run: ALTER TABLE")
		d.Exec(t, "ALTER TABLE "+d.history()+" MODIFY COLUMN topic VARCHAR(200) NOT NULL")
		d.Exec(t, "ALTER TABLE "+d.history()+" MODIFY COLUMN update_time DATE NOT NULL")
		refused("column update_time is datetime, and the history's is date")
		d.Exec(t, "ALTER TABLE "+d.history()+" MODIFY COLUMN update_time DATETIME NOT NULL, MODIFY COLUMN msg_content TEXT CHARACTER SET latin1 NOT NULL")
		refused("msg_content is text utf8mb4, and the history's is text latin1")
		d.Exec(t, "ALTER TABLE "+d.history()+" MODIFY COLUMN msg_content TEXT CHARACTER SET utf8mb4 NOT NULL, ADD COLUMN gone INT NOT NULL")
		refused("column gone of the history is not in the table")
		d.Exec(t, "ALTER TABLE "+d.history()+" DROP COLUMN gone, ADD COLUMN spare INT NULL, ENGINE=MyISAM")
		_, err := d.Move(t.Context(), outbox.Table{Database: d.Table.Database, Name: "nowhere"}, []uint64{1})
		require.ErrorIs(t, err, mysql.ErrGone)
		err = d.Follow(t.Context(), d.Table)
		require.ErrorIs(t, err, ErrHistory)
		require.ErrorContains(t, err, "it is MyISAM and not InnoDB")
		d.Exec(t, "ALTER TABLE "+d.history()+" ENGINE=InnoDB, ADD UNIQUE KEY (msg_id)")
		d.Exec(t, "INSERT INTO "+d.history()+" SET id=5000, msg_id='m', topic='', msg_content='', status=3, create_time=NOW(), update_time=NOW()")
		_, err = d.Move(t.Context(), d.Table, idsOf(ref))
		require.ErrorIs(t, err, ErrHistory)
		require.ErrorContains(t, err, "it already has a row of this id or msg_id")
		d.Exec(t, "DELETE FROM "+d.history())
		assert.Equal(t, 1, d.move(t, ref), "after all that")
	})
}

func TestHistoryWithoutPrivilegesTellsTheStatement(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		ref := d.Insert(t, "m", 3, "NULL")
		d.old(t)
		_, err := d.Move(t.Context(), d.Table, idsOf(ref))
		require.ErrorIs(t, err, mysql.ErrPrivilege)
		_, statement, ok := strings.Cut(err.Error(), "or: ")
		require.True(t, ok, err)
		d.Exec(t, strings.TrimSuffix(statement, ";"))
		assert.Equal(t, 1, d.move(t, ref), "what it told helps")
		report, err := store.Inspect(t.Context(), d.config)
		require.NoError(t, err)
		for _, f := range report.Findings {
			assert.NotEqual(t, "failure", f.Level.String(), "%+v", f)
		}
		d.Exec(t, "ALTER TABLE "+d.history()+" DROP COLUMN topic")
		d.Exec(t, "REVOKE DELETE ON "+mysql.Identifier(d.Table.Database)+".* FROM '"+d.config.User+"'@'%'")
		report, err = store.Inspect(t.Context(), d.config)
		require.NoError(t, err)
		text := fmt.Sprintf("%+v", report.Findings)
		assert.Contains(t, text, "delete privilege on")
		assert.Contains(t, text, "ADD COLUMN `topic` varchar(64)")
	})
}

// Ids come again after a TRUNCATE, msg_ids after a resend: both are archived beside what is there.
func TestIDsThatComeAgainAreArchivedAgain(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.mayAlter(t)
		for range 2 {
			ref := d.Insert(t, "same", 3, "NULL")
			d.old(t)
			require.Equal(t, 1, d.move(t, ref))
			d.Exec(t, "TRUNCATE "+d.Name())
		}
		assert.Equal(t, []string{"1|same", "1|same"}, d.Texts(t, "SELECT CONCAT_WS('|',id,msg_id) FROM "+d.history()))
	})
}

// A pattern that matches histories too does not make them message tables. A table that only looks like one is told.
func TestHistoriesAreNoMessageTables(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		database := mysql.Identifier(d.Table.Database)
		for _, name := range []string{"local_message_1", "local_message_2"} {
			d.Exec(t, "CREATE TABLE "+database+"."+name+" LIKE "+d.Name())
		}
		d.mayAlter(t)
		cfg := d.config
		cfg.Tables = []string{d.Table.Database + `./local_message_\w+/`}
		rows, s := open(t, cfg)
		for _, table := range s.Tables() {
			require.NoError(t, s.Follow(t.Context(), table))
		}
		require.NoError(t, rows.Refresh(t.Context()))
		var names []string
		for _, table := range s.Tables() {
			names = append(names, table.Name)
		}
		assert.Equal(t, []string{"local_message_1", "local_message_2"}, names)
		assert.Equal(t, []string{"local_message", "local_message_1", "local_message_1_history", "local_message_2", "local_message_2_history"},
			d.Texts(t, "SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA="+mysql.Literal(d.Table.Database)+" ORDER BY 1"))
		d.Exec(t, "CREATE TABLE "+database+".local_message_3 LIKE "+d.Name())
		d.Exec(t, "CREATE TABLE "+database+".local_message_3_history LIKE "+d.Name())
		err := rows.Refresh(t.Context())
		require.ErrorIs(t, err, mysql.ErrSchema)
		require.ErrorContains(t, err, "local_message_3_history is what archive.table calls a history")
	})
}

// A stream that reads old binlog again learns of archived rows that they were sent.
func TestLookupFindsArchivedRows(t *testing.T) {
	fixture.Both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		d.mayAlter(t)
		ref := d.Insert(t, "m", 3, "NULL")
		gone := outbox.Ref{Table: d.Table, ID: ref.ID, MsgID: "another"}
		found, err := d.rows.Lookup(t.Context(), []outbox.Ref{ref, gone})
		require.NoError(t, err, "without a history")
		assert.Equal(t, map[outbox.Ref]store.Found{ref: {Status: outbox.Consumed}}, found)
		d.old(t)
		require.Equal(t, 1, d.move(t, ref))
		found, err = d.rows.Lookup(t.Context(), []outbox.Ref{ref, gone})
		require.NoError(t, err)
		assert.Equal(t, map[outbox.Ref]store.Found{ref: {Status: outbox.Consumed}}, found)
	})
}
