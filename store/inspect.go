package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/internal/diagnose"
	"example.com/outbox-relay/internal/words"
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
	i := Inspection{cfg: cfg, Report: &report}
	err = p.Run(ctx, "connect to "+cfg.Addr, i.run)
	if err != nil {
		report.Fail("connection to "+cfg.Addr, err.Error(), mysql.ConnectionRepair(err))
	}
	return report, p.Close()
}

// Inspection is one run of Inspect, on one session. A Companion adds its part; one goroutine uses it.
type Inspection struct {
	mysql.Inspection // of the server
	// Report is what was found so far.
	Report *diagnose.Report
	Conn   *sql.Conn
	cfg    Config
}

func (i *Inspection) run(ctx context.Context, conn *sql.Conn) error {
	i.Conn = conn
	*i.Report = diagnose.Report{} // a second try begins anew
	if err := i.Run(ctx, conn, i.cfg.Addr, i.Report); err != nil {
		return err
	}
	return i.tables(ctx)
}

// tables resolves each pattern on its own, so that one bad pattern does not hide the others.
func (i *Inspection) tables(ctx context.Context) error {
	for _, text := range i.cfg.Tables {
		one := i.cfg
		one.Tables = []string{text}
		check := "table " + text
		found, err := resolve(ctx, i.Conn, i.Server, one)
		switch {
		case errors.Is(err, ErrGone):
			i.Report.Fail(check, err.Error(), i.repairMissing(text))
		case errors.Is(err, ErrSchema):
			i.Report.Fail(check, err.Error(), "outbox-relay init --print-sql")
		case err != nil:
			return err
		default:
			i.Report.OK(check, fmt.Sprintf("%d found", len(found)))
		}
		for j := range found {
			if err := i.table(ctx, &found[j]); err != nil {
				return err
			}
		}
	}
	return nil
}

func (i *Inspection) repairMissing(text string) string {
	p, err := mysql.ParsePattern(text)
	table, ok := p.Table()
	if err != nil || !ok {
		return "outbox-relay init --print-sql"
	}
	return "outbox-relay init --print-sql  -- or, if the table exists: GRANT SELECT, UPDATE ON " + outbox.QuoteTable(table) + " TO " + i.Account + ";"
}

// table checks the shape of one table and each privilege on it.
func (i *Inspection) table(ctx context.Context, t *Table) error {
	i.shape(t)
	for _, p := range t.probes() {
		err := i.Probe(ctx, t.Table, p)
		if err != nil {
			return err
		}
	}
	for _, c := range i.cfg.Companions {
		if err := c.Inspect(ctx, i, t); err != nil {
			return err
		}
	}
	return nil
}

func (i *Inspection) shape(t *Table) {
	name := t.String()
	if strings.EqualFold(t.Engine, "InnoDB") {
		i.Report.OK("engine of "+name, "InnoDB")
	} else {
		i.Report.Fail("engine of "+name, fmt.Sprintf("%s has no transactions: a message and its business data are not written together", t.Engine),
			"ALTER TABLE "+t.From()+" ENGINE=InnoDB;")
	}
	if t.primary != "" {
		i.Report.OK("primary key of "+name, "marks find their rows by index "+t.primary)
	} else {
		i.Report.Fail("primary key of "+name, "no unique index on "+t.cols[words.ColumnID].Name+" alone: each mark reads and locks the whole table",
			"ALTER TABLE "+t.From()+" ADD UNIQUE KEY ("+t.Col(words.ColumnID)+");")
	}
	if t.due != "" {
		i.Report.OK("sweep index of "+name, "due rows are found by index "+t.due)
	} else {
		i.Report.Fail("sweep index of "+name, "no index on (status, next_retry_time): each sweep reads the whole table", t.addDueIndex())
	}
	if t.msgIDUnique {
		i.Report.OK("unique msg_id of "+name, "consumers can tell messages apart by it")
	} else {
		i.Report.Warn("unique msg_id of "+name, "two messages may carry the same msg_id, and consumers would drop one of them",
			"ALTER TABLE "+t.From()+" ADD UNIQUE KEY ("+t.Col(words.ColumnMsgID)+");")
	}
	if t.HasLastError {
		i.Report.OK("last_error of "+name, "the table keeps why a message could not be sent")
	} else {
		i.Report.Add(diagnose.Finding{
			Check: "last_error of " + name,
			Means: "the table has no such column, so why a message could not be sent stands in the log only; this is fine", Repair: "outbox-relay init --print-sql  -- optional",
		})
	}
}

func (t *Table) addDueIndex() string {
	return "CREATE INDEX idx_status_retry ON " + t.From() + " (" + t.Col(words.ColumnStatus) + ", " + t.Col(words.ColumnNextRetryTime) + ");"
}

func (t *Table) probes() []Probe {
	// Constants, since reading a column would need SELECT too.
	assignments := []string{t.Col(words.ColumnStatus) + "=0", t.Col(words.ColumnRetryCount) + "=0", t.nextRetry().set(noTime), t.Touched()}
	if t.HasLastError {
		assignments = append(assignments, t.Col(words.ColumnLastError)+"=NULL")
	}
	// A condition that is false without looking at a column needs no privilege but the one that is probed.
	return []Probe{
		{"SELECT", "SELECT " + t.selectList() + " FROM " + t.From() + " LIMIT 0", "nothing can be swept or looked up"},
		{"UPDATE", "UPDATE " + t.From() + " SET " + strings.Join(assignments, ",") + " WHERE 1=0", "no row can be marked, so every message would stay pending and be sent again"},
	}
}

// Probe reports whether the user may run a statement on a table. An error is the session's, not a missing privilege.
func (i *Inspection) Probe(ctx context.Context, t outbox.Table, p Probe) error {
	check := strings.ToLower(p.Privilege) + " privilege on " + t.String()
	_, refused := i.Conn.ExecContext(ctx, p.Statement)
	err := mysql.Describe("", refused)
	switch {
	case err == nil:
		i.Report.OK(check, "granted")
	case errors.Is(err, ErrPrivilege):
		i.Report.Fail(check, "missing: "+p.Without, "GRANT "+p.Privilege+" ON "+outbox.QuoteTable(t)+" TO "+i.Account+";")
	case mysql.Code(err) == mysql.CodeStatementFormat:
		i.Report.Fail("marks on "+t.String(), "binlog_format is STATEMENT, with which the server refuses the relay's updates (READ COMMITTED): no row can be marked",
			"SET GLOBAL binlog_format='ROW'; and in the server's configuration, then reconnect")
	case errors.Is(err, ErrReadOnly):
		i.Report.Warn(check, "can't be told while the server is read-only", "")
	default:
		return refused
	}
	return nil
}
