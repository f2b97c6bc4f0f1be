package harness

import (
	"context"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/outbox"
)

// OpenStager returns a Stager that writes to a topic. close ends it.
func OpenStager(brokers []string, topic string) (stage outbox.Stager, closeIt func(), err error) {
	client, err := kgo.NewClient(kgo.SeedBrokers(brokers...), kgo.ClientID("outbox-relay-test-stager"), kgo.DefaultProduceTopic(topic),
		kgo.RequiredAcks(kgo.AllISRAcks()), kgo.ProducerLinger(0), kgo.MetadataMinAge(250*time.Millisecond))
	if err != nil {
		return nil, nil, fmt.Errorf("stager: %w", err)
	}
	stage = func(ctx context.Context, msgID string, body []byte) (outbox.BodyRef, error) {
		record := &kgo.Record{Value: body, Headers: []kgo.RecordHeader{{Key: words.HeaderMsgID, Value: []byte(msgID)}}}
		if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
			return outbox.BodyRef{}, err
		}
		return outbox.BodyRef{Topic: record.Topic, Partition: record.Partition, Offset: record.Offset}, nil
	}
	return stage, client.Close, nil
}
