package mysql

// settings prepare each session. The time zone is deliberately left alone: everything is compared and written with the
// server's NOW() in the server's own zone, as other clients of the table see it. sql_mode is empty so that a zero or
// partial date which is already in a row never fails an UPDATE of its other columns, and so that quoting is known.
var settings = []string{
	"SET SESSION sql_mode='', autocommit=1, innodb_lock_wait_timeout=3, lock_wait_timeout=10, net_write_timeout=30, wait_timeout=600",
	"SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED",
}

// wish is a setting that takes a right which the relay can do without.
type wish struct {
	statement string
	// refused is logged, once in the life of a pool, where the server does not allow it.
	refused string
}

// smallImages asks for marks that write only the key and the changed columns to the binlog.
var smallImages = wish{
	statement: "SET SESSION binlog_row_image=MINIMAL",
	refused:   "marks write full row images to the binlog; grant SESSION_VARIABLES_ADMIN (MariaDB: BINLOG ADMIN) to make them small",
}
