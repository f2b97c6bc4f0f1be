package store

import (
	"strings"

	"example.com/outbox-relay/outbox"
)

// grants returns the least privileges of the two users: the one who marks, and the one who reads the binlog. The user who
// runs this (me) is left out unless the statements are only printed: nobody can give himself what he lacks.
func grants(srv server, cfg Config, tables []outbox.Table, me string, printOnly bool) []string {
	mark, stream := cfg.MarkUser, cfg.StreamUser
	if mark == "" {
		mark = cfg.User
	}
	if stream == "" {
		stream = cfg.User
	}
	var statements []string
	if printOnly || mark != me {
		statements = append(statements, grantMarks(srv, cfg.Archive, mark, tables, printOnly)...)
		statements = append(statements, cfg.grantAcks(mark, tables)...)
	}
	if printOnly || stream != me {
		statements = append(statements, grantStream(srv, stream, stream != mark, tables, printOnly)...)
	}
	return statements
}

func grantMarks(srv server, archive Archive, user string, tables []outbox.Table, printOnly bool) []string {
	account := literal(user) + "@'%'"
	var statements []string
	if printOnly {
		statements = append(statements, createUser(account))
	}
	for _, table := range tables {
		statements = append(statements, "GRANT SELECT, UPDATE ON "+outbox.QuoteTable(table)+" TO "+account+";")
	}
	statements = append(statements, grantArchive(archive, account, tables, printOnly)...)
	if printOnly && srv.version != "" {
		statements = append(statements, srv.grantMinimal(account)+"  -- optional: marks write less binlog")
	}
	return statements
}

// grantStream lets a user read the binlog. It also needs SELECT on the tables: without it their columns are invisible.
func grantStream(srv server, user string, separate bool, tables []outbox.Table, printOnly bool) []string {
	account := literal(user) + "@'%'"
	monitor := "REPLICATION CLIENT" // MariaDB takes this name for BINLOG MONITOR too
	if srv.mariaDB && srv.atLeast(10, 5) {
		monitor = "BINLOG MONITOR"
	}
	var statements []string
	if printOnly && separate {
		statements = append(statements, createUser(account))
	}
	statements = append(statements, "GRANT REPLICATION SLAVE, "+monitor+" ON *.* TO "+account+";")
	if separate {
		for _, table := range tables {
			statements = append(statements, "GRANT SELECT ON "+outbox.QuoteTable(table)+" TO "+account+";")
		}
	}
	return statements
}

func createUser(account string) string {
	return "CREATE USER IF NOT EXISTS " + account + " IDENTIFIED BY 'choose a password';"
}

// userOf returns the name in what CURRENT_USER() says.
func userOf(account string) string {
	if at := strings.LastIndexByte(account, '@'); at >= 0 {
		return account[:at]
	}
	return account
}
