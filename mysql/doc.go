// Package mysql is the one room for the server, MySQL or MariaDB: connections and what their sessions are set to, what a
// version can do, quoting, classes of errors, patterns of tables, what information_schema says of tables and columns, and
// the leader's lock.
//
// It guarantees that no session runs with what a server's global settings or init_connect made of it: each one is prepared
// by one list of settings (settings.go) before anyone uses it; that a pool never has more connections than its size; and
// that errors hold neither secrets nor data, and match a class by errors.Is (errors.go).
//
// It knows nothing of message rows, which are store's, nor of the binlog, which is canal's.
package mysql
