package mysql

// A server hands out sessions as its global settings and init_connect make them, and those are for others to choose: a
// session that commits nothing by itself, that reads at most a hundred rows, that refuses an UPDATE. So every session of every
// pool is set to the list below before anyone uses it. What is missing from the list was looked at and left: the time zone (all
// times are compared and written with NOW() in the zone that other clients of the table see), binlog_row_image (any will do),
// and settings of the optimizer and of sizes, which change the price of a statement and not what it does.
//
// Names and quoting are known through `SET NAMES utf8mb4`, which the driver sends first.

// settings are for every session. No right is needed for them.
var settings = []string{
	"SET SESSION" +
		// Otherwise each SELECT would open a transaction that holds its metadata lock until somebody commits.
		" autocommit=1," +
		// Otherwise a COMMIT would begin another transaction (CHAIN), with what follows in it, or end the session (RELEASE).
		" completion_type=0," +
		// A zero or partial date which is already in a row must never fail an UPDATE of its other columns; and quoting is known.
		" sql_mode=''," +
		// A list that ends early would be taken for the whole.
		" sql_select_limit=18446744073709551615, sql_big_selects=1," +
		// UPDATEs are bounded by their own conditions.
		" sql_safe_updates=0," +
		// A delete by the archive must not leave children without their parents.
		" foreign_key_checks=1, unique_checks=1," +
		// A lock that others hold is waited for shortly and asked for again; a dead client is noticed, an idle session kept.
		" innodb_lock_wait_timeout=3, lock_wait_timeout=10, net_write_timeout=30, wait_timeout=600" +
		// The pools bound how long a statement may take; a bound of the server's would end the long ones each time.
		" /*!50708 , max_execution_time=0 */ /*M!100101 , max_statement_time=0 */",
	"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED, READ WRITE",
}

// Settings returns the statements that make a session the relay's own, for a connection that is not this package's: the one
// that carries the binlog.
func Settings() []string { return append([]string(nil), settings...) }

// wish is a setting that takes a right which the relay can do without.
type wish struct {
	statement string
	// unless is a condition in SQL under which the session is right as it is; "" for none.
	unless string
	// refused is logged, once in the life of a pool, where the server does not allow it.
	refused string
}

// rowFormat: a session inherits binlog_format when it is made, and with STATEMENT the server refuses the relay's UPDATEs
// (READ COMMITTED, error 1665) until the session ends.
var rowFormat = wish{
	statement: "SET SESSION binlog_format='ROW'",
	unless:    "@@SESSION.binlog_format<>'STATEMENT'", // MIXED writes rows in READ COMMITTED
	refused: "binlog_format is STATEMENT, with which no row can be marked, and the user may not set it for the relay's own sessions: " +
		"set it to ROW globally, or grant SESSION_VARIABLES_ADMIN (MariaDB: BINLOG ADMIN)",
}

// smallImages asks for marks that write only the key and the changed columns to the binlog.
var smallImages = wish{
	statement: "SET SESSION binlog_row_image=MINIMAL",
	refused:   "marks write full row images to the binlog; grant SESSION_VARIABLES_ADMIN (MariaDB: BINLOG ADMIN) to make them small",
}
