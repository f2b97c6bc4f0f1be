package store

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/internal/diagnose"
)

// maxClockGap is how far the relay's clock and the database's may be apart before doctor speaks of it. Nothing depends on
// the relay's clock but the times in logs and metrics.
const maxClockGap = 2 * time.Second

// Inspect checks everything that marking and sweeping need, and changes nothing: privileges are probed by statements
// that touch no row. An error is returned only when the configuration itself is unusable.
func Inspect(ctx context.Context, cfg Config) (diagnose.Report, error) {
	var report diagnose.Report
	if err := cfg.Validate(); err != nil {
		return report, err
	}
	cfg = cfg.withDefaults()
	base, err := newConnector(cfg, quickReadTimeout, false, zerolog.Nop())
	if err != nil {
		return report, err
	}
	p := newPool(base, 1)
	i := inspection{cfg: cfg, report: &report}
	err = p.run(ctx, "connect to "+cfg.Addr, i.run)
	if err != nil {
		report.Fail("connection to "+cfg.Addr, err.Error(), connectionRepair(err))
	}
	return report, p.close()
}

func connectionRepair(err error) string {
	switch {
	case errors.Is(err, ErrPrivilege):
		return "correct source.primary.user and password, or let the user in: CREATE USER ... / ALTER USER ... IDENTIFIED BY ..."
	case errors.Is(err, ErrUnreachable):
		return "start the server, or correct source.primary.address; check firewalls on the way"
	}
	return "look at the server's error log"
}

// inspection is one run of Inspect.
type inspection struct {
	cfg     Config
	report  *diagnose.Report
	conn    *sql.Conn
	server  server
	account string // as GRANT takes it
}

func (i *inspection) run(ctx context.Context, conn *sql.Conn) error {
	i.conn = conn
	*i.report = diagnose.Report{} // a second try begins anew
	var err error
	if i.server, err = readServer(ctx, conn); err != nil {
		return err
	}
	i.report.OK("connection to "+i.cfg.Addr, "connected, server version "+i.server.version)
	var user string
	if err := conn.QueryRowContext(ctx, "SELECT CURRENT_USER()").Scan(&user); err != nil {
		return err
	}
	i.account = quoteAccount(user)
	i.version()
	for _, check := range []func(context.Context) error{i.writable, i.clock, i.rowImages, i.tables} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

// quoteAccount turns what CURRENT_USER() says into what GRANT takes.
func quoteAccount(user string) string {
	at := strings.LastIndexByte(user, '@')
	if at < 0 {
		return literal(user) + "@'%'"
	}
	return literal(user[:at]) + "@" + literal(user[at+1:])
}

func (i *inspection) version() {
	const check = "server version"
	switch {
	case i.server.skipLocked:
		i.report.OK(check, i.server.version+" can skip locked rows")
	default:
		i.report.Warn(check, i.server.version+" can't skip locked rows: a sweep waits for rows that others hold", "upgrade to MySQL 8.0 or MariaDB 10.6, or newer")
	}
}

func (i *inspection) writable(ctx context.Context) error {
	const check = "server takes writes"
	var readOnly bool
	if err := i.conn.QueryRowContext(ctx, "SELECT @@global.read_only").Scan(&readOnly); err != nil {
		return err
	}
	if readOnly {
		i.report.Fail(check, "read_only is on: rows can't be marked here; most likely this is a replica",
			"point source.primary.address at the primary (source.replica may stay), or, if this is the primary: SET GLOBAL read_only=OFF;")
		return nil
	}
	i.report.OK(check, "read_only is off")
	return nil
}

func (i *inspection) clock(ctx context.Context) error {
	const check = "clock of the database"
	before := time.Now()
	var text, local string
	if err := i.conn.QueryRowContext(ctx, "SELECT CONCAT(UTC_TIMESTAMP(6)), CONCAT(NOW())").Scan(&text, &local); err != nil {
		return err
	}
	trip := time.Since(before)
	theirs, err := time.Parse("2006-01-02 15:04:05.999999", text)
	if err != nil {
		return err
	}
	gap := theirs.Sub(before.Add(trip / 2).UTC()).Round(time.Millisecond)
	if gap.Abs() > maxClockGap+trip {
		i.report.Warn(check, fmt.Sprintf("the database's clock is %s ahead of this machine's (negative: behind); ages and lags are wrong by that much", gap),
			"synchronise both by NTP: timedatectl set-ntp true")
		return nil
	}
	i.report.OK(check, fmt.Sprintf("%s apart from this machine's; local time there is %s", gap, local))
	return nil
}

// rowImages tries what the marking session will try.
func (i *inspection) rowImages(ctx context.Context) error {
	const check = "small binlog images of marks"
	_, err := i.conn.ExecContext(ctx, "SET SESSION binlog_row_image=MINIMAL")
	if err == nil {
		i.report.OK(check, "the user may set binlog_row_image=MINIMAL")
		return nil
	}
	if described := describe("", err); errors.Is(described, ErrUnreachable) || ctx.Err() != nil {
		return err
	}
	i.report.Add(diagnose.Finding{
		Check: check, Means: "the user may not set binlog_row_image=MINIMAL; each mark writes the whole row to the binlog, which works but costs space",
		Repair: i.server.grantMinimal(i.account) + "  -- optional",
	})
	return nil
}

func (s server) grantMinimal(account string) string {
	privilege := "SESSION_VARIABLES_ADMIN"
	if s.mariaDB {
		privilege = "BINLOG ADMIN"
	}
	return "GRANT " + privilege + " ON *.* TO " + account + ";"
}

// tables resolves each pattern on its own, so that one bad pattern does not hide the others.
func (i *inspection) tables(ctx context.Context) error {
	for _, text := range i.cfg.Tables {
		one := i.cfg
		one.Tables = []string{text}
		check := "table " + text
		found, err := resolve(ctx, i.conn, i.server, one)
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
	p, err := parsePattern(text, i.server.foldNames)
	if err != nil || p.database.re != nil || p.table.re != nil {
		return "outbox-relay init --print-sql"
	}
	return "outbox-relay init --print-sql  -- or, if the table exists: GRANT SELECT, UPDATE ON " +
		identifier(p.database.literal) + "." + identifier(p.table.literal) + " TO " + i.account + ";"
}
