package history

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
	"example.com/outbox-relay/store"
)

// Follow makes the history of a table, or adds the columns that the table has got since. It is ErrHistory when a column
// can't be followed, and mysql.ErrPrivilege when the user may not alter or create the history: then the text holds the statement.
func (hs *Histories) Follow(ctx context.Context, table outbox.Table) error {
	return hs.store.OnTable(ctx, hs.pool, "follow the columns of", table, func(ctx context.Context, conn *sql.Conn, t *store.Table) error {
		statement, err := hs.cfg.followStatement(ctx, conn, t)
		if err != nil || statement == "" {
			return err
		}
		_, err = conn.ExecContext(ctx, statement)
		own, told := errors.AsType[*mysql.Error](mysql.Describe("follow the columns of "+t.String(), err))
		switch {
		case err == nil:
			hs.log.Info().Stringer("table", t.Table).Msg("the history table was made, or follows a new column")
			return nil
		case !told || errors.Is(own, mysql.ErrUnreachable) || errors.Is(own, mysql.ErrBusy) || errors.Is(own, mysql.ErrReadOnly):
			return err
		case errors.Is(own, mysql.ErrPrivilege):
			return &mysql.Error{Op: own.Op, Number: own.Number, Class: mysql.ErrPrivilege, Text: "the user may not; as an administrator run outbox-relay init, or: " + oneLine(statement)}
		}
		return &mysql.Error{Op: own.Op, Number: own.Number, Class: ErrHistory, Text: fmt.Sprintf("the server refused it with error %d, nothing was moved; run it by hand and see: %s", own.Number, oneLine(statement))}
	})
}

func oneLine(statement string) string { return strings.Join(strings.Fields(statement), " ") + ";" }

// followStatement returns what the history lacks as one statement, "" when nothing.
func (c Config) followStatement(ctx context.Context, conn *sql.Conn, t *store.Table) (string, error) {
	history := c.of(t.Table)
	if !strings.EqualFold(t.Engine, "InnoDB") {
		return "", &mysql.Error{Op: "follow the columns of " + t.String(), Class: ErrHistory, Text: "the table is not InnoDB, so rows can't be moved in one transaction: ALTER TABLE " + t.From() + " ENGINE=InnoDB;"}
	}
	engine, err := mysql.ReadEngines(ctx, conn, history.Database, history.Name)
	if err != nil {
		return "", err
	}
	var name, text string
	if err := conn.QueryRowContext(ctx, "SHOW CREATE TABLE "+t.From()).Scan(&name, &text); err != nil {
		return "", err
	}
	made := parseCreate(text)
	both, err := readShapes(ctx, conn, t.Table, history)
	if err != nil {
		return "", err
	}
	if err := both.taken(); err != nil {
		return "", err
	}
	if len(engine) == 0 {
		return made.history(t, history, both), nil
	}
	for _, e := range engine {
		if !strings.EqualFold(e, "InnoDB") {
			return "", both.refuse("it is %s and not InnoDB, so rows can't be moved in one transaction: ALTER TABLE %s ENGINE=InnoDB", e, outbox.QuoteTable(history))
		}
	}
	return made.additions(history, both), nil
}

// created is what SHOW CREATE TABLE tells.
type created struct {
	columns []createdColumn
	options string
}

type createdColumn struct{ name, definition string }

// parseCreate reads the columns and the options. The server writes one column or index a line, and escapes line breaks
// in texts.
func parseCreate(text string) created {
	var c created
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(line, ") ") || line == ")" {
			c.options = tableOptions(strings.TrimPrefix(line, ")"))
			break
		}
		rest, ok := strings.CutPrefix(line, "  `")
		if !ok {
			continue
		}
		if end := closingBackquote(rest); end >= 0 {
			definition := strings.TrimSuffix(rest[end+1:], ",")
			c.columns = append(c.columns, createdColumn{
				name:       strings.ReplaceAll(rest[:end], "``", "`"),
				definition: mysql.Identifier(strings.ReplaceAll(rest[:end], "``", "`")) + outsideQuotes(definition, " AUTO_INCREMENT"),
			})
		}
	}
	return c
}

func closingBackquote(text string) int {
	for i := 0; i < len(text); i++ {
		if text[i] != '`' {
			continue
		}
		if i+1 < len(text) && text[i+1] == '`' {
			i++
			continue
		}
		return i
	}
	return -1
}

// outsideQuotes removes a word, but not from a comment or a default.
func outsideQuotes(text, word string) string {
	var quote byte
	for i := 0; i < len(text); i++ {
		switch {
		case quote != 0:
			if text[i] == '\\' && quote == '\'' {
				i++
			} else if text[i] == quote {
				quote = 0
			}
		case text[i] == '\'' || text[i] == '`':
			quote = text[i]
		case strings.HasPrefix(text[i:], word):
			return text[:i] + text[i+len(word):]
		}
	}
	return text
}

var unwanted = regexp.MustCompile(` AUTO_INCREMENT=\d+| WITH SYSTEM VERSIONING`)

// tableOptions leaves out what the history is not to have.
func tableOptions(line string) string {
	quote := strings.IndexByte(line, '\'') // a comment: what stands in it stays
	if quote < 0 {
		quote = len(line)
	}
	return unwanted.ReplaceAllString(line[:quote], "") + line[quote:]
}

// history renders the statement that makes the history: the table's columns with their definitions, without
// AUTO_INCREMENT, the time of archiving, and the indexes by which rows are found and purged. The time is part of the primary
// key, so that an id that is given twice (after a TRUNCATE, or a restart of MySQL 5.7 with an empty table) and a message that was
// resent can be archived again. Unique indexes would refuse
// what may well come twice, and others would only cost.
func (c created) history(t *store.Table, history outbox.Table, both shapes) string {
	var lines []string
	for _, column := range c.columns {
		if shape, ok := find(both.source, column.name); ok && !system(shape) {
			lines = append(lines, column.definition)
		}
	}
	msgID := t.Col(words.ColumnMsgID)
	if kind := t.Column(words.ColumnMsgID).Type; strings.HasSuffix(kind, "text") || strings.HasSuffix(kind, "blob") {
		msgID += "(190)"
	}
	lines = append(lines,
		mysql.Identifier(store.ArchivedAt)+" "+store.ArchivedAtType,
		"PRIMARY KEY ("+t.Col(words.ColumnID)+","+mysql.Identifier(store.ArchivedAt)+")",
		"KEY `idx_msg_id` ("+msgID+")",
		"KEY `idx_archived_at` ("+mysql.Identifier(store.ArchivedAt)+")")
	return "CREATE TABLE IF NOT EXISTS " + outbox.QuoteTable(history) + " (\n  " + strings.Join(lines, ",\n  ") + "\n)" + c.options
}

// additions renders the statement that adds what the history lacks.
func (c created) additions(history outbox.Table, both shapes) string {
	var added []string
	for _, column := range c.columns {
		shape, ok := find(both.source, column.name)
		if _, has := find(both.target, column.name); ok && !has && !system(shape) {
			added = append(added, "ADD COLUMN "+column.definition)
		}
	}
	if _, has := find(both.target, store.ArchivedAt); !has {
		added = append(added, "ADD COLUMN "+mysql.Identifier(store.ArchivedAt)+" "+store.ArchivedAtType)
	}
	if len(added) == 0 {
		return ""
	}
	return "ALTER TABLE " + outbox.QuoteTable(history) + " " + strings.Join(added, ", ")
}
