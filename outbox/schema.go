package outbox

import "strings"

// SchemaOptions says what the table gets beyond the pattern's own columns.
type SchemaOptions struct {
	// Columns gives the names; the zero value means DefaultColumns. An optional column is made only when asked for below.
	Columns Columns
	// Key adds the column of the Kafka key, Headers the one of the record's headers, LastError the one in which the relay
	// keeps why a message could not be sent, and Trace the one of the W3C traceparent. BodyRef adds the one that tells where a
	// staged body lies; the body itself then stays out of the database.
	Key, Headers, LastError, Trace, BodyRef bool
	// IfNotExists makes the statement harmless where the table exists.
	IfNotExists bool
	// Options follows the closing bracket, such as "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4".
	Options string
}

// AllColumns returns options that ask for every optional column of a table that holds its bodies.
func AllColumns() SchemaOptions {
	return SchemaOptions{Key: true, Headers: true, LastError: true, Trace: true}
}

// Schema returns the CREATE TABLE statement of a local message table, without a semicolon. With zero options it is exactly
// the pattern's table. The name goes without its database when table has none.
func Schema(table Table, opts SchemaOptions) string {
	c := opts.Columns
	if c == (Columns{}) {
		c = DefaultColumns()
	}
	lines := []string{
		quote(c.ID) + " BIGINT PRIMARY KEY AUTO_INCREMENT",
		quote(c.MsgID) + " VARCHAR(64) NOT NULL",
		quote(c.Topic) + " VARCHAR(64) NOT NULL",
		quote(c.Content) + " TEXT NOT NULL",
		quote(c.Status) + " TINYINT NOT NULL",
		quote(c.RetryCount) + " INT DEFAULT 0",
		quote(c.NextRetryTime) + " DATETIME",
		quote(c.CreateTime) + " DATETIME NOT NULL",
		quote(c.UpdateTime) + " DATETIME NOT NULL",
	}
	for _, extra := range OptionalColumns(c) {
		if opts.wants(extra.Name, c) {
			lines = append(lines, extra.Definition())
		}
	}
	if opts.BodyRef {
		lines = append(lines, OptionalColumn{Name: c.BodyRef, Type: bodyRefType}.Definition())
	}
	lines = append(lines,
		"UNIQUE KEY "+quote("uk_"+c.MsgID)+" ("+quote(c.MsgID)+")",
		"KEY "+quote("idx_status_retry")+" ("+quote(c.Status)+", "+quote(c.NextRetryTime)+")")
	create := "CREATE TABLE "
	if opts.IfNotExists {
		create += "IF NOT EXISTS "
	}
	statement := create + QuoteTable(table) + " (\n  " + strings.Join(lines, ",\n  ") + "\n)"
	if opts.Options != "" {
		statement += " " + opts.Options
	}
	return statement
}

func (o SchemaOptions) wants(name string, c Columns) bool {
	switch name {
	case c.Key:
		return o.Key
	case c.Headers:
		return o.Headers
	case c.LastError:
		return o.LastError
	case c.Trace:
		return o.Trace
	}
	return false
}

// OptionalColumn is a column that the relay uses where the table has it.
type OptionalColumn struct {
	Name string
	// Type is its SQL type, which always allows NULL.
	Type string
}

// Definition returns the column as CREATE TABLE and ADD COLUMN take it.
func (c OptionalColumn) Definition() string { return quote(c.Name) + " " + c.Type + " NULL" }

// OptionalColumns returns the columns beyond the pattern's own, under the names given; those without a name are left out. The
// column of staged bodies is not among them: a table has it where its service stages bodies.
func OptionalColumns(c Columns) []OptionalColumn {
	all := []OptionalColumn{
		{Name: c.Key, Type: "VARCHAR(255)"},
		{Name: c.Headers, Type: "TEXT"},
		{Name: c.LastError, Type: "VARCHAR(1024)"},
		{Name: c.Trace, Type: "VARCHAR(64)"},
	}
	var named []OptionalColumn
	for _, column := range all {
		if column.Name != "" {
			named = append(named, column)
		}
	}
	return named
}

// QuoteTable returns the table's name as SQL takes it.
func QuoteTable(table Table) string {
	if table.Database == "" {
		return quote(table.Name)
	}
	return quote(table.Database) + "." + quote(table.Name)
}

// quote returns an identifier as SQL takes it, whatever characters it has.
func quote(name string) string { return "`" + strings.ReplaceAll(name, "`", "``") + "`" }
