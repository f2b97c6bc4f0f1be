package saramainbox

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/IBM/sarama"

	"example.com/outbox-relay/inbox"
)

// Config says what to consume, and how to reach it.
type Config struct {
	Brokers []string
	Topics  []string
	// Sarama holds what is the client's: TLS, SASL, version, sizes, time-outs, the group's strategies and instance id, the first
	// offset. It is copied. Nil means NewConfig. Begin with NewConfig rather than sarama.NewConfig, which makes a new group
	// begin at the end of the topic and so pass over what is there already. How offsets are committed is Run's.
	Sarama *sarama.Config
	Policy inbox.Policy
	// CommitEvery is how often offsets are committed. Default 1 s.
	CommitEvery time.Duration
}

const (
	defaultCommitEvery = time.Second
	clientID           = "inbox"
)

// NewConfig returns sarama's configuration with what an inbox wants: a new group begins at the start of the topic, partitions
// stay where they are when members come and go, and the client's name is inbox.
func NewConfig() *sarama.Config {
	sc := sarama.NewConfig()
	sc.ClientID = clientID
	sc.Consumer.Offsets.Initial = sarama.OffsetOldest
	sc.Consumer.Group.Rebalance.GroupStrategies = []sarama.BalanceStrategy{sarama.NewBalanceStrategySticky()}
	return sc
}

// complete returns the configuration with its defaults, and sarama's as Run needs it.
func (c Config) complete() (Config, *sarama.Config, error) {
	var errs []error
	if len(c.Brokers) == 0 {
		errs = append(errs, errors.New("brokers: at least one host:port is needed"))
	}
	if len(c.Topics) == 0 {
		errs = append(errs, errors.New("topics: at least one is needed"))
	}
	policy, err := c.Policy.Complete()
	if err != nil {
		errs = append(errs, fmt.Errorf("policy: %w", err))
	}
	c.Policy = policy
	if c.CommitEvery < 0 {
		errs = append(errs, fmt.Errorf("commit every %s: it must be positive, or 0 for %s", c.CommitEvery, defaultCommitEvery))
	}
	if c.CommitEvery == 0 {
		c.CommitEvery = defaultCommitEvery
	}
	sc := NewConfig()
	if c.Sarama != nil {
		copied := *c.Sarama
		sc = &copied
	}
	sc.Consumer.Return.Errors = true
	sc.Consumer.Offsets.AutoCommit.Enable = true // marked offsets only, and Run marks what is done
	sc.Consumer.Offsets.AutoCommit.Interval = c.CommitEvery
	if err := sc.Validate(); err != nil {
		errs = append(errs, fmt.Errorf("sarama: %w", err))
	}
	if cooperative(sc) {
		errs = append(errs, errors.New("sarama: a cooperative strategy; take range, round robin or sticky, or package kgoinbox"))
	}
	if limit := sc.Consumer.Group.Rebalance.Timeout; c.Policy.Grace >= limit {
		errs = append(errs, fmt.Errorf("policy: grace is %s: it must be shorter than the rebalance timeout of %s", c.Policy.Grace, limit))
	}
	return c, sc, errors.Join(errs...)
}

// cooperative reports whether a strategy gives partitions back one by one while the session goes on.
func cooperative(sc *sarama.Config) bool {
	strategies := sc.Consumer.Group.Rebalance.GroupStrategies
	if one := sc.Consumer.Group.Rebalance.Strategy; one != nil { // deprecated, and sarama still prefers it
		strategies = []sarama.BalanceStrategy{one}
	}
	return slices.ContainsFunc(strategies, func(s sarama.BalanceStrategy) bool {
		return s.Name() == sarama.CooperativeStickyBalanceStrategyName
	})
}
