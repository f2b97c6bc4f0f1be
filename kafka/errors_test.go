package kafka_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"syscall"
	"testing"

	"github.com/IBM/sarama"
	"github.com/eapache/go-resiliency/breaker"
	"github.com/stretchr/testify/assert"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/retry"
)

func TestClassify(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		err    error
		class  retry.Class
		reason string
	}{
		{"ErrOutOfBrokers", sarama.ErrOutOfBrokers, retry.Unreachable, "unreachable"},
		// What the brokers said on the way to nowhere does not count.
		{"ErrOutOfBrokersWithCode", sarama.Wrap(sarama.ErrOutOfBrokers, sarama.ErrTopicAuthorizationFailed), retry.Unreachable, "unreachable"},
		{"ErrRefused", &net.OpError{Op: "dial", Err: os.NewSyscallError("connect", syscall.ECONNREFUSED)}, retry.Unreachable, "unreachable"},
		{"ErrTimeout", os.ErrDeadlineExceeded, retry.Unreachable, "unreachable"},
		{"ErrDNS", &net.DNSError{Err: "no such host", IsNotFound: true}, retry.Unreachable, "unreachable"},
		{"ErrEOF", io.EOF, retry.Unreachable, "unreachable"},
		{"ErrNotConnected", sarama.ErrNotConnected, retry.Unreachable, "unreachable"},
		{"ErrClosedClient", sarama.ErrClosedClient, retry.Unreachable, "unreachable"},
		{"ErrShuttingDown", sarama.ErrShuttingDown, retry.Unreachable, "unreachable"},
		{"ErrIncompleteResponse", sarama.ErrIncompleteResponse, retry.Unreachable, "unreachable"},
		{"ErrInsufficientData", sarama.ErrInsufficientData, retry.Unreachable, "unreachable"},
		{"ErrDecoding", sarama.PacketDecodingError{Info: "x"}, retry.Unreachable, "unreachable"},
		{"ErrEncoding", sarama.PacketEncodingError{Info: "x"}, retry.Never, "too_large"},
		{"ErrConfiguration", sarama.ConfigurationError("Attempt to produce message larger than configured"), retry.Never, "too_large"},
		{"ErrBreakerOpen", breaker.ErrBreakerOpen, retry.Refused, "refused"},
		{"ErrContext", context.DeadlineExceeded, retry.Unreachable, "unreachable"},
		{"ErrClosed", kafka.ErrClosed, retry.Unreachable, "unreachable"},
		{"ErrAbandoned", fmt.Errorf("%w: %w", kafka.ErrAbandoned, sarama.ErrTopicAuthorizationFailed), retry.Unreachable, "abandoned"},
		{"ErrBatchRefused", fmt.Errorf("%w: %w", kafka.ErrBatchRefused, sarama.ErrMessageSizeTooLarge), retry.Refused, "batch_refused"},
		{"ErrUnknownTopic", fmt.Errorf("x: %w", sarama.ErrUnknownTopicOrPartition), retry.Refused, "unknown_topic"},
		{"ErrProducerError", &sarama.ProducerError{Msg: &sarama.ProducerMessage{}, Err: sarama.ErrMessageSizeTooLarge}, retry.Never, "too_large"},
		{"ErrFutureCode", sarama.KError(999), retry.Refused, "refused"},
		{"ErrAnything", errors.New("anything"), retry.Unreachable, "unreachable"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			assert.Equal(t, c.class, kafka.Classify(c.err))
			assert.Equal(t, c.reason, kafka.Reason(c.err))
		})
	}
}
