package rig

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"slices"
	"strings"

	"example.com/outbox-relay/test/rig/internal/install"
)

// The redo log is as small as the servers allow: a start copies it.
const (
	mysqlRedo   = "--innodb-redo-log-capacity=16M"
	mariadbRedo = "--innodb-log-file-size=16M"
)

// startMySQL starts a MySQL on a copy of a data folder that was initialised once.
func startMySQL(ctx context.Context, s settings) (*Server, error) {
	mysqld, err := install.MySQL()
	if err != nil {
		return nil, err
	}
	initialize := slices.Concat(mysqld, asRoot(), []string{"--initialize-insecure", mysqlRedo})
	template, err := install.Template(ctx, "mysql-"+fingerprint(initialize, mysqld[3]), func(ctx context.Context, dir string) error {
		script := dir + "/admin.sql"
		if err := os.WriteFile(script, []byte(createAdmin), 0o600); err != nil {
			return err
		}
		command := append(slices.Clone(initialize), "--init-file="+script, "--datadir="+dir+"/data", "--tmpdir="+dir)
		if err := install.Run(ctx, "", command...); err != nil {
			return err
		}
		return os.Remove(dir + "/data/auto.cnf") // the server's uuid: each copy makes its own
	})
	if err != nil {
		return nil, err
	}
	i, err := newInstance("mysql", 1)
	if err != nil {
		return nil, err
	}
	if err := install.Copy(ctx, template+"/data", i.dir.Join("data")); err != nil {
		return nil, errors.Join(err, i.destroy())
	}
	command := slices.Concat(mysqld, common(i), []string{
		mysqlRedo, "--mysqlx=0", "--gtid-mode=ON", "--enforce-gtid-consistency=ON", "--binlog-row-metadata=FULL",
	}, s.args)
	return boot(ctx, i, FlavorMySQL, command)
}

// startMariaDB starts a MariaDB on a copy of a data folder that was initialised once.
func startMariaDB(ctx context.Context, s settings) (*Server, error) {
	mariadbd, err := install.Program("mariadbd")
	if err != nil {
		return nil, err
	}
	installer, err := install.Program("mariadb-install-db")
	if err != nil {
		return nil, err
	}
	initialize := append([]string{installer, "--no-defaults"}, asRoot()...)
	initialize = append(initialize, "--auth-root-authentication-method=normal", "--skip-test-db", mariadbRedo)
	template, err := install.Template(ctx, "mariadb-"+fingerprint(initialize, mariadbd), func(ctx context.Context, dir string) error {
		script := dir + "/admin.sql"
		// The bootstrap mode reads one statement a line and knows no accounts until it is told to.
		text := "FLUSH PRIVILEGES;\n" + strings.ReplaceAll(createAdmin, "; ", ";\n")
		if err := os.WriteFile(script, []byte(text), 0o600); err != nil {
			return err
		}
		return install.Run(ctx, "", append(slices.Clone(initialize),
			"--extra-file="+script, "--datadir="+dir+"/data", "--tmpdir="+dir)...)
	})
	if err != nil {
		return nil, err
	}
	i, err := newInstance("mariadb", 1)
	if err != nil {
		return nil, err
	}
	if err := install.Copy(ctx, template+"/data", i.dir.Join("data")); err != nil {
		return nil, errors.Join(err, i.destroy())
	}
	command := slices.Concat([]string{mariadbd, "--no-defaults"}, common(i), []string{mariadbRedo}, s.args)
	return boot(ctx, i, FlavorMariaDB, command)
}

// fingerprint names a template by how it was made and by the program (its size and time) that made it.
func fingerprint(command []string, program string) string {
	text := strings.Join(command, "\n") + createAdmin
	if info, err := os.Stat(program); err == nil {
		text += info.ModTime().String()
	}
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:6])
}
