package kafka

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// ReadPast reports whether a consumer group has read past a moment of a topic's partition: its committed offset lies behind
// every record that was published before it. A group that has committed nothing has not.
func (c *Client) ReadPast(ctx context.Context, group, topic string, partition int32, moment time.Time) (bool, error) {
	past, err := call(ctx, c, func() (bool, error) {
		offsets, err := groupOffsets(c.ask, c.drop, group, topic, []int32{partition})
		if err != nil || offsets[partition] < 0 {
			return false, err
		}
		behind, err := c.ask.GetOffset(topic, partition, moment.UnixMilli())
		if err != nil {
			return false, err
		}
		if behind < 0 { // no record is as young as that
			if behind, err = c.ask.GetOffset(topic, partition, sarama.OffsetNewest); err != nil {
				return false, err
			}
		}
		return offsets[partition] >= behind, nil
	})
	if err != nil {
		return false, fmt.Errorf("ask how far group %s has read topic %s: %w", group, topic, explain(err))
	}
	return past, nil
}

// groupOffsets asks for the committed offsets of a group, -1 where it has committed none.
func groupOffsets(client sarama.Client, drop func(*sarama.Broker), group, topic string, partitions []int32) (map[int32]int64, error) {
	coordinator, err := client.Coordinator(group)
	if err != nil {
		return nil, err
	}
	answer, err := coordinator.FetchOffset(sarama.NewOffsetFetchRequest(client.Config().Version, group, map[string][]int32{topic: partitions}))
	if err != nil {
		drop(coordinator)
		return nil, errors.Join(err, client.RefreshCoordinator(group))
	}
	// A group that nobody has heard of has committed nothing; most brokers say so for each partition.
	unknown := errors.Is(answer.GroupError(), sarama.ErrGroupIDNotFound)
	if code := answer.GroupError(); !unknown && !errors.Is(code, sarama.ErrNoError) {
		if errors.Is(code, sarama.ErrNotCoordinatorForConsumer) {
			return nil, errors.Join(code, client.RefreshCoordinator(group))
		}
		return nil, code
	}
	offsets := make(map[int32]int64, len(partitions))
	for _, partition := range partitions {
		block := answer.GetBlock(topic, partition)
		if unknown {
			offsets[partition] = -1
			continue
		}
		if block == nil {
			return nil, sarama.ErrIncompleteResponse
		}
		if !errors.Is(block.Err, sarama.ErrNoError) {
			return nil, block.Err
		}
		offsets[partition] = block.Offset
	}
	return offsets, nil
}
