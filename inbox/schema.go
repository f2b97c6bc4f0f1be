package inbox

// SchemaOptions says how the table is made.
type SchemaOptions struct {
	// Table is the name, consumed_message by default, or database.name.
	Table string
	// IfNotExists makes the statement harmless where the table exists.
	IfNotExists bool
	// Options follows the closing bracket, such as "ENGINE=InnoDB".
	Options string
}

// Schema returns the CREATE TABLE statement of the table, without a semicolon, for MySQL and MariaDB.
//
// The primary key is what makes a message's second delivery a duplicate. Group and id are compared byte by byte: in a
// case-insensitive collation "A1" would pass for "a1" and be lost. topic, partition_no and record_offset are for people
// and may be NULL. consumed_at is in UTC, whatever the session's time zone is. The index is Purge's.
func Schema(opts SchemaOptions) string {
	table := opts.Table
	if table == "" {
		table = defaultTable
	}
	create := "CREATE TABLE "
	if opts.IfNotExists {
		create += "IF NOT EXISTS "
	}
	statement := create + quoteTable(table) + ` (
  consumer_group VARCHAR(128) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  msg_id VARCHAR(64) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NOT NULL,
  topic VARCHAR(249) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin NULL,
  partition_no INT NULL,
  record_offset BIGINT NULL,
  consumed_at DATETIME(3) NOT NULL,
  PRIMARY KEY (consumer_group, msg_id),
  KEY idx_group_consumed (consumer_group, consumed_at)
)`
	if opts.Options != "" {
		statement += " " + opts.Options
	}
	return statement
}
