// Command gentables writes the tables of canal/lean from what a MySQL and a MariaDB server say about their charsets and
// collations. It stores every code of every charset in a column, as a client would, and reads it back as utf8mb4. Both
// servers must agree where both know a code; otherwise nothing is written.
//
//	go run ./internal/gentables -mysql 'root@tcp(127.0.0.1:3306)/' -mariadb 'root@tcp(127.0.0.1:3307)/'
package main

import (
	"context"
	"database/sql"
	"flag"
	"fmt"
	"os"

	_ "github.com/go-sql-driver/mysql" //nolint:depguard // a tool for developers: it is not in the product
)

func main() {
	mysql := flag.String("mysql", "", "data source name of a MySQL server")
	mariadb := flag.String("mariadb", "", "data source name of a MariaDB server")
	out := flag.String("out", ".", "folder to write to")
	flag.Parse()
	if err := run(context.Background(), *out, *mysql, *mariadb); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, out string, sources ...string) error {
	codes, collations := newRepertoires(), collationNames{}
	for _, source := range sources {
		db, err := sql.Open("mysql", source)
		if err != nil {
			return fmt.Errorf("open the server: %w", err)
		}
		db.SetMaxOpenConns(1) // the scratch tables are temporary: they belong to one connection
		if err = collations.read(ctx, db); err == nil {
			err = codes.read(ctx, db)
		}
		if closeErr := db.Close(); err == nil {
			err = closeErr
		}
		if err != nil {
			return err
		}
	}
	if err := collations.write(out); err != nil {
		return err
	}
	return codes.write(out)
}
