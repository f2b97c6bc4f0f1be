package statement

import (
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/outbox-relay/mysql"
)

func TestParseStatement(t *testing.T) {
	for text, want := range map[string]Statement{
		"BEGIN":                                  {Kind: Begin},
		"begin":                                  {Kind: Begin},
		"START TRANSACTION":                      {Kind: Begin},
		"COMMIT":                                 {Kind: Commit},
		"/* x */ commit":                         {Kind: Commit},
		"ROLLBACK":                               {Kind: Rollback},
		"ROLLBACK /* xid=3 */":                   {Kind: Rollback},
		"SAVEPOINT `We ird``x`":                  {Kind: Savepoint, Name: "we ird`x"},
		"savepoint S1":                           {Kind: Savepoint, Name: "s1"},
		"ROLLBACK TO `S1`":                       {Kind: RollbackTo, Name: "s1"},
		"ROLLBACK TO SAVEPOINT s1":               {Kind: RollbackTo, Name: "s1"},
		"ROLLBACK WORK TO s1":                    {Kind: RollbackTo, Name: "s1"},
		"ROLLBACK TO savepoint":                  {Kind: RollbackTo, Name: "savepoint"},
		"RELEASE SAVEPOINT s1":                   {Kind: Release, Name: "s1"},
		"XA START X'31',X'',1":                   {Kind: XAStart, Name: "X'31',X'',1"},
		"XA END X'31',X'',1":                     {Kind: XAEnd, Name: "X'31',X'',1"},
		"XA COMMIT X'31',X'',1":                  {Kind: XACommit, Name: "X'31',X'',1"},
		"XA ROLLBACK X'31',X'',1":                {Kind: XARollback, Name: "X'31',X'',1"},
		"# line\n-- another\nINSERT INTO x":      {Kind: Write},
		"/* never closed":                        {Kind: Other},
		"# never ended":                          {Kind: Other},
		"/*!50003 ALTER TABLE x */":              {Kind: Other},
		"TRUNCATE x":                             {Kind: Other},
		"":                                       {Kind: Other},
		"\x00\xff":                               {Kind: Other},
		"SET STATEMENT a=1 FOR INSERT INTO msg ": {Kind: Write},
	} {
		require.Equal(t, want, Parse([]byte(text)), "%q", text)
	}
}

func TestMentions(t *testing.T) {
	p, err := mysql.ParsePatterns([]string{"app.msg", `shop./msg_\d+/`})
	require.NoError(t, err)
	for text, want := range map[string]Mention{
		"ALTER TABLE msg ADD x":                                     {Table: true, Name: true},
		"ALTER TABLE `msg` ADD x":                                   {Table: true, Name: true},
		"ALTER TABLE app.msg":                                       {Table: true, Name: true},
		"ALTER TABLE `app` . `msg`":                                 {Table: true, Name: true},
		"ALTER TABLE elsewhere.msg":                                 {Name: true},
		"RENAME TABLE a TO shop.msg_12, b TO c":                     {Table: true, Name: true},
		"RENAME TABLE a TO shop.msg_12x":                            {},
		"CREATE TABLE `shop`.`orders` (a INT)":                      {},
		"CREATE TABLE shop . orders LIKE shop.b":                    {},
		"DROP DATABASE shop":                                        {Name: true},
		"DROP DATABASE `shop` /* for good */":                       {Name: true},
		"ALTER TABLE msg2":                                          {},
		"INSERT INTO x VALUES ('msg', 'it''s msg')":                 {},
		"INSERT INTO x VALUES ('a\\'', msg)":                        {Table: true, Name: true},
		"/* msg */ ALTER TABLE x -- msg\n":                          {},
		"/*!50003 ALTER TABLE msg */":                               {Table: true, Name: true},
		"INSERT INTO x VALUES ('never closed msg":                   {},
		"ALTER TABLE x EXCHANGE PARTITION p WITH TABLE `app`.`msg`": {Table: true, Name: true},
	} {
		require.Equal(t, want, Mentions(p, []byte(text), "app"), "%q", text)
	}
}

func TestStatementsNeverPanic(t *testing.T) {
	p, err := mysql.ParsePatterns([]string{"app.msg"})
	require.NoError(t, err)
	rapid.Check(t, func(rt *rapid.T) {
		text := []byte(rapid.StringOf(rapid.RuneFrom([]rune("msgapp.`\"'\\/*-#! \nXA"))).Draw(rt, "text"))
		Parse(text)
		Mentions(p, text, "app")
	})
}
