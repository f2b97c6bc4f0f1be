package mysql

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"example.com/outbox-relay/internal/diagnose"
)

// maxClockGap is how far the relay's clock and the database's may be apart before doctor speaks of it. Nothing depends on
// the relay's clock but the times in logs and metrics.
const maxClockGap = 2 * time.Second

// ConnectionRepair says what to do about an error of connecting to the primary.
func ConnectionRepair(err error) string {
	switch {
	case errors.Is(err, ErrPrivilege):
		return "correct source.primary.user and password, or let the user in: CREATE USER ... / ALTER USER ... IDENTIFIED BY ..."
	case errors.Is(err, ErrCertificate):
		return "give the authority that signed the server's certificate in source.primary.ca_file; with tls: verify-identity also address the server by a name in its certificate"
	case Code(err) == codeTooManyConnections, Code(err) == codeUserConnections:
		return "end connections that nobody needs (SHOW PROCESSLIST), or raise max_connections or the user's own limit"
	case errors.Is(err, ErrUnreachable):
		return "start the server, or correct source.primary.address; check firewalls on the way"
	}
	return "look at the server's error log"
}

// Inspection checks what marking and sweeping need of a server, for doctor. It changes nothing.
type Inspection struct {
	// Server and Account are set by Run: which server it is, and the user as GRANT takes it.
	Server  Server
	Account string

	conn   *sql.Conn
	report *diagnose.Report
}

// Run checks a server by its session, whose address is for the report, and adds what it finds. An error is one of the
// connection.
func (i *Inspection) Run(ctx context.Context, conn *sql.Conn, addr string, report *diagnose.Report) error {
	i.conn, i.report = conn, report
	var err error
	if i.Server, err = ReadServer(ctx, conn); err != nil {
		return err
	}
	report.OK("connection to "+addr, "connected, server version "+i.Server.Version)
	var user string
	if err := conn.QueryRowContext(ctx, "SELECT CURRENT_USER()").Scan(&user); err != nil {
		return err
	}
	i.Account = accountOf(user)
	i.version()
	for _, check := range []func(context.Context) error{i.writable, i.clock, i.rowImages} {
		if err := check(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (i *Inspection) version() {
	const check = "server version"
	if i.Server.CanSkipLocked() {
		i.report.OK(check, i.Server.Version+" can skip locked rows")
		return
	}
	i.report.Warn(check, i.Server.Version+" can't skip locked rows: a sweep waits for rows that others hold", "upgrade to MySQL 8.0 or MariaDB 10.6, or newer")
}

func (i *Inspection) writable(ctx context.Context) error {
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

func (i *Inspection) clock(ctx context.Context) error {
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
func (i *Inspection) rowImages(ctx context.Context) error {
	const check = "small binlog images of marks"
	_, err := i.conn.ExecContext(ctx, smallImages.statement)
	if err == nil {
		i.report.OK(check, "the user may set binlog_row_image=MINIMAL")
		return nil
	}
	if errors.Is(Describe("", err), ErrUnreachable) || ctx.Err() != nil {
		return err
	}
	i.report.Add(diagnose.Finding{
		Check: check, Means: "the user may not set binlog_row_image=MINIMAL; each mark writes the whole row to the binlog, which works but costs space",
		Repair: GrantGlobal(i.Server.SetSessionPrivilege(), i.Account) + "  -- optional",
	})
	return nil
}
