#!/bin/bash
# Run once by the image, on an empty data folder: the message table, the service's user and the relay's.
# `outbox-relay init --print-sql` prints the same for a server that exists already.
set -euo pipefail

app_password=$(cat /run/secrets/app_password)
relay_password=$(cat /run/secrets/relay_password)

mysql --defaults-extra-file=<(printf '[client]\npassword="%s"\n' "$(cat /run/secrets/mysql_root_password)") --user=root <<SQL
CREATE DATABASE IF NOT EXISTS app CHARACTER SET utf8mb4;

CREATE TABLE IF NOT EXISTS app.local_message (
  id              BIGINT PRIMARY KEY AUTO_INCREMENT,
  msg_id          VARCHAR(64) NOT NULL,
  topic           VARCHAR(64) NOT NULL,
  msg_content     TEXT NOT NULL,
  status          TINYINT NOT NULL,
  retry_count     INT DEFAULT 0,
  next_retry_time DATETIME,
  create_time     DATETIME NOT NULL,
  update_time     DATETIME NOT NULL,
  msg_key         VARCHAR(255) NULL,
  headers         TEXT NULL,
  last_error      VARCHAR(1024) NULL,
  trace_parent    VARCHAR(64) NULL,
  UNIQUE KEY uk_msg_id (msg_id),
  KEY idx_status_retry (status, next_retry_time)
);

-- The service: its own tables and the messages.
CREATE USER IF NOT EXISTS 'app'@'%' IDENTIFIED BY '${app_password}';
GRANT ALL PRIVILEGES ON app.* TO 'app'@'%';

-- The relay: reads the binlog, marks rows. The last one is optional: marks then write less binlog.
CREATE USER IF NOT EXISTS 'relay'@'%' IDENTIFIED BY '${relay_password}';
GRANT SELECT, UPDATE ON app.local_message TO 'relay'@'%';
GRANT REPLICATION SLAVE, REPLICATION CLIENT ON *.* TO 'relay'@'%';
GRANT SESSION_VARIABLES_ADMIN ON *.* TO 'relay'@'%';
SQL
