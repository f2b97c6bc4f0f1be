package rig

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"strings"
	"testing"
	"time"
)

// DB returns a pool of the administrator's connections, closed when the test ends. It allows several statements in one
// call. Times come as the text that the server prints.
func (s *Server) DB(t testing.TB) *sql.DB {
	t.Helper()
	return s.DBOf(t, "")
}

// DBOf is DB with a database chosen.
func (s *Server) DBOf(t testing.TB, database string) *sql.DB {
	t.Helper()
	db, err := s.open(database)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Errorf("close the administrator's pool: %v", err)
		}
	})
	return db
}

// Database creates a database of the test's own, named rig_..., and drops it when the test ends.
func (s *Server) Database(t testing.TB) string {
	t.Helper()
	name := unique("rig_", t)
	s.exec(t, "CREATE DATABASE `"+name+"`")
	if !s.own { // an own server goes away as a whole, and may be stopped by then
		t.Cleanup(func() { s.drop(t, "DROP DATABASE `"+name+"`") })
	}
	return name
}

// Grant is what a relay's user gets.
type Grant func(*grants)

type grants struct {
	database      string
	minimalImages bool
}

// On limits the relay's user to one database; without it, it may use all that Database made.
func On(database string) Grant {
	return func(g *grants) { g.database = "`" + database + "`" }
}

// MinimalImages also lets the user set binlog_row_image in its session (SESSION_VARIABLES_ADMIN on MySQL,
// BINLOG ADMIN on MariaDB), with which a mark costs far less binlog.
func MinimalImages() Grant {
	return func(g *grants) { g.minimalImages = true }
}

// RelayUser creates a user with the least privileges that the relay needs, and drops it when the test ends: to read
// the binlog, and to read, mark, archive and delete rows.
func (s *Server) RelayUser(t testing.TB, opts ...Grant) (user, password string) {
	t.Helper()
	g := grants{database: "`rig\\_%`"}
	for _, opt := range opts {
		opt(&g)
	}
	user, password = "relay_"+suffix(), "relay secret"
	account := "'" + user + "'@'%'"
	s.exec(t, "CREATE USER "+account+" IDENTIFIED BY '"+password+"'")
	if !s.own {
		t.Cleanup(func() { s.drop(t, "DROP USER "+account) })
	}
	// On MariaDB 10.5 and later REPLICATION CLIENT is another name of BINLOG MONITOR.
	s.exec(t, "GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO "+account)
	s.exec(t, "GRANT SELECT, INSERT, UPDATE, DELETE ON "+g.database+".* TO "+account)
	if g.minimalImages {
		privilege := "SESSION_VARIABLES_ADMIN"
		if s.Flavor == FlavorMariaDB {
			privilege = "BINLOG ADMIN"
		}
		s.exec(t, "GRANT "+privilege+" ON *.* TO "+account)
	}
	return user, password
}

// exec runs one statement as the administrator, outside any transaction of the test's.
func (s *Server) exec(t testing.TB, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), stopTimeout)
	defer cancel()
	if err := s.run(ctx, statement); err != nil {
		t.Fatal(err)
	}
}

// drop is exec for the end of a test: what the test has left open must not hang it. The remains go with the server.
func (s *Server) drop(t testing.TB, statement string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 15*time.Second)
	defer cancel()
	if err := s.run(ctx, statement); err != nil {
		t.Logf("left behind, is a connection of the test still in a transaction? %v", err)
	}
}

func (s *Server) run(ctx context.Context, statement string) error {
	db, err := s.open("")
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // the statement's error is the one that counts
	if _, err := db.ExecContext(ctx, statement); err != nil {
		return fmt.Errorf("%s on %s: %w", statement, s.Addr, err)
	}
	return nil
}

// unique returns a name that tells its test and is nobody else's, in characters that databases and topics allow.
func unique(prefix string, t testing.TB) string {
	var b strings.Builder
	b.WriteString(prefix)
	for _, r := range strings.ToLower(t.Name()) {
		if b.Len() >= 40 {
			break
		}
		if (r < 'a' || r > 'z') && (r < '0' || r > '9') {
			r = '_'
		}
		b.WriteRune(r)
	}
	return b.String() + "_" + suffix()
}

func suffix() string { return strings.ToLower(rand.Text()[:8]) }
