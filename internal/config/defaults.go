package config

import (
	"time"

	"example.com/outbox-relay/outbox"
)

// Defaults returns the configuration of an empty file.
func Defaults() *Config {
	return &Config{
		Sources: []Source{defaultSource()},
		Router:  Router{Order: "strict", AfterDead: "release"},
		Kafka: Kafka{
			Brokers: []string{"127.0.0.1:9092"}, ClientID: "outbox-relay", TLS: tlsOff,
			Compression: "none", MaxMessageBytes: mib, DedupeOnRestart: "on",
		},
		Redis:      Redis{URL: []SecretURL{newSecretURL("redis://127.0.0.1:6379/0")}, Prefix: "outbox-relay:"},
		Checkpoint: Checkpoint{Interval: time.Second, Start: "now"},
		Limits: Limits{
			InFlight: 20000, InFlightBytes: 64 * mib, Unmarked: 200000,
			MarkBatch: 1000, MarkDelay: 20 * time.Millisecond,
		},
		Retry: Retry{
			Backoff: []time.Duration{10 * time.Second, 30 * time.Second, time.Minute, 5 * time.Minute},
			Jitter:  0.2, MaxRetries: 16,
		},
		Sweep:  Sweep{Interval: 30 * time.Second, Batch: 500, Grace: 5 * time.Second},
		Leader: Leader{Lock: "mysql", Lease: 10 * time.Second},
		Acks:   Acks{ConsumerGroup: "outbox-relay-{source}-acks", Table: "{table}_ack"},
		Archive: Archive{
			After: 168 * time.Hour, Statuses: []string{outbox.Consumed.String()}, Table: "{table}_history",
			Batch: 500, Interval: 10 * time.Minute,
		},
		Console:  Console{Listen: "127.0.0.1:9180"},
		Log:      Log{Level: "info", Format: "auto"},
		Shutdown: Shutdown{Timeout: 25 * time.Second},
	}
}

func defaultSource() Source {
	return Source{
		Name:    "default",
		Primary: Server{Address: "127.0.0.1:3306", User: "relay", TLS: tlsPreferred},
		Tables:  []string{"app.local_message"},
		Mode:    "auto",
		Columns: Columns{
			ID: "id", MsgID: "msg_id", Topic: "topic", Content: "msg_content", Status: "status",
			RetryCount: "retry_count", NextRetryTime: "next_retry_time",
			CreateTime: "create_time", UpdateTime: "update_time",
			Key: "msg_key", Headers: "headers", LastError: "last_error", Trace: "trace_parent", BodyRef: "body_ref",
		},
		Statuses: Statuses{Pending: 0, Sent: 1, Failed: 2, Consumed: 3, Dead: 4, Discarded: 5},
	}
}
