package rig

import "maps"

// settings are what the options add up to.
type settings struct {
	own     bool
	args    []string
	kafka   map[string]string
	brokers int
}

// Option changes which server a test gets. Any option means an instance of the test's own.
type Option func(*settings)

// Own asks for an instance of the test's own, which it may stop, kill, pause and set up as it likes.
func Own() Option {
	return func(s *settings) { s.own = true }
}

// Args adds arguments to the server's command line, after the rig's, so that they win: Args("--sync-binlog=1").
// For Kafka see KafkaConfig.
func Args(args ...string) Option {
	return func(s *settings) { s.own, s.args = true, append(s.args, args...) }
}

// KafkaConfig sets broker properties, such as "message.max.bytes".
func KafkaConfig(config map[string]string) Option {
	return func(s *settings) {
		s.own = true
		if s.kafka == nil {
			s.kafka = map[string]string{}
		}
		maps.Copy(s.kafka, config)
	}
}

// KafkaBrokers asks for a cluster of n brokers instead of one. The first is also the controller: stop the others.
func KafkaBrokers(n int) Option {
	return func(s *settings) { s.own, s.brokers = true, n }
}

func collect(opts []Option) settings {
	s := settings{brokers: 1}
	for _, opt := range opts {
		opt(&s)
	}
	return s
}
