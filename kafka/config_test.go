package kafka_test

import (
	"testing"

	"github.com/rs/zerolog"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/kafka"
)

func TestOpenReportsEverythingAtOnce(t *testing.T) {
	t.Parallel()
	_, err := kafka.Open(t.Context(), kafka.Config{
		Brokers: []string{"nonsense", "host:0", ":9092", "ok:9092"}, Version: "0.11.0.0", Compression: "brotli", MaxMessageBytes: 1 << 30,
		SASL: kafka.SASL{Mechanism: "plain"},
	}, zerolog.Nop())
	require.Error(t, err)
	for _, want := range []string{"kafka.brokers[0]", "kafka.brokers[1]", "kafka.brokers[2]", "kafka.version", "kafka.compression", "kafka.max_message_bytes", "kafka.sasl.user", "kafka.sasl.password"} {
		assert.Contains(t, err.Error(), want)
	}
	assert.NotContains(t, err.Error(), "kafka.brokers[3]")
}

// S77: Kafka 4 does not speak to clients that are told to be old.
func TestS77Versions(t *testing.T) {
	t.Parallel()
	for version, ok := range map[string]bool{
		"": true, "2.1.0": true, "2.8.0": true, "3.6.0": true, "4.1.0": true,
		"0.11": false, "0.11.0.0": false, "1.0.0": false, "2.0.0": false, "garbage": false, "4": false,
	} {
		_, err := kafka.Open(t.Context(), kafka.Config{Brokers: []string{"a:1"}, Version: version}, zerolog.Nop())
		if ok {
			require.NoError(t, err, version)
			continue
		}
		require.Error(t, err, version)
		assert.Contains(t, err.Error(), "kafka.version", version)
		assert.Contains(t, err.Error(), "leave it empty", version)
	}
}

func TestSASLNeedsItsParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		sasl kafka.SASL
		want string
	}{
		{kafka.SASL{Mechanism: "kerberos"}, "kafka.sasl.mechanism"},
		{kafka.SASL{Mechanism: "scram-sha-256", User: "u"}, "kafka.sasl.password"},
		{kafka.SASL{Mechanism: "oauthbearer"}, "token"},
	} {
		_, err := kafka.Open(t.Context(), kafka.Config{Brokers: []string{"a:1"}, SASL: c.sasl}, zerolog.Nop())
		assert.ErrorContains(t, err, c.want)
	}
}
