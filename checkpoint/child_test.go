package checkpoint_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/checkpoint"
)

// childAnswer is what the child says about itself.
type childAnswer struct {
	Valid  bool
	Lost   bool
	Fenced bool
	Error  string
}

// leaseChild leads the source, then answers each line of in: is its lease valid, may it save? The target is JSON.
func leaseChild(where string, in io.Reader, out io.Writer) int {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var target struct{ URL, Prefix string }
	if json.Unmarshal([]byte(where), &target) != nil {
		return 2
	}
	store, err := checkpoint.Open(checkpoint.Config{URLs: []string{target.URL}, Prefix: target.Prefix, Owner: "child"}, zerolog.Nop())
	if err != nil {
		return 2
	}
	lease, err := store.AcquireLease(ctx, source, time.Second)
	if err != nil {
		return 2
	}
	epoch, err := store.NextEpoch(ctx, source)
	if err != nil {
		return 2
	}
	answers := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	for {
		answer := childAnswer{Valid: lease.Valid(), Lost: isLost(lease.Lost())}
		if err := store.Save(ctx, source, record(epoch, 1)); err != nil {
			answer.Fenced, answer.Error = errors.Is(err, checkpoint.ErrFenced), err.Error()
		}
		if answers.Encode(answer) != nil || !lines.Scan() {
			return 0
		}
	}
}
