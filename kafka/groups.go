package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/IBM/sarama"
)

// ReadPast reports whether a consumer group has read past a moment of a topic's partition: its committed offset lies
// behind every record that was published before it. A group that has committed nothing has not.
func (c *Client) ReadPast(ctx context.Context, group, topic string, partition int32, moment time.Time) (bool, error) {
	past, err := call(ctx, c, func() (bool, error) {
		offsets, err := c.committed(c.ask, group, topic, []int32{partition})
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

// committed asks for the committed offsets of a group, -1 where it has committed none.
func (c *Client) committed(ask sarama.Client, group, topic string, partitions []int32) (map[int32]int64, error) {
	request := sarama.NewOffsetFetchRequest(ask.Config().Version, group, map[string][]int32{topic: partitions})
	offsets := make(map[int32]int64, len(partitions))
	return offsets, c.coordinator(ask, group, func(coordinator *sarama.Broker) error {
		answer, err := coordinator.FetchOffset(request)
		if err != nil {
			return err
		}
		err = errorOf(answer.GroupError())
		// A group that nobody has heard of has committed nothing; most brokers say so for each partition.
		unknown := errors.Is(err, sarama.ErrGroupIDNotFound)
		if unknown {
			err = nil
		}
		for _, partition := range partitions {
			block := answer.GetBlock(topic, partition)
			switch {
			case unknown:
				offsets[partition] = -1
			case block == nil:
				err = cmp.Or(err, sarama.ErrIncompleteResponse)
			default:
				err = cmp.Or(err, errorOf(block.Err))
				offsets[partition] = block.Offset
			}
		}
		return err
	})
}

// commit keeps offsets for a group, as a consumer does that takes no part in the group protocol.
func (c *Client) commit(ask sarama.Client, group, topic string, offsets map[int32]int64) error {
	request := sarama.NewOffsetCommitRequest(ask.Config(), group)
	for partition, offset := range offsets {
		request.AddBlock(topic, partition, offset, sarama.ReceiveTime, "")
	}
	return c.coordinator(ask, group, func(coordinator *sarama.Broker) error {
		answer, err := coordinator.CommitOffset(request)
		if err != nil {
			return err
		}
		for _, code := range answer.Errors[topic] {
			err = cmp.Or(err, errorOf(code))
		}
		return err
	})
}

// coordinator asks a group's coordinator. One that does not answer, or is none any more, is looked for anew.
func (c *Client) coordinator(ask sarama.Client, group string, question func(*sarama.Broker) error) error {
	coordinator, err := ask.Coordinator(group)
	if err != nil {
		return err
	}
	err = question(coordinator)
	var code sarama.KError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &code):
		c.drop(coordinator)
	case !errors.Is(code, sarama.ErrNotCoordinatorForConsumer):
		return err
	}
	return errors.Join(err, ask.RefreshCoordinator(group))
}
