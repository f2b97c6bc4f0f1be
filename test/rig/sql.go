package rig

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// The flavors of a Server.
const (
	FlavorMySQL   = "mysql"
	FlavorMariaDB = "mariadb"
)

// The administrator of every SQL server of the rig: any host, all privileges.
const (
	adminUser     = "admin"
	adminPassword = "admin"
	createAdmin   = "CREATE USER admin@'%' IDENTIFIED BY 'admin'; GRANT ALL PRIVILEGES ON *.* TO admin@'%' WITH GRANT OPTION;\n"
)

// Server is a MySQL or MariaDB server with a binlog in ROW format.
type Server struct {
	control
	Flavor         string // FlavorMySQL or FlavorMariaDB
	Addr           string // 127.0.0.1:port
	User, Password string // the administrator
	DataDir        string
}

// MySQL returns a MySQL 9.7: GTIDs on, binlog_row_metadata=FULL, replica updates logged, performance schema off.
func MySQL(t testing.TB, opts ...Option) *Server {
	t.Helper()
	return sqlServer(t, collect(opts), sharedMySQL, startMySQL)
}

// MariaDB returns a MariaDB 10.11: binlog in ROW format, the rest at its defaults, so binlog_row_metadata is NO_LOG
// (Args("--binlog-row-metadata=FULL") for the other).
func MariaDB(t testing.TB, opts ...Option) *Server {
	t.Helper()
	return sqlServer(t, collect(opts), sharedMariaDB, startMariaDB)
}

type starter func(ctx context.Context, s settings) (*Server, error)

func sqlServer(t testing.TB, s settings, shared func() (*Server, error), start starter) *Server {
	t.Helper()
	refuseInUnitTests(t)
	if !s.own {
		server, err := shared()
		if err != nil {
			t.Fatal(err)
		}
		return server
	}
	server, err := start(context.WithoutCancel(t.Context()), s)
	if err != nil {
		t.Fatal(err)
	}
	server.own = true
	server.adopt(t)
	return server
}

// common are the options that both servers know. See the package's comment on durability.
func common(i *instance) []string {
	args := []string{
		"--datadir=" + i.dir.Join("data"),
		"--tmpdir=" + i.dir.Path, // a MariaDB that starts deletes the temporary tables that it finds there
		"--socket=" + i.dir.Join("socket"),
		"--pid-file=" + i.dir.Join("server.pid"),
		"--port=" + strconv.Itoa(i.ports[0].Number),
		"--bind-address=127.0.0.1",
		"--skip-name-resolve",
		"--server-id=" + strconv.Itoa(i.ports[0].Number), // unique on this machine, as the port is
		"--log-bin=binlog",
		"--binlog-format=ROW",
		"--secure-file-priv=",
		"--local-infile=1",
		"--max-connections=400",
		"--innodb-buffer-pool-size=64M",
		"--innodb-flush-log-at-trx-commit=2",
		"--innodb-doublewrite=0",
		"--sync-binlog=0",
		"--table-open-cache=400",
		"--performance-schema=OFF",
	}
	return append(args, asRoot()...)
}

// asRoot returns the option without which the servers refuse to run as root.
func asRoot() []string {
	if os.Geteuid() == 0 {
		return []string{"--user=root"}
	}
	return nil
}

// boot completes the instance, starts it, and returns the server.
func boot(ctx context.Context, i *instance, flavor string, command []string) (*Server, error) {
	server := &Server{
		control: control{inst: i}, Flavor: flavor, Addr: i.ports[0].Addr(),
		User: adminUser, Password: adminPassword, DataDir: i.dir.Join("data"),
	}
	db, err := server.open("")
	if err != nil {
		return nil, errors.Join(err, i.destroy())
	}
	defer db.Close() //nolint:errcheck // only pinged
	i.command = command
	i.ready = db.PingContext
	if err := i.start(ctx); err != nil {
		return nil, errors.Join(err, i.destroy())
	}
	// Later starts must not use the pool that is closed here.
	i.ready = func(ctx context.Context) error {
		db, err := server.open("")
		if err != nil {
			return err
		}
		return errors.Join(db.PingContext(ctx), db.Close())
	}
	return server, nil
}

// open returns a pool of the administrator's connections.
func (s *Server) open(database string) (*sql.DB, error) {
	config := mysql.NewConfig()
	config.Net, config.Addr, config.User, config.Passwd = "tcp", s.Addr, s.User, s.Password
	config.DBName = database
	config.MultiStatements = true
	config.Timeout = 10 * time.Second
	config.Logger = &mysql.NopLogger{} // a server that is only starting is no news
	connector, err := mysql.NewConnector(config)
	if err != nil {
		return nil, fmt.Errorf("connect to %s: %w", s.Addr, err)
	}
	return sql.OpenDB(connector), nil
}
