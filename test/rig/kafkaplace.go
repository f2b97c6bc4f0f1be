package rig

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// CreateTopicOn creates a topic whose partitions have one replica each, all on the n-th broker, from 0: while that broker
// is away the topic has no leader. It waits until each partition has one.
func (s *KafkaServer) CreateTopicOn(t testing.TB, n int, name string, partitions int) {
	t.Helper()
	s.owned(t)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), time.Minute)
	defer cancel()
	topic := kmsg.NewCreateTopicsRequestTopic()
	topic.Topic, topic.NumPartitions, topic.ReplicationFactor = name, -1, -1 // the assignment tells both
	for p := range partitions {
		place := kmsg.NewCreateTopicsRequestTopicReplicaAssignment()
		place.Partition, place.Replicas = int32(p), []int32{int32(n + 1)}
		topic.ReplicaAssignment = append(topic.ReplicaAssignment, place)
	}
	if err := s.makeTopic(ctx, &topic, partitions); err != nil {
		t.Fatal(err)
	}
}
