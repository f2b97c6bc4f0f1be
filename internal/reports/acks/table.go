package acks

import (
	"context"
	"database/sql"
	"fmt"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// minMsgID is the length of the pattern's msg_id.
const minMsgID = 64

// Schema returns the CREATE TABLE statement of the table that keeps who has reported, without a semicolon. msg_ids are
// compared byte by byte, whatever the message table does.
func Schema(table outbox.Table, msgIDLength int64) string {
	return "CREATE TABLE IF NOT EXISTS " + outbox.QuoteTable(table) + " (\n" +
		fmt.Sprintf("  `msg_id` VARCHAR(%d) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,\n", max(msgIDLength, minMsgID)) +
		"  `consumer_group` VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,\n" +
		"  `reported_at` DATETIME NOT NULL,\n" +
		"  PRIMARY KEY (`msg_id`, `consumer_group`)\n) ENGINE=InnoDB"
}

// Missing returns the statement that makes the ack table of a table, none where it is there or nobody needs it.
func (c Config) Missing(ctx context.Context, conn *sql.Conn, t *store.Table, _ bool) ([]string, error) {
	if !c.Needed {
		return nil, nil
	}
	there, err := tableExists(ctx, conn, c.of(t.Table))
	if err != nil || there {
		return nil, err
	}
	return []string{Schema(c.of(t.Table), t.Column(words.ColumnMsgID).Chars) + ";"}, nil
}

// MissingOfNew returns the statement that makes the ack table of a table that is yet to be made.
func (c Config) MissingOfNew(table outbox.Table) []string {
	if !c.Needed {
		return nil
	}
	return []string{Schema(c.of(table), 0) + ";"}
}

func tableExists(ctx context.Context, conn *sql.Conn, table outbox.Table) (bool, error) {
	found, err := mysql.ReadEngines(ctx, conn, table.Database, table.Name)
	return len(found) > 0, err
}

// Grants lets an account keep who has reported.
func (c Config) Grants(account string, tables []outbox.Table, _ bool) []string {
	if !c.Needed {
		return nil
	}
	statements := make([]string, len(tables))
	for i, table := range tables {
		statements[i] = "GRANT SELECT, INSERT, DELETE ON " + outbox.QuoteTable(c.of(table)) + " TO " + account + ";"
	}
	return statements
}

// Inspect checks the ack table of a table, where one is needed.
func (c Config) Inspect(ctx context.Context, i *store.Inspection, t *store.Table) error {
	if !c.Needed {
		return nil
	}
	acks := c.of(t.Table)
	check := "reports table " + acks.String()
	there, err := tableExists(ctx, i.Conn, acks)
	if err != nil {
		return err
	}
	if !there {
		i.Report.Fail(check, "it does not exist, or the user may not see it: a message that several groups have to report never becomes consumed",
			Schema(acks, t.Column(words.ColumnMsgID).Chars)+"; GRANT SELECT, INSERT, DELETE ON "+outbox.QuoteTable(acks)+" TO "+i.Account+";")
		return nil
	}
	i.Report.OK(check, "it exists")
	name := outbox.QuoteTable(acks)
	for _, p := range []store.Probe{
		{Privilege: "SELECT", Statement: "SELECT msg_id,consumer_group,reported_at FROM " + name + " LIMIT 0", Without: "no report of several groups can be counted"},
		// It inserts nothing, because it selects nothing.
		{Privilege: "INSERT", Statement: "INSERT INTO " + name + " (msg_id,consumer_group,reported_at) SELECT '','',NOW() FROM (SELECT 1 AS one) AS nothing WHERE one=0", Without: "no report of several groups can be kept"},
		{Privilege: "DELETE", Statement: "DELETE FROM " + name + " WHERE 1=0", Without: "reports that nobody waits for can't be forgotten"},
	} {
		if err := i.Probe(ctx, acks, p); err != nil {
			return err
		}
	}
	return nil
}
