package mysql

import (
	"strings"
)

// Account quotes a user of any host, as GRANT takes it.
func Account(user string) string { return Literal(user) + "@'%'" }

// accountOf turns what CURRENT_USER() says into what GRANT takes.
func accountOf(currentUser string) string {
	at := strings.LastIndexByte(currentUser, '@')
	if at < 0 {
		return Account(currentUser)
	}
	return Literal(currentUser[:at]) + "@" + Literal(currentUser[at+1:])
}

// UserOf returns the name in what CURRENT_USER() says.
func UserOf(currentUser string) string {
	if at := strings.LastIndexByte(currentUser, '@'); at >= 0 {
		return currentUser[:at]
	}
	return currentUser
}

// CreateUser makes an account, whose password is for a person to choose.
func CreateUser(account string) string {
	return "CREATE USER IF NOT EXISTS " + account + " IDENTIFIED BY 'choose a password';"
}

// GrantGlobal gives an account a privilege on the whole server.
func GrantGlobal(privilege, account string) string {
	return "GRANT " + privilege + " ON *.* TO " + account + ";"
}

// SetSessionPrivilege is the privilege to set what a session writes to the binlog: its format and its row images.
func (s Server) SetSessionPrivilege() string {
	if s.MariaDB {
		return "BINLOG ADMIN"
	}
	return "SESSION_VARIABLES_ADMIN"
}

// MonitorPrivilege is the privilege to ask for the binlog's files and its end. MariaDB takes the name REPLICATION CLIENT as
// well.
func (s Server) MonitorPrivilege() string {
	if s.MariaDB && s.AtLeast(10, 5, 0) {
		return "BINLOG MONITOR"
	}
	return "REPLICATION CLIENT"
}
