package rig

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"example.com/outbox-relay/test/rig/internal/proc"
)

// KafkaServer is a Kafka 4.1 cluster, of one broker unless KafkaBrokers asked for more. Topics are not created by
// themselves.
type KafkaServer struct {
	Brokers []string // 127.0.0.1:port of each
	nodes   []*control
	own     bool
}

// Kafka returns a Kafka. Tests that share it keep to topics of their own (Topic).
func Kafka(t testing.TB, opts ...Option) *KafkaServer {
	t.Helper()
	refuseInUnitTests(t)
	s := collect(opts)
	if !s.own {
		server, err := sharedKafka()
		if err != nil {
			t.Fatal(err)
		}
		return server
	}
	server, err := startKafka(context.WithoutCancel(t.Context()), s)
	if err != nil {
		t.Fatal(err)
	}
	server.own = true
	for _, node := range server.nodes {
		node.own = true
		node.adopt(t)
	}
	return server
}

// Broker returns the n-th broker, from 0, to be stopped and started alone. Broker 0 is the controller as well.
func (s *KafkaServer) Broker(t testing.TB, n int) *Broker {
	t.Helper()
	s.owned(t)
	return &Broker{control: s.nodes[n], Addr: s.Brokers[n]}
}

// Broker is one broker of a KafkaServer of the test's own.
type Broker struct {
	*control
	Addr string
}

// Stop ends all brokers as an operator would.
func (s *KafkaServer) Stop(t testing.TB) {
	t.Helper()
	s.owned(t)
	// The controller last: the others sign off with it.
	for _, node := range slices.Backward(s.nodes) {
		node.Stop(t)
	}
}

// Start runs the stopped brokers again on the same folders and ports.
func (s *KafkaServer) Start(t testing.TB) {
	t.Helper()
	s.owned(t)
	if err := s.start(context.WithoutCancel(t.Context())); err != nil {
		t.Fatal(err)
	}
}

// Restart is Stop and Start.
func (s *KafkaServer) Restart(t testing.TB) {
	t.Helper()
	s.Stop(t)
	s.Start(t)
}

// Kill ends all brokers with SIGKILL; Start brings them back.
func (s *KafkaServer) Kill(t testing.TB) {
	t.Helper()
	s.owned(t)
	for _, node := range s.nodes {
		node.Kill(t)
	}
}

// Pause freezes all brokers: their connections stay open and nothing answers.
func (s *KafkaServer) Pause(t testing.TB) {
	t.Helper()
	s.owned(t)
	for _, node := range s.nodes {
		node.Pause(t)
	}
}

// Resume lets the paused brokers go on.
func (s *KafkaServer) Resume(t testing.TB) { t.Helper(); s.signal(t, syscall.SIGCONT) }

func (s *KafkaServer) signal(t testing.TB, sig syscall.Signal) {
	t.Helper()
	s.owned(t)
	for _, node := range s.nodes {
		node.must(t, func() error { return node.inst.signal(sig) })
	}
}

func (s *KafkaServer) owned(t testing.TB) {
	t.Helper()
	if !s.own {
		t.Fatal("other tests use this Kafka too: ask for one of your own with rig.Own()")
	}
}

// Topic creates a topic of the test's own with the default settings, and returns its name.
func (s *KafkaServer) Topic(t testing.TB, partitions int) string {
	t.Helper()
	name := unique("t_", t)
	s.CreateTopic(t, name, partitions, nil)
	return name
}

// CreateTopic creates a topic and waits until each partition has a leader. There are as many replicas as brokers. On
// the shared Kafka it is deleted when the test ends.
func (s *KafkaServer) CreateTopic(t testing.TB, name string, partitions int, configs map[string]string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	if err := s.createTopic(ctx, name, partitions, configs); err != nil {
		t.Fatal(err)
	}
	if !s.own {
		t.Cleanup(func() { s.DeleteTopic(t, name) })
	}
}

// DeleteTopic deletes a topic; one that is not there is no error.
func (s *KafkaServer) DeleteTopic(t testing.TB, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	err := s.ask(func(client *kgo.Client) error {
		req := kmsg.NewPtrDeleteTopicsRequest()
		topic := kmsg.NewDeleteTopicsRequestTopic()
		topic.Topic = &name
		req.TopicNames, req.Topics = []string{name}, append(req.Topics, topic)
		req.TimeoutMillis = 30_000
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		return kerr.ErrorForCode(resp.Topics[0].ErrorCode)
	})
	if err != nil && !errors.Is(err, kerr.UnknownTopicOrPartition) {
		t.Fatalf("delete topic %s: %v", name, err)
	}
}

func (s *KafkaServer) createTopic(ctx context.Context, name string, partitions int, configs map[string]string) error {
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, int32(partitions), int16(len(s.Brokers))
	for key, value := range configs {
		config := kmsg.NewCreateTopicsRequestTopicConfig()
		config.Name, config.Value = key, &value
		topic.Configs = append(topic.Configs, config)
	}
	return s.makeTopic(ctx, &topic, partitions)
}

// makeTopic creates a topic and waits until each partition has a leader.
func (s *KafkaServer) makeTopic(ctx context.Context, topic *kmsg.CreateTopicsRequestTopic, partitions int) error {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.Topics, req.TimeoutMillis = append(req.Topics, *topic), 30_000
	err := s.ask(func(client *kgo.Client) error {
		resp, err := req.RequestWith(ctx, client)
		if err != nil {
			return err
		}
		if err := kerr.ErrorForCode(resp.Topics[0].ErrorCode); err != nil {
			if detail := resp.Topics[0].ErrorMessage; detail != nil {
				return fmt.Errorf("%w: %s", err, *detail)
			}
			return err
		}
		return proc.Poll(ctx, func(ctx context.Context) error { return allLed(ctx, client, topic.Topic, partitions) })
	})
	if err != nil {
		return fmt.Errorf("create topic %s: %w", topic.Topic, err)
	}
	return nil
}

// allLed asks once whether every partition has a leader.
func allLed(ctx context.Context, client *kgo.Client, name string, partitions int) error {
	req := kmsg.NewPtrMetadataRequest()
	topic := kmsg.NewMetadataRequestTopic()
	topic.Topic = &name
	req.Topics = append(req.Topics, topic)
	resp, err := req.RequestWith(ctx, client)
	if err != nil {
		return err
	}
	led := 0
	for _, partition := range resp.Topics[0].Partitions {
		if partition.ErrorCode == 0 && partition.Leader >= 0 {
			led++
		}
	}
	if led < partitions {
		return fmt.Errorf("%d of %d partitions have a leader", led, partitions)
	}
	return nil
}

// ask runs requests on a client that is closed afterwards, so that leak checkers see nothing of the rig.
func (s *KafkaServer) ask(do func(*kgo.Client) error) error {
	client, err := kgo.NewClient(kgo.SeedBrokers(s.Brokers...), kgo.DialTimeout(5*time.Second))
	if err != nil {
		return err
	}
	defer client.Close()
	return do(client)
}
