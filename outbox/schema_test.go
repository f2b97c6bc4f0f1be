package outbox_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/outbox"
)

func TestSchemaIsThePatternsTableByDefault(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "CREATE TABLE `app`.`local_message` (\n"+
		"  `id` BIGINT PRIMARY KEY AUTO_INCREMENT,\n"+
		"  `msg_id` VARCHAR(64) NOT NULL,\n"+
		"  `topic` VARCHAR(64) NOT NULL,\n"+
		"  `msg_content` TEXT NOT NULL,\n"+
		"  `status` TINYINT NOT NULL,\n"+
		"  `retry_count` INT DEFAULT 0,\n"+
		"  `next_retry_time` DATETIME,\n"+
		"  `create_time` DATETIME NOT NULL,\n"+
		"  `update_time` DATETIME NOT NULL,\n"+
		"  UNIQUE KEY `uk_msg_id` (`msg_id`),\n"+
		"  KEY `idx_status_retry` (`status`, `next_retry_time`)\n"+
		")", outbox.Schema(outbox.Table{Database: "app", Name: "local_message"}, outbox.SchemaOptions{}))
}

func TestSchemaWithEverything(t *testing.T) {
	t.Parallel()
	opts := outbox.AllColumns()
	opts.IfNotExists, opts.Options = true, "ENGINE=InnoDB"
	sql := outbox.Schema(outbox.Table{Name: "m"}, opts)
	assert.True(t, strings.HasPrefix(sql, "CREATE TABLE IF NOT EXISTS `m` (\n"), sql)
	assert.True(t, strings.HasSuffix(sql, "\n) ENGINE=InnoDB"), sql)
	for _, column := range []string{"`msg_key` VARCHAR(255) NULL", "`headers` TEXT NULL", "`last_error` VARCHAR(1024) NULL", "`trace_parent` VARCHAR(64) NULL"} {
		assert.Contains(t, sql, "  "+column+",\n")
	}
}

func TestSchemaOptionalColumnsAreChosenOneByOne(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		opts outbox.SchemaOptions
		has  string
	}{
		{outbox.SchemaOptions{Key: true}, "msg_key"},
		{outbox.SchemaOptions{Headers: true}, "headers"},
		{outbox.SchemaOptions{LastError: true}, "last_error"},
		{outbox.SchemaOptions{Trace: true}, "trace_parent"},
	} {
		sql := outbox.Schema(outbox.Table{Name: "m"}, tc.opts)
		for _, column := range outbox.OptionalColumns(outbox.DefaultColumns()) {
			assert.Equal(t, column.Name == tc.has, strings.Contains(sql, "`"+column.Name+"`"), "%s in %s", column.Name, sql)
		}
	}
}

func TestSchemaTakesOtherNames(t *testing.T) {
	t.Parallel()
	columns := outbox.DefaultColumns()
	columns.Status, columns.NextRetryTime, columns.MsgID, columns.Key = "state", "due`at", "uuid", ""
	sql := outbox.Schema(outbox.Table{Name: "we`ird"}, outbox.SchemaOptions{Columns: columns, Key: true})
	assert.Contains(t, sql, "CREATE TABLE `we``ird`")
	assert.Contains(t, sql, "KEY `idx_status_retry` (`state`, `due``at`)")
	assert.Contains(t, sql, "UNIQUE KEY `uk_uuid` (`uuid`)")
	assert.NotContains(t, sql, "VARCHAR(255)", "a column without a name is not made")
}
