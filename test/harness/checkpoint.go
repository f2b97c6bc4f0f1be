package harness

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/oracle"
)

// CheckpointReader reads a saved checkpoint from Redis as it stands there, without the relay's own code.
type CheckpointReader struct {
	client *redis.Client
	key    string
}

// NewCheckpointReader reads {prefix}{source}:checkpoint; the client is closed with the test.
func NewCheckpointReader(t testing.TB, url, prefix, source string) *CheckpointReader {
	t.Helper()
	opts, err := redis.ParseURL(url)
	if err != nil {
		t.Fatalf("redis url: %v", err)
	}
	opts.MaxRetries, opts.DialTimeout, opts.ReadTimeout = -1, time.Second, time.Second
	client := redis.NewClient(opts)
	t.Cleanup(func() { _ = client.Close() })
	return &CheckpointReader{client: client, key: prefix + source + ":checkpoint"}
}

// ErrNoCheckpoint tells that none is saved.
var ErrNoCheckpoint = errors.New("no checkpoint")

// Read returns the saved checkpoint.
func (c *CheckpointReader) Read(ctx context.Context) (oracle.Sample, error) {
	fields, err := c.client.HGetAll(ctx, c.key).Result()
	if err != nil {
		return oracle.Sample{}, fmt.Errorf("read %s: %w", c.key, err)
	}
	if len(fields) == 0 {
		return oracle.Sample{}, ErrNoCheckpoint
	}
	pos, err := strconv.ParseUint(fields["pos"], 10, 64)
	if err != nil {
		return oracle.Sample{}, fmt.Errorf("read %s: pos %q is no number", c.key, fields["pos"])
	}
	epoch, err := strconv.ParseInt(fields["epoch"], 10, 64)
	if err != nil {
		return oracle.Sample{}, fmt.Errorf("read %s: epoch %q is no number", c.key, fields["epoch"])
	}
	return oracle.Sample{
		At: time.Now(), Epoch: epoch,
		Position: position.Position{
			Server: fields["server"], Flavor: fields["flavor"], GTID: fields["gtid"], File: fields["file"], Pos: pos,
		},
	}, nil
}
