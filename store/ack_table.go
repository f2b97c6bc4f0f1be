package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

const defaultAckTable = "{table}_ack"

// ackTable is the table in which it is kept who has reported the messages of a table, as long as not all have.
func (c Config) ackTable(messages outbox.Table) outbox.Table {
	name := c.AckTable
	if name == "" {
		name = defaultAckTable
	}
	return outbox.Table{Database: messages.Database, Name: strings.ReplaceAll(name, "{table}", messages.Name)}
}

// minMsgID is the length of the pattern's msg_id.
const minMsgID = 64

// AckSchema returns the CREATE TABLE statement of the table that keeps who has reported, without a semicolon. msg_ids are
// compared byte by byte, whatever the message table does.
func AckSchema(table outbox.Table, msgIDLength int64) string {
	return "CREATE TABLE IF NOT EXISTS " + outbox.QuoteTable(table) + " (\n" +
		fmt.Sprintf("  `msg_id` VARCHAR(%d) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,\n", max(msgIDLength, minMsgID)) +
		"  `consumer_group` VARCHAR(255) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,\n" +
		"  `reported_at` DATETIME NOT NULL,\n" +
		"  PRIMARY KEY (`msg_id`, `consumer_group`)\n) ENGINE=InnoDB"
}

// addAckTable returns the statement that makes the ack table of a message table, none where no group has to be waited for.
func (c Config) addAckTable(messages outbox.Table, msgIDLength int64) []string {
	if !c.NeedAcks {
		return nil
	}
	return []string{AckSchema(c.ackTable(messages), msgIDLength) + ";"}
}

// missingAckTable is addAckTable where the table is not there yet.
func (c Config) missingAckTable(ctx context.Context, conn *sql.Conn, t *Table) ([]string, error) {
	if !c.NeedAcks {
		return nil, nil
	}
	there, err := tableExists(ctx, conn, c.ackTable(t.Table))
	if err != nil || there {
		return nil, err
	}
	return c.addAckTable(t.Table, t.cols[words.ColumnMsgID].Chars), nil
}

func tableExists(ctx context.Context, conn *sql.Conn, table outbox.Table) (bool, error) {
	found, err := mysql.ReadEngines(ctx, conn, table.Database, table.Name)
	return len(found) > 0, err
}

// grantAcks lets a user keep who has reported.
func (c Config) grantAcks(user string, messages []outbox.Table) []string {
	var statements []string
	for _, table := range messages {
		if c.NeedAcks {
			statements = append(statements, "GRANT SELECT, INSERT, DELETE ON "+outbox.QuoteTable(c.ackTable(table))+" TO "+mysql.Literal(user)+"@'%';")
		}
	}
	return statements
}

// ackTable checks the table that keeps who has reported, where one is needed.
func (i *inspection) ackTable(ctx context.Context, t *Table) error {
	if !i.cfg.NeedAcks {
		return nil
	}
	acks := i.cfg.ackTable(t.Table)
	check := "reports table " + acks.String()
	there, err := tableExists(ctx, i.conn, acks)
	if err != nil {
		return err
	}
	if !there {
		i.report.Fail(check, "it does not exist, or the user may not see it: a message that several groups have to report never becomes consumed",
			AckSchema(acks, t.cols[words.ColumnMsgID].Chars)+"; GRANT SELECT, INSERT, DELETE ON "+outbox.QuoteTable(acks)+" TO "+i.Account+";")
		return nil
	}
	i.report.OK(check, "it exists")
	name := outbox.QuoteTable(acks)
	for _, p := range []probe{
		{"SELECT", "SELECT msg_id,consumer_group,reported_at FROM " + name + " LIMIT 0", "no report of several groups can be counted"},
		// It inserts nothing, because it selects nothing.
		{"INSERT", "INSERT INTO " + name + " (msg_id,consumer_group,reported_at) SELECT '','',NOW() FROM (SELECT 1 AS one) AS nothing WHERE one=0", "no report of several groups can be kept"},
		{"DELETE", "DELETE FROM " + name + " WHERE 1=0", "reports that nobody waits for can't be forgotten"},
	} {
		if err := i.probe(ctx, acks, p); err != nil {
			return err
		}
	}
	return nil
}
