package kafka

import (
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/IBM/sarama"
)

// Config says how to reach the brokers and what may be sent to them.
type Config struct {
	Brokers  []string
	ClientID string // default: outbox-relay
	// Version is the oldest broker version to speak to, as 3.6.0; "": what the brokers offer, from 2.8 on.
	Version string
	TLS     *tls.Config // nil: no TLS
	SASL    SASL
	// Compression is none, gzip, snappy, lz4 or zstd; "": none.
	Compression string
	// MaxMessageBytes bounds a record and a batch; 0: 1 MiB. A topic's own lower limit counts too.
	MaxMessageBytes int
	// CreateTopics lets CreateTopic make a missing topic.
	CreateTopics bool
	// Source, when set, narrows TailMsgIDs to records with this outbox_source header.
	Source string
}

const (
	defaultClientID        = "outbox-relay"
	defaultMaxMessageBytes = 1 << 20
)

// oldest is what Kafka 4 still speaks to (KIP-896).
var oldest = sarama.V2_1_0_0

var codecs = map[string]sarama.CompressionCodec{
	"":       sarama.CompressionNone,
	"none":   sarama.CompressionNone,
	"gzip":   sarama.CompressionGZIP,
	"snappy": sarama.CompressionSnappy,
	"lz4":    sarama.CompressionLZ4,
	"zstd":   sarama.CompressionZSTD,
}

// Validate reports everything that is wrong with the configuration at once.
func (c *Config) Validate() error {
	var errs []error
	if len(c.Brokers) == 0 {
		errs = append(errs, errors.New("kafka.brokers: at least one host:port is needed"))
	}
	for i, broker := range c.Brokers {
		if err := checkAddress(broker); err != nil {
			errs = append(errs, fmt.Errorf("kafka.brokers[%d]: %w", i, err))
		}
	}
	if _, err := c.version(); err != nil {
		errs = append(errs, err)
	}
	if _, ok := codecs[c.Compression]; !ok {
		errs = append(errs, fmt.Errorf("kafka.compression: %q is none of none, gzip, snappy, lz4, zstd", c.Compression))
	}
	if most := int(sarama.MaxRequestSize) / 2; c.MaxMessageBytes < 0 || c.MaxMessageBytes > most {
		errs = append(errs, fmt.Errorf("kafka.max_message_bytes: %d is not between 1 and %d", c.MaxMessageBytes, most))
	}
	return errors.Join(append(errs, c.SASL.validate())...)
}

func (c *Config) version() (sarama.KafkaVersion, error) {
	if c.Version == "" {
		return sarama.DefaultVersion, nil
	}
	version, err := sarama.ParseKafkaVersion(c.Version)
	if err != nil {
		return version, fmt.Errorf("kafka.version: %q is no version such as 3.6.0; leave it empty to have it negotiated",
			c.Version)
	}
	if !version.IsAtLeast(oldest) {
		return version, fmt.Errorf("kafka.version: %s is older than %s, which brokers of version 4 no longer speak; leave it empty to have it negotiated",
			c.Version, oldest)
	}
	return version, nil
}

func (c *Config) clientID() string {
	if c.ClientID == "" {
		return defaultClientID
	}
	return c.ClientID
}

func (c *Config) maxMessageBytes() int {
	if c.MaxMessageBytes == 0 {
		return defaultMaxMessageBytes
	}
	return c.MaxMessageBytes
}

// base is what all of our sarama clients have in common. The configuration has been validated.
func (c *Config) base(dial *dialer) *sarama.Config {
	sc := sarama.NewConfig()
	sc.ClientID = c.clientID()
	sc.Version, _ = c.version()
	sc.MetricRegistry = noMetrics{}
	sc.Net.MaxOpenRequests = 1
	sc.Net.Proxy.Enable = true
	sc.Net.Proxy.Dialer = dial
	sc.Net.TLS.Enable = c.TLS != nil
	sc.Net.TLS.Config = c.TLS
	c.SASL.apply(sc)
	sc.Metadata.Full = false
	sc.Metadata.AllowAutoTopicCreation = false
	// Waiting is done by patientClient and by the callers, who can be stopped; sarama's own wait can't.
	sc.Metadata.Retry.Max = 0
	sc.Producer.RequiredAcks = sarama.WaitForAll
	sc.Producer.Partitioner = sarama.NewMurmur2Partitioner
	sc.Producer.Compression = codecs[c.Compression]
	return sc
}

// How long the main producer waits for one answer. The broker waits for the replicas first, the socket a little
// longer, so that a dead or half-open connection is noticed well within 30 seconds.
const (
	dialTimeout     = 5 * time.Second
	ackTimeout      = 8 * time.Second
	readTimeout     = 12 * time.Second
	metadataTimeout = 15 * time.Second
	refreshEvery    = 5 * time.Minute
)

// retries is how often sarama sends a batch again that a leader did not take, some five minutes long. Waiting for a
// leader does not count, see patientClient. It is also an allocation of 32 bytes for each partition and retry.
const retries = 300

// patient is the configuration of the main producer, which never gives up by itself.
func (c *Config) patient(dial *dialer, maxBytes int) *sarama.Config {
	sc := c.base(dial)
	sc.Net.DialTimeout, sc.Net.ReadTimeout, sc.Net.WriteTimeout = dialTimeout, readTimeout, readTimeout
	sc.Metadata.Timeout = metadataTimeout
	sc.Metadata.RefreshFrequency = refreshEvery
	sc.ChannelBufferSize = channelSize
	sc.Producer.Idempotent = true
	sc.Producer.Timeout = ackTimeout
	sc.Producer.MaxMessageBytes = maxBytes
	sc.Producer.Return.Successes = true
	sc.Producer.Return.Errors = true
	sc.Producer.Retry.Max = retries
	sc.Producer.Retry.BackoffFunc = dial.backoff
	// Only the producer id is asked for by this; newLane repeats it.
	sc.Producer.Transaction.Retry.Max = 0
	return sc
}

// How long a probe or a question may take on the wire.
const (
	askDialTimeout = 2 * time.Second
	askTimeout     = 4 * time.Second
	probeAck       = 3 * time.Second
)

// impatient is the configuration of the client that asks questions and sends probes: one attempt, soon over.
func (c *Config) impatient(dial *dialer) *sarama.Config {
	sc := c.base(dial)
	sc.Net.DialTimeout, sc.Net.ReadTimeout, sc.Net.WriteTimeout = askDialTimeout, askTimeout, askTimeout
	sc.Metadata.Timeout = askTimeout
	sc.Metadata.RefreshFrequency = 0
	sc.Producer.Timeout = probeAck
	return sc
}

const (
	backoffMin = 50 * time.Millisecond
	backoffMax = time.Second
)

// backoffFor grows from 50 ms to a second, the half of it random, so that many partitions do not come back together.
func backoffFor(attempt int) time.Duration {
	d := backoffMax
	if attempt < 6 {
		d = min(backoffMax, backoffMin<<max(0, attempt-1))
	}
	return d/2 + rand.N(d/2)
}
