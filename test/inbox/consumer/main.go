// Command consumer handles messages once: each adds a row to the table effect and points to an account. Tests kill it.
package main

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	_ "github.com/go-sql-driver/mysql" // the driver of the DSN
	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/inbox/kgoinbox"
	"example.com/outbox-relay/inbox/saramainbox"
)

type settings struct {
	adapter, brokers, topic, group, dsn, instance string
	session                                       time.Duration
}

func main() {
	var s settings
	flag.StringVar(&s.adapter, "adapter", "", "sarama or kgo")
	flag.StringVar(&s.brokers, "brokers", "", "host:port, separated by commas")
	flag.StringVar(&s.topic, "topic", "", "the topic")
	flag.StringVar(&s.group, "group", "", "the consumer group")
	flag.StringVar(&s.dsn, "dsn", "", "the database")
	flag.StringVar(&s.instance, "instance", "", "the group's instance id, none by default")
	flag.DurationVar(&s.session, "session", 6*time.Second, "the group's session time-out")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	log := zerolog.New(os.Stderr).With().Timestamp().Logger()
	err := run(ctx, s, log)
	stop()
	if err != nil {
		log.Error().Err(err).Msg("ended")
		os.Exit(1)
	}
}

func run(ctx context.Context, s settings, log zerolog.Logger) (err error) {
	db, err := sql.Open("mysql", s.dsn)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	db.SetMaxIdleConns(8)
	in, err := inbox.New(db, inbox.Config{Group: s.group})
	if err != nil {
		return err
	}
	policy := inbox.Policy{Poison: inbox.Stop, NoID: inbox.Stop, Grace: 5 * time.Second}
	brokers := strings.Split(s.brokers, ",")
	switch s.adapter {
	case "sarama":
		sc := saramainbox.NewConfig()
		sc.Consumer.Group.InstanceId = s.instance
		sc.Consumer.Group.Session.Timeout, sc.Consumer.Group.Heartbeat.Interval = s.session, s.session/6
		return saramainbox.Run(ctx, in, handle, saramainbox.Config{Brokers: brokers, Topics: []string{s.topic}, Sarama: sc, Policy: policy}, log)
	case "kgo":
		opts := []kgo.Opt{kgo.SeedBrokers(brokers...), kgo.SessionTimeout(s.session), kgo.HeartbeatInterval(s.session / 6)}
		if s.instance != "" {
			opts = append(opts, kgo.InstanceID(s.instance))
		}
		return kgoinbox.Run(ctx, in, handle, kgoinbox.Config{Client: opts, Topics: []string{s.topic}, Policy: policy}, log)
	}
	return fmt.Errorf("adapter %q is neither sarama nor kgo", s.adapter)
}

// handle has two effects that would show a second run: a row without a unique key, and a sum.
func handle(ctx context.Context, tx *sql.Tx, d *inbox.Delivery) error {
	if _, err := tx.ExecContext(ctx, "INSERT INTO effect (msg_id, partition_no, record_offset) VALUES (?, ?, ?)", d.ID, d.Partition, d.Offset); err != nil {
		return err
	}
	_, err := tx.ExecContext(ctx, "UPDATE account SET points = points + 1 WHERE id = ?", d.Partition)
	return err
}
