package kafka

import (
	"context"
	"iter"
	"maps"
	"slices"

	"github.com/IBM/sarama"
)

// partition is one partition of a topic.
type partition struct {
	topic string
	id    int32
}

// leaders asks the leaders of partitions, for all who read records: the tail, staged bodies, consumers' reports. One
// goroutine uses it.
type leaders struct {
	client *Client         // counts the requests, so that its Close waits for them
	ask    sarama.Client   // has the metadata and the connections
	stale  map[string]bool // topics whose leaders may have moved
}

func newLeaders(client *Client, ask sarama.Client) *leaders {
	return &leaders{client: client, ask: ask, stale: map[string]bool{}}
}

// result is what is known of a partition, or why nothing is.
type result[A any] struct {
	value A
	err   error
}

// A question is one request to a leader, about partitions of it, each with an offset or a time.
type question[A any] func(leader *sarama.Broker, about map[partition]int64) (answer[A], error)

// An answer returns what it says of a partition.
type answer[A any] func(partition) (A, error)

// askAll asks each leader once, all at the same time, and ranges over the results as they come. With ctx it ends
// early, without results: a request can't be called back, it goes on until the client's time-outs, and its answer is
// nobody's.
func askAll[A any](
	ctx context.Context, l *leaders, about map[partition]int64, ask question[A],
) iter.Seq2[partition, result[A]] {
	return func(yield func(partition, result[A]) bool) {
		found := l.find(ctx, about)
		answers := make(chan map[partition]result[A], 1+len(found.by)) // room for those that nobody waits for
		answers <- resultsOf(found.failed, func(at partition) (none A, err error) { return none, found.failed[at] })
		for leader, group := range found.by {
			go func() { answers <- resultsOf(group, askOne(l.client, leader, group, ask)) }()
		}
		for range 1 + len(found.by) {
			var results map[partition]result[A]
			select {
			case results = <-answers:
			case <-ctx.Done():
			}
			if ctx.Err() != nil {
				return
			}
			for at, r := range results {
				if r.err != nil {
					l.stale[at.topic] = true
				}
				if !yield(at, r) {
					return
				}
			}
		}
	}
}

func askOne[A any](c *Client, leader *sarama.Broker, about map[partition]int64, ask question[A]) answer[A] {
	err := c.enter()
	if err == nil {
		defer c.calls.Done()
		var say answer[A]
		if say, err = ask(leader, about); err == nil {
			return say
		}
		c.drop(leader)
	}
	return func(partition) (none A, _ error) { return none, err }
}

func resultsOf[A, T any](of map[partition]T, say answer[A]) map[partition]result[A] {
	results := make(map[partition]result[A], len(of))
	for at := range of {
		value, err := say(at)
		results[at] = result[A]{value, err}
	}
	return results
}

// grouped are partitions by their leaders, and those that have none now.
type grouped struct {
	by     map[*sarama.Broker]map[partition]int64
	failed map[partition]error
}

// find finds the leaders. It asks anew for those that may have moved.
func (l *leaders) find(ctx context.Context, about map[partition]int64) grouped {
	stale, about := slices.Collect(maps.Keys(l.stale)), maps.Clone(about) // the question may outlive this call
	clear(l.stale)
	found, err := call(ctx, l.client, func() (grouped, error) {
		found := grouped{map[*sarama.Broker]map[partition]int64{}, map[partition]error{}}
		if len(stale) > 0 {
			if err := l.ask.RefreshMetadata(stale...); !answered(err) {
				return found, err
			}
		}
		for at, with := range about {
			leader, err := l.ask.Leader(at.topic, at.id)
			switch {
			case err != nil:
				found.failed[at] = err
			case found.by[leader] == nil:
				found.by[leader] = map[partition]int64{at: with}
			default:
				found.by[leader][at] = with
			}
		}
		return found, nil
	})
	if err == nil {
		return found
	}
	nobody := grouped{failed: make(map[partition]error, len(about))}
	for at := range about {
		nobody.failed[at] = err
	}
	return nobody
}
