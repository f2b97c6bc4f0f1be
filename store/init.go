package store

import (
	"context"
	"database/sql"
	"errors"
	"slices"
	"strings"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Init makes what is missing: each table that is named without a pattern, its index, the optional columns, and the grants
// of cfg.MarkUser and cfg.StreamUser. It returns the statements in their order; with printOnly it runs none of them, and then
// the list also has those that only an administrator can judge (CREATE USER, optional privileges). Connect as a user who
// may do all that, or print and hand the list to one.
func Init(ctx context.Context, cfg Config, printOnly bool) ([]string, error) {
	if err := cfg.Validate(); err != nil {
		return nil, err
	}
	cfg = cfg.withDefaults()
	p, err := mysql.NewPool(cfg.Config, mysql.Options{Size: 1, ReadTimeout: mysql.SlowRead}, zerolog.Nop())
	if err != nil {
		return nil, err
	}
	var statements []string
	err = p.Run(ctx, "plan what is missing", func(ctx context.Context, conn *sql.Conn) error {
		statements, err = plan(ctx, conn, cfg, printOnly)
		return err
	})
	if printOnly && (errors.Is(err, ErrUnreachable) || slices.Contains([]uint16{1044, 1045, 1698}, mysql.Code(err))) { // also before the user exists
		// Without the server nothing is known, so everything is printed, in words that every version takes.
		statements, err = planBlind(cfg)
		return statements, errors.Join(err, p.Close())
	}
	if err != nil || printOnly {
		return statements, errors.Join(err, p.Close())
	}
	done, err := execute(ctx, p, statements)
	return done, errors.Join(err, p.Close())
}

func execute(ctx context.Context, p *mysql.Pool, statements []string) (done []string, err error) {
	for _, statement := range statements {
		err := p.Run(ctx, "run "+firstWords(statement), func(ctx context.Context, conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, strings.TrimSuffix(statement, ";"))
			return err
		})
		if err != nil {
			return done, err
		}
		done = append(done, statement)
	}
	return done, nil
}

// firstWords names a statement in an error, without its rest.
func firstWords(statement string) string {
	words := strings.Fields(statement)
	return strings.Join(words[:min(3, len(words))], " ")
}

func plan(ctx context.Context, conn *sql.Conn, cfg Config, printOnly bool) ([]string, error) {
	srv, err := mysql.ReadServer(ctx, conn)
	if err != nil {
		return nil, err
	}
	var statements []string
	var tables []outbox.Table
	for _, text := range cfg.Tables {
		one := cfg
		one.Tables = []string{text}
		found, err := resolve(ctx, conn, srv, one)
		if errors.Is(err, ErrGone) {
			created, name, err := create(text, cfg.Columns)
			if err != nil {
				return nil, err
			}
			statements, tables = append(statements, created...), append(tables, name)
			statements = append(statements, cfg.missingOfNew(name)...)
			continue
		}
		if err != nil {
			return nil, err
		}
		for i := range found {
			completed, err := found[i].completeAll(ctx, conn, cfg)
			if err != nil {
				return nil, err
			}
			statements = append(statements, completed...)
			tables = append(tables, found[i].Table)
		}
	}
	var me string
	if err := conn.QueryRowContext(ctx, "SELECT CURRENT_USER()").Scan(&me); err != nil {
		return nil, err
	}
	return append(statements, grants(srv, cfg, tables, mysql.UserOf(me), printOnly)...), nil
}

func planBlind(cfg Config) ([]string, error) {
	var statements []string
	var tables []outbox.Table
	for _, text := range cfg.Tables {
		created, name, err := create(text, cfg.Columns)
		if err != nil {
			continue // a pattern names no table to make
		}
		statements, tables = append(statements, created...), append(tables, name)
		statements = append(statements, cfg.missingOfNew(name)...)
	}
	return append(statements, grants(mysql.Server{}, cfg, tables, "", true)...), nil
}

// create makes a table that a pattern without regular expressions names.
func create(text string, columns outbox.Columns) ([]string, outbox.Table, error) {
	p, err := mysql.ParsePattern(text)
	if err != nil {
		return nil, outbox.Table{}, err
	}
	name, ok := p.Table()
	if !ok {
		return nil, outbox.Table{}, schemaError(ErrGone, "no table matches %s, and a pattern does not say which to make; name one table in `source.tables`", text)
	}
	opts := outbox.AllColumns()
	opts.Columns, opts.IfNotExists, opts.Options = columns, true, "ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
	return []string{"CREATE DATABASE IF NOT EXISTS " + mysql.Identifier(name.Database) + ";", outbox.Schema(name, opts) + ";"}, name, nil
}

// complete returns what an existing table lacks.
func (t *Table) complete(columns outbox.Columns) []string {
	var statements, added []string
	for _, column := range outbox.OptionalColumns(columns) {
		if !slices.ContainsFunc(t.names(), func(name string) bool { return strings.EqualFold(name, column.Name) }) {
			added = append(added, "ADD COLUMN "+column.Definition())
		}
	}
	if len(added) > 0 {
		statements = append(statements, "ALTER TABLE "+t.From()+" "+strings.Join(added, ", ")+";")
	}
	if t.due == "" {
		statements = append(statements, t.addDueIndex())
	}
	return statements
}

// completeAll is complete with what the table's companions lack.
func (t *Table) completeAll(ctx context.Context, conn *sql.Conn, cfg Config) ([]string, error) {
	own := t.complete(cfg.Columns)
	statements := own
	for _, c := range cfg.Companions {
		missing, err := c.Missing(ctx, conn, t, len(own) > 0)
		if err != nil {
			return statements, err
		}
		statements = append(statements, missing...)
	}
	return statements, nil
}

func (c Config) missingOfNew(table outbox.Table) []string {
	var statements []string
	for _, companion := range c.Companions {
		statements = append(statements, companion.MissingOfNew(table)...)
	}
	return statements
}

func (t *Table) names() []string {
	names := make([]string, 0, len(t.cols))
	for _, c := range t.cols {
		names = append(names, c.Name)
	}
	return names
}
