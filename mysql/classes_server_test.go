//go:build !unit

package mysql

import (
	"context"
	"database/sql"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/test/rig"
)

// What servers really say when a table does not take a row's new values: lasting refusals, each of which is the row's or the
// table's and passes no sooner than a person has changed it.
func TestRefusalsOfATable(t *testing.T) {
	both(t, func(t *testing.T, srv *rig.Server) {
		d := newDesk(t, srv)
		use := "`" + d.database + "`."
		for _, statement := range []string{
			"CREATE TABLE " + use + "parent (id INT PRIMARY KEY) ENGINE=InnoDB",
			"CREATE TABLE " + use + `m (id BIGINT PRIMARY KEY, small TINYINT NOT NULL, counter BIGINT, word VARCHAR(3) CHARACTER SET latin1,
				kind ENUM('a','b'), doc JSON, parent INT, at DATETIME, one INT UNIQUE,
				CONSTRAINT small_range CHECK (small BETWEEN 0 AND 3), FOREIGN KEY (parent) REFERENCES ` + use + `parent (id)) ENGINE=InnoDB`,
			"CREATE TABLE " + use + "parts (id INT, n INT) ENGINE=InnoDB PARTITION BY RANGE (n) (PARTITION p VALUES LESS THAN (10))",
			"INSERT INTO " + use + "m (id, small, counter, one) VALUES (1, 0, 9223372036854775807, 1), (2, 0, 0, 2)",
			"INSERT INTO " + use + "parts VALUES (1, 1)",
			"CREATE TABLE " + use + "guarded (id INT PRIMARY KEY, n INT) ENGINE=InnoDB",
			"INSERT INTO " + use + "guarded VALUES (1, 0), (2, 0)",
			"CREATE TRIGGER " + use + `no BEFORE UPDATE ON ` + use + `guarded FOR EACH ROW BEGIN
				IF OLD.id=1 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT='canary'; END IF;
				SIGNAL SQLSTATE '45001' SET MYSQL_ERRNO=31000, MESSAGE_TEXT='canary'; END`,
		} {
			d.exec(t, statement)
		}
		strict := "SET SESSION sql_mode='STRICT_ALL_TABLES'"
		for name, statement := range map[string]string{
			"CHECK":                    "UPDATE " + use + "m SET small=4 WHERE id=1",
			"a BIGINT that counts on":  "UPDATE " + use + "m SET counter=counter+1 WHERE id=1",
			"duplicate":                "UPDATE " + use + "m SET one=2 WHERE id=1",
			"no parent":                "UPDATE " + use + "m SET parent=5 WHERE id=1",
			"SIGNAL":                   "UPDATE " + use + "guarded SET n=1 WHERE id=1",
			"SIGNAL of another number": "UPDATE " + use + "guarded SET n=1 WHERE id=2",
			"no JSON":                  "UPDATE " + use + "m SET doc='no' WHERE id=1",
			"no partition":             "UPDATE " + use + "parts SET n=10",
			"strict NULL":              "UPDATE " + use + "m SET small=NULL WHERE id=1",
			"strict range":             "UPDATE " + use + "m SET small=300 WHERE id=1",
			"strict length":            "UPDATE " + use + "m SET word='long word' WHERE id=1",
			"strict ENUM":              "UPDATE " + use + "m SET kind='z' WHERE id=1",
			"strict charset":           "UPDATE " + use + "m SET word='\u4e2d' WHERE id=1",
			"strict time":              "UPDATE " + use + "m SET at='yesterday' WHERE id=1",
		} {
			conn, err := d.db.Conn(t.Context())
			require.NoError(t, err)
			_, err = conn.ExecContext(t.Context(), strict)
			require.NoError(t, err)
			_, err = conn.ExecContext(t.Context(), statement)
			described := Describe("write", err)
			require.ErrorIs(t, described, ErrRefused, "%s: %v", name, err)
			assert.NotContains(t, described.Error(), "canary")
			require.NoError(t, conn.Close())
		}
		// The relay's own user, whose rights end somewhere.
		err := d.Run(t.Context(), "write", func(ctx context.Context, conn *sql.Conn) error {
			_, err := conn.ExecContext(ctx, "UPDATE mysql.user SET host=host WHERE 1=0")
			return err
		})
		require.ErrorIs(t, err, ErrPrivilege)
	})
}
