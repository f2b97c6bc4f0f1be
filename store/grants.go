package store

import (
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// grants returns the least privileges of the two users: the one who marks, and the one who reads the binlog. The user who
// runs this (me) is left out unless the statements are only printed: nobody can give himself what he lacks.
func grants(srv mysql.Server, cfg Config, tables []outbox.Table, me string, printOnly bool) []string {
	mark, stream := cfg.MarkUser, cfg.StreamUser
	if mark == "" {
		mark = cfg.User
	}
	if stream == "" {
		stream = cfg.User
	}
	var statements []string
	if printOnly || mark != me {
		statements = append(statements, grantMarks(srv, cfg.Companions, mark, tables, printOnly)...)
	}
	if printOnly || stream != me {
		statements = append(statements, grantStream(srv, stream, stream != mark, tables, printOnly)...)
	}
	return statements
}

func grantMarks(srv mysql.Server, companions []Companion, user string, tables []outbox.Table, printOnly bool) []string {
	account := mysql.Account(user)
	var statements []string
	if printOnly {
		statements = append(statements, mysql.CreateUser(account))
	}
	for _, table := range tables {
		statements = append(statements, "GRANT SELECT, UPDATE ON "+outbox.QuoteTable(table)+" TO "+account+";")
	}
	for _, c := range companions {
		statements = append(statements, c.Grants(account, tables, printOnly)...)
	}
	if printOnly && srv.Version != "" {
		statements = append(statements, mysql.GrantGlobal(srv.SetSessionPrivilege(), account)+"  -- optional: marks write less binlog")
	}
	return statements
}

// grantStream lets a user read the binlog. It also needs SELECT on the tables: without it their columns are invisible.
func grantStream(srv mysql.Server, user string, separate bool, tables []outbox.Table, printOnly bool) []string {
	account := mysql.Account(user)
	var statements []string
	if printOnly && separate {
		statements = append(statements, mysql.CreateUser(account))
	}
	statements = append(statements, mysql.GrantGlobal("REPLICATION SLAVE, "+srv.MonitorPrivilege(), account))
	if separate {
		for _, table := range tables {
			statements = append(statements, "GRANT SELECT ON "+outbox.QuoteTable(table)+" TO "+account+";")
		}
	}
	return statements
}
