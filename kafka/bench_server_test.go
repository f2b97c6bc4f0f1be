//go:build !unit

package kafka_test

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/kafka"
	"example.com/outbox-relay/router"
	"example.com/outbox-relay/test/rig"
)

// BenchmarkPublish is the throughput of records of 400 bytes with at most 20000 on their way, as the relay allows.
func BenchmarkPublish(b *testing.B) {
	server := rig.Kafka(b)
	topic := server.Topic(b, 4)
	client := openOn(b, server.Brokers)
	window := make(chan struct{}, 20_000)
	p, err := client.NewProducer(func(r kafka.Result) {
		if r.Err != nil {
			b.Error(r.Err)
		}
		<-window
	})
	require.NoError(b, err)
	value := []byte(strings.Repeat("x", 300))
	records := make([]*router.Record, 1000)
	for i := range records {
		records[i] = record(topic, fmt.Sprint("k", i), i)
		records[i].Value = value
	}
	window <- struct{}{}
	send(b, p, records[0], nil)
	b.ReportAllocs()
	b.SetBytes(int64(kafka.Size(records[0])))
	b.ResetTimer()
	for i := range b.N {
		window <- struct{}{}
		if err := p.Send(b.Context(), records[i%len(records)], nil); err != nil {
			b.Fatal(err)
		}
	}
	require.NoError(b, p.Close(b.Context()))
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "records/s")
}

// BenchmarkLatency is the time from Send to the ack of single records, 1000 a second.
func BenchmarkLatency(b *testing.B) {
	server := rig.Kafka(b)
	topic := server.Topic(b, 4)
	client := openOn(b, server.Brokers)
	var mu sync.Mutex
	var took []time.Duration
	p, err := client.NewProducer(func(r kafka.Result) {
		mu.Lock()
		defer mu.Unlock()
		if sent, ok := r.Token.(time.Time); ok {
			took = append(took, time.Since(sent))
		}
	})
	require.NoError(b, err)
	send(b, p, record(topic, "first", 0), time.Now())
	pace := time.NewTicker(time.Millisecond)
	defer pace.Stop()
	b.ResetTimer()
	for i := range b.N {
		<-pace.C
		send(b, p, record(topic, fmt.Sprint("k", i%1000), i), time.Now())
	}
	require.NoError(b, p.Close(b.Context()))
	slices.Sort(took)
	at := func(q float64) float64 { return float64(took[int(q*float64(len(took)-1))].Microseconds()) / 1000 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}
