package kgoinbox

import (
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/outbox-relay/inbox"
)

// Config says what to consume, and how to reach it.
type Config struct {
	// Client are the options of the client: brokers, TLS, SASL, balancers, instance id, time-outs. A new group begins at the start of
	// the topic unless they say otherwise. The group, its topics, its callbacks and how offsets are committed are Run's.
	Client []kgo.Opt
	Topics []string
	Policy inbox.Policy
	// CommitEvery is how often offsets are committed. Default 1 s.
	CommitEvery time.Duration
	// RebalanceTimeout is how long the group waits for this member to give partitions back. Default 60 s. It must be longer than
	// Policy.Grace and the five seconds after it.
	RebalanceTimeout time.Duration
}

const (
	defaultCommitEvery = time.Second
	defaultRebalance   = time.Minute
	clientID           = "inbox"
	// settle is what the engine gives a handler beyond the grace.
	settle = 5 * time.Second
)

func (c Config) complete() (Config, error) {
	var errs []error
	if len(c.Topics) == 0 {
		errs = append(errs, errors.New("topics: at least one is needed"))
	}
	policy, err := c.Policy.Complete()
	if err != nil {
		errs = append(errs, fmt.Errorf("policy: %w", err))
	}
	c.Policy = policy
	if c.CommitEvery < 0 || c.RebalanceTimeout < 0 {
		errs = append(errs, errors.New("a time is negative: leave it 0 for the default"))
	}
	if c.CommitEvery == 0 {
		c.CommitEvery = defaultCommitEvery
	}
	if c.RebalanceTimeout == 0 {
		c.RebalanceTimeout = defaultRebalance
	}
	if c.Policy.Grace+settle >= c.RebalanceTimeout {
		errs = append(errs, fmt.Errorf("policy: grace is %s: with %s for the handler to notice it must be shorter than the rebalance timeout of %s",
			c.Policy.Grace, settle, c.RebalanceTimeout))
	}
	return c, errors.Join(errs...)
}

// options returns the client's options; Run's come last and win.
func (c *Config) options(group string, m *member) []kgo.Opt {
	opts := append([]kgo.Opt{kgo.ClientID(clientID)}, c.Client...)
	return append(opts,
		kgo.ConsumerGroup(group),
		kgo.ConsumeTopics(c.Topics...),
		kgo.RebalanceTimeout(c.RebalanceTimeout),
		kgo.AutoCommitMarks(),
		kgo.AutoCommitInterval(c.CommitEvery),
		kgo.BlockRebalanceOnPoll(),
		kgo.OnPartitionsAssigned(m.assigned),
		kgo.OnPartitionsRevoked(m.revoked),
		kgo.OnPartitionsLost(m.lost),
		// For dead letters: every in-sync replica's ack, or an error within a bounded time.
		kgo.RequiredAcks(kgo.AllISRAcks()),
		kgo.RecordDeliveryTimeout(letterTimeout),
	)
}
