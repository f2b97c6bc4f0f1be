package kgoinbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/rs/zerolog"
	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/outbox-relay/inbox"
	"example.com/outbox-relay/inbox/internal/loop"
	"example.com/outbox-relay/retry"
	"example.com/outbox-relay/retry/trouble"
)

const (
	// letterTimeout is how long a dead letter may take before it is tried anew.
	letterTimeout = 20 * time.Second
	// leaveTimeout is how long the end may take once all handlers have returned.
	leaveTimeout = 10 * time.Second
	// errorPause keeps a broken fetch from making a hot loop.
	errorPause = 250 * time.Millisecond
)

// Run consumes the topics as a member of the inbox's group, until ctx ends (nil), or the policy stops before a message
// (*inbox.Stopped). Brokers and databases that are away are waited for. What is wrong with the configuration is returned at once.
func Run(ctx context.Context, in *inbox.Inbox, handler inbox.Handler, cfg Config, log zerolog.Logger) error {
	cfg, err := cfg.complete()
	if err != nil {
		return fmt.Errorf("consume by franz-go: %w", err)
	}
	log = log.With().Str("component", "kgoinbox").Logger()
	m := &member{log: log, workers: map[place]*worker{}}
	client, err := kgo.NewClient(cfg.options(in.Group(), m)...)
	if err != nil {
		return fmt.Errorf("consume by franz-go: %w", err)
	}
	m.engine = loop.New(in, handler, cfg.Policy, &mailer{client}, log)
	ctx, m.cancel = context.WithCancelCause(ctx)
	defer m.cancel(nil)
	m.poll(ctx, client)
	m.leave(context.WithoutCancel(ctx), client) // what is done is committed although ctx has ended
	if stopped, ok := errors.AsType[*inbox.Stopped](context.Cause(ctx)); ok {
		return stopped
	}
	return nil
}

// place is one partition of one topic.
type place struct {
	topic     string
	partition int32
}

// member is this process in the group.
type member struct {
	engine *loop.Engine
	log    zerolog.Logger
	cancel context.CancelCauseFunc

	mu      sync.Mutex
	workers map[place]*worker
}

// poll hands records to the workers and never waits for them. A rebalance happens only between two rounds, so the worker of
// every polled partition exists.
func (m *member) poll(ctx context.Context, client *kgo.Client) {
	state := trouble.New(m.log, trouble.Texts{Fails: "trouble with the brokers", Works: "the brokers serve again", Level: zerolog.WarnLevel})
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		if fetches.IsClientClosed() || ctx.Err() != nil {
			break
		}
		fetches.EachPartition(func(p kgo.FetchTopicPartition) {
			if w := m.find(place{p.Topic, p.Partition}); w != nil && len(p.Records) > 0 {
				w.add(p.Records)
			}
		})
		client.AllowRebalance()
		failed := fetches.Errors()
		if len(failed) == 0 {
			state.Note(nil)
			continue
		}
		state.Note(fmt.Errorf("fetch partition %d of %s: %w", failed[0].Partition, failed[0].Topic, failed[0].Err))
		if retry.Wait(ctx, errorPause) != nil {
			break
		}
	}
	client.AllowRebalance()
}

// leave ends all workers, commits what is done, and leaves the group.
func (m *member) leave(ctx context.Context, client *kgo.Client) {
	m.end(nil)
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if err := client.CommitMarkedOffsets(ctx); err != nil {
		m.log.Warn().Err(err).Msg("offsets could not be committed; what was done since the last commit is delivered again and skipped")
	}
	if err := client.LeaveGroupContext(ctx); err != nil {
		m.log.Warn().Err(err).Msg("leaving the group")
	}
	client.CloseAllowingRebalance()
}

func (m *member) find(p place) *worker {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.workers[p]
}

// assigned starts a worker for each new partition, before its first fetch. The callbacks' context is the client's, which
// ends with the client alone; the workers are ended by revoked, lost and leave.
func (m *member) assigned(ctx context.Context, client *kgo.Client, added map[string][]int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for topic, partitions := range added {
		for _, partition := range partitions {
			p := place{topic, partition}
			if m.workers[p] == nil {
				m.workers[p] = m.start(ctx, client, p)
			}
		}
	}
	if len(added) > 0 {
		m.log.Info().Interface("claims", added).Msg("partitions assigned")
	}
}

// revoked ends the workers of partitions that go to others and commits what they have done, while they are still ours.
func (m *member) revoked(ctx context.Context, client *kgo.Client, gone map[string][]int32) {
	if len(gone) == 0 {
		return
	}
	m.end(gone)
	ctx, cancel := context.WithTimeout(ctx, leaveTimeout)
	defer cancel()
	if err := client.CommitMarkedOffsets(ctx); err != nil {
		m.log.Warn().Err(err).Msg("offsets of revoked partitions could not be committed; what was done since the last commit is delivered again and skipped")
	}
}

// lost ends the workers of partitions that are others' already. There is nothing to commit any more.
func (m *member) lost(_ context.Context, _ *kgo.Client, gone map[string][]int32) {
	if len(gone) > 0 {
		m.end(gone)
	}
}

// end stops the workers of these partitions, of all when nil, side by side, and waits for them.
func (m *member) end(gone map[string][]int32) {
	ending := m.take(gone)
	for _, w := range ending {
		w.cancel()
	}
	for _, w := range ending {
		<-w.ended
	}
}

func (m *member) take(gone map[string][]int32) []*worker {
	m.mu.Lock()
	defer m.mu.Unlock()
	var taken []*worker
	if gone == nil {
		for p, w := range m.workers {
			taken = append(taken, w)
			delete(m.workers, p)
		}
		return taken
	}
	for topic, partitions := range gone {
		for _, partition := range partitions {
			p := place{topic, partition}
			if w := m.workers[p]; w != nil {
				taken = append(taken, w)
				delete(m.workers, p)
			}
		}
	}
	return taken
}
