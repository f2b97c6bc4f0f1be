//go:build !unit

package kafka_test

import (
	"fmt"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"github.com/twmb/franz-go/pkg/kmsg"

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
	b.SetBytes(int64(records[0].Size()))
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

// BenchmarkTail is what a restart after a kill waits for: 100,000 records in 1,000 partitions of three brokers, read
// by a client that has not connected yet.
func BenchmarkTail(b *testing.B) {
	server := rig.Kafka(b, rig.KafkaBrokers(3))
	for _, topics := range []int{1, 200} {
		from, names := manyPartitions(b, server, fmt.Sprint("tail", topics), topics, 1000/topics)
		b.Run(fmt.Sprintf("%dTopics", topics), func(b *testing.B) {
			peak := &peaks{}
			for range b.N {
				stop := peak.watch()
				client := openOn(b, server.Brokers)
				ids, complete, err := client.TailMsgIDs(b.Context(), from, time.Now(), names, noLimit)
				stop()
				require.NoError(b, err)
				require.True(b, complete)
				require.Equal(b, 100_000, ids.Len())
				require.NoError(b, client.Close())
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/tail")
			b.ReportMetric(float64(peak.heap)/(1<<20), "peak-MiB")
			b.ReportMetric(float64(peak.goroutines), "goroutines")
			b.ReportMetric(float64(peak.sockets), "sockets")
		})
	}
}

// manyPartitions makes topics with 100,000 records in all.
func manyPartitions(b *testing.B, server *rig.KafkaServer, prefix string, topics, partitions int) (from map[string]map[int32]int64, names []string) {
	b.Helper()
	request := kmsg.NewPtrCreateTopicsRequest()
	from = map[string]map[int32]int64{}
	for i := range topics {
		topic := kmsg.NewCreateTopicsRequestTopic()
		topic.Topic, topic.NumPartitions, topic.ReplicationFactor = fmt.Sprint(prefix, "_", i), int32(partitions), 1
		request.Topics = append(request.Topics, topic)
		names = append(names, topic.Topic)
		from[topic.Topic] = map[int32]int64{}
		for partition := range partitions {
			from[topic.Topic][int32(partition)] = 0
		}
	}
	ask(b, server.Brokers, request)
	client := openOn(b, server.Brokers)
	p, got := producer(b, client)
	const n = 100_000
	value := []byte(strings.Repeat("x", 300))
	for i := range n {
		rec := record(names[i%topics], fmt.Sprint("k", i), i)
		rec.Value = value
		send(b, p, rec, i)
	}
	for _, r := range got.waitFor(b, n) {
		require.NoError(b, r.Err)
	}
	return from, names
}

// peaks are the highest of what was seen above what was there before.
type peaks struct{ heap, goroutines, sockets int }

func (p *peaks) watch() (stop func()) {
	runtime.GC()
	before := usage()
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		pace := time.NewTicker(5 * time.Millisecond)
		defer pace.Stop()
		for {
			now := usage()
			p.heap = max(p.heap, now.heap-before.heap)
			p.goroutines = max(p.goroutines, now.goroutines-before.goroutines)
			p.sockets = max(p.sockets, now.sockets-before.sockets)
			select {
			case <-pace.C:
			case <-done:
				return
			}
		}
	}()
	return func() { close(done); <-ended }
}

func usage() peaks {
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	now := peaks{heap: int(memory.HeapAlloc), goroutines: runtime.NumGoroutine()}
	open, _ := os.ReadDir("/proc/self/fd")
	for _, fd := range open {
		if to, _ := os.Readlink("/proc/self/fd/" + fd.Name()); strings.HasPrefix(to, "socket:") {
			now.sockets++
		}
	}
	return now
}
