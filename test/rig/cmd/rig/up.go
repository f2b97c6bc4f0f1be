package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"example.com/outbox-relay/test/rig"
)

// tableSQL is the pattern's table with the columns that the relay uses where they exist.
const tableSQL = `CREATE TABLE app.local_message (
  id              BIGINT PRIMARY KEY AUTO_INCREMENT,
  msg_id          VARCHAR(64) NOT NULL,
  topic           VARCHAR(64) NOT NULL,
  msg_content     TEXT NOT NULL,
  status          TINYINT NOT NULL,
  retry_count     INT DEFAULT 0,
  next_retry_time DATETIME,
  create_time     DATETIME NOT NULL,
  update_time     DATETIME NOT NULL,
  msg_key         VARCHAR(255),
  headers         TEXT,
  last_error      VARCHAR(512),
  trace_parent    VARCHAR(64),
  UNIQUE KEY uk_msg_id (msg_id),
  KEY idx_status_retry (status, next_retry_time)
)`

const topic = "orders"

// up prepares the database, the relay's user and a topic, prints how to use them, and waits.
func up(ctx context.Context, all *rig.All, out io.Writer) (int, error) {
	for _, server := range []*rig.Server{all.MySQL, all.MariaDB} {
		err := server.Exec(ctx,
			"CREATE DATABASE app", tableSQL,
			"CREATE USER relay@'%' IDENTIFIED BY 'relay'",
			"GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO relay@'%'",
			"GRANT SELECT, INSERT, UPDATE, DELETE ON app.* TO relay@'%'",
		)
		if err != nil {
			return 1, err
		}
	}
	if err := all.Kafka.MakeTopic(ctx, topic, 3); err != nil {
		return 1, err
	}
	if err := explain(out, all); err != nil {
		return 1, err
	}
	<-ctx.Done()
	return 0, nil
}

// explain prints the configuration. All of it is valid YAML, so that it can be saved as it is.
func explain(out io.Writer, all *rig.All) error {
	_, err := fmt.Fprintf(out, `# outbox-relay.yaml for the servers that run until Ctrl-C.
# MySQL %[1]s, MariaDB %[2]s: administrator %[3]s, password %[4]s.
# Write a message:
#   mariadb -h127.0.0.1 -P%[5]s -u%[3]s -p%[4]s app -e "INSERT INTO local_message
#     (msg_id, topic, msg_content, status, create_time, update_time) VALUES (UUID(), '%[6]s', '{}', 0, NOW(), NOW())"
# Read it:
#   kcat -C -b %[7]s -t %[6]s -f '%%k %%h %%s\n'
source:
  primary: {address: "%[1]s", user: relay, password: relay}   # or MariaDB's: %[2]s
  tables: [app.local_message]
kafka:
  brokers: ["%[7]s"]
redis:
  url: %[8]s
`, all.MySQL.Addr, all.MariaDB.Addr, all.MySQL.User, all.MySQL.Password, port(all.MySQL.Addr), topic,
		all.Kafka.Brokers[0], all.Redis.URL())
	return err
}

func port(addr string) string { return addr[strings.LastIndexByte(addr, ':')+1:] }
