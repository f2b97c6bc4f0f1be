package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Inspect checks everything that marking and sweeping need, and changes nothing: privileges are probed by statements
// that touch no row. An error is returned only when the configuration itself is unusable.
func Inspect(ctx context.Context, cfg Config) (diagnose.Report, error) {
	var report diagnose.Report
	if err := cfg.Validate(); err != nil {
		return report, err
	}
	cfg = cfg.withDefaults()
	p, err := mysql.NewPool(cfg.Config, mysql.Options{Size: 1}, zerolog.Nop())
	if err != nil {
		return report, err
	}
	i := inspection{cfg: cfg, report: &report}
	err = p.Run(ctx, "connect to "+cfg.Addr, i.run)
	if err != nil {
		report.Fail("connection to "+cfg.Addr, err.Error(), mysql.ConnectionRepair(err))
	}
	return report, p.Close()
}

// inspection is one run of Inspect.
type inspection struct {
	mysql.Inspection // of the server
	cfg              Config
	report           *diagnose.Report
	conn             *sql.Conn
}

func (i *inspection) run(ctx context.Context, conn *sql.Conn) error {
	i.conn = conn
	*i.report = diagnose.Report{} // a second try begins anew
	if err := i.Run(ctx, conn, i.cfg.Addr, i.report); err != nil {
		return err
	}
	return i.tables(ctx)
}

// tables resolves each pattern on its own, so that one bad pattern does not hide the others.
func (i *inspection) tables(ctx context.Context) error {
	for _, text := range i.cfg.Tables {
		one := i.cfg
		one.Tables = []string{text}
		check := "table " + text
		found, err := resolve(ctx, i.conn, i.Server, one)
		switch {
		case errors.Is(err, ErrGone):
			i.report.Fail(check, err.Error(), i.repairMissing(text))
		case errors.Is(err, ErrSchema):
			i.report.Fail(check, err.Error(), "outbox-relay init --print-sql")
		case err != nil:
			return err
		default:
			i.report.OK(check, fmt.Sprintf("%d found", len(found)))
		}
		for j := range found {
			if err := i.table(ctx, &found[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *inspection) repairMissing(text string) string {
	p, err := mysql.ParsePattern(text)
	table, ok := p.Table()
	if err != nil || !ok {
		return "outbox-relay init --print-sql"
	}
	return "outbox-relay init --print-sql  -- or, if the table exists: GRANT SELECT, UPDATE ON " + outbox.QuoteTable(table) + " TO " + i.Account + ";"
}
