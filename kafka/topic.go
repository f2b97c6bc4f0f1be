package kafka

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/IBM/sarama"
)

// Topic is what the brokers say about a topic.
type Topic struct {
	Name       string
	Exists     bool
	Partitions int
	// Leaderless are the partitions that can't be written now.
	Leaderless []int32
	// Replicas is the lowest number of replicas among the partitions.
	Replicas int
	// MaxMessageBytes is the topic's limit on a batch. Where it can't be learnt it is the configured one.
	MaxMessageBytes int
	// MinInSync is the topic's min.insync.replicas, 0 where it can't be learnt.
	MinInSync int
	// Settings reports whether the topic's settings could be read; that takes the right to DescribeConfigs.
	Settings bool
}

// How long an answer is good for. A topic that is missing may be created at any moment, one that is there changes
// rarely.
const (
	topicFresh   = 30 * time.Second
	missingFresh = time.Second
	mostCached   = 10_000
)

// topicCache keeps answers for a short time.
type topicCache struct {
	mu      sync.Mutex
	answers map[string]cachedTopic
}

type cachedTopic struct {
	topic Topic
	until time.Time
}

func newTopicCache() *topicCache { return &topicCache{answers: map[string]cachedTopic{}} }

func (t *topicCache) find(name string) (Topic, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	answer, ok := t.answers[name]
	if !ok || time.Now().After(answer.until) {
		return Topic{}, false
	}
	return answer.topic, true
}

func (t *topicCache) keep(topic Topic) {
	fresh := topicFresh
	if !topic.Exists || len(topic.Leaderless) > 0 || !topic.Settings {
		fresh = missingFresh
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.answers) >= mostCached {
		clear(t.answers)
	}
	t.answers[topic.Name] = cachedTopic{topic, time.Now().Add(fresh)}
}

func (t *topicCache) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.answers, name)
}

// Topic asks about a topic, without creating it. A topic that does not exist is an answer; an error means that nobody
// answered, or that the relay may not know. Answers are cached for a short time.
func (c *Client) Topic(ctx context.Context, name string) (Topic, error) {
	if topic, ok := c.topics.find(name); ok {
		return topic, nil
	}
	topic, err := call(ctx, c, func() (Topic, error) { return c.askTopic(name) })
	if err != nil {
		return Topic{}, fmt.Errorf("look at topic %s: %w", name, explain(err))
	}
	c.topics.keep(topic)
	return topic, nil
}

func (c *Client) askTopic(name string) (Topic, error) {
	topic := Topic{Name: name, MaxMessageBytes: c.cfg.maxMessageBytes()}
	err := c.ask.RefreshMetadata(name)
	switch {
	case errors.Is(err, sarama.ErrUnknownTopicOrPartition):
		return topic, nil
	case errors.Is(err, sarama.ErrLeaderNotAvailable): // for some partitions; which ones is looked up below
	case err != nil:
		return topic, err
	}
	partitions, err := c.ask.Partitions(name)
	if err != nil {
		return topic, err
	}
	topic.Exists = true
	topic.Partitions = len(partitions)
	for _, partition := range partitions {
		if c.ask.PartitionNotReadable(name, partition) {
			topic.Leaderless = append(topic.Leaderless, partition)
		}
		// Replicas also errs when one of them is away, and returns them all the same.
		if replicas, _ := c.ask.Replicas(name, partition); topic.Replicas == 0 || len(replicas) < topic.Replicas {
			topic.Replicas = len(replicas)
		}
	}
	c.askSettings(&topic)
	return topic, nil
}

const (
	settingMaxBytes  = "max.message.bytes"
	settingMinInSync = "min.insync.replicas"
)

// askSettings reads the topic's settings. It may well not be allowed to, which is no fault: the broker's word on a
// record that is too large counts in the end.
func (c *Client) askSettings(topic *Topic) {
	broker := c.ask.LeastLoadedBroker()
	if broker == nil {
		return
	}
	answer, err := broker.DescribeConfigs(&sarama.DescribeConfigsRequest{Version: 2, Resources: []*sarama.ConfigResource{{
		Type: sarama.TopicResource, Name: topic.Name, ConfigNames: []string{settingMaxBytes, settingMinInSync},
	}}})
	if err != nil {
		c.drop(broker)
		return
	}
	for _, resource := range answer.Resources {
		if sarama.KError(resource.ErrorCode) != sarama.ErrNoError {
			continue
		}
		for _, entry := range resource.Configs {
			value, err := strconv.Atoi(entry.Value)
			if err != nil {
				continue
			}
			switch entry.Name {
			case settingMaxBytes:
				topic.MaxMessageBytes, topic.Settings = value, true
			case settingMinInSync:
				topic.MinInSync = value
			}
		}
	}
}

// drop closes a connection after a failure. sarama keeps using one whose answer timed out, and every later answer on
// it is then taken for the wrong request's.
func (c *Client) drop(broker *sarama.Broker) {
	// It is opened anew when it is needed; that it was closed already is fine.
	_ = broker.Close()
}

// CreateTopic makes a topic with the brokers' defaults for partitions and replicas. That it exists already is no
// error.
func (c *Client) CreateTopic(ctx context.Context, name string) error {
	_, err := call(ctx, c, func() (struct{}, error) { return struct{}{}, c.askCreate(name) })
	if err != nil {
		return fmt.Errorf("create topic %s: %w", name, explain(err))
	}
	c.topics.forget(name)
	return nil
}

func (c *Client) askCreate(name string) error {
	// From this sarama learns which broker is the controller.
	if err := c.ask.RefreshMetadata(name); !answered(err) {
		return err
	}
	controller, err := c.ask.Controller()
	if err != nil {
		return err
	}
	request := sarama.NewCreateTopicsRequest(c.ask.Config().Version,
		map[string]*sarama.TopicDetail{name: {NumPartitions: -1, ReplicationFactor: -1}}, probeAck, false)
	answer, err := controller.CreateTopics(request)
	if err != nil {
		c.drop(controller)
		return err
	}
	outcome, ok := answer.TopicErrors[name]
	switch {
	case !ok:
		return sarama.ErrIncompleteResponse
	case errors.Is(outcome.Err, sarama.ErrNoError), errors.Is(outcome.Err, sarama.ErrTopicAlreadyExists):
		return nil
	}
	return outcome
}
