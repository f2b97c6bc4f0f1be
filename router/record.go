package router

// Record is what goes to Kafka: the same bytes whether the stream or the sweeper builds it, but for the
// outbox_position header.
type Record struct {
	Topic   string
	Key     []byte
	Value   []byte
	Headers []Header
}

// Header is one Kafka record header.
type Header struct {
	Key   string
	Value []byte
}

// What a record costs beyond its bytes. A batch of one record has 61 bytes before it; the record's own lengths, deltas
// and counts are variable-length numbers that come to 36 bytes at most, and to 10 for each header.
const (
	batchOverhead  = 61
	recordOverhead = 36
	headerOverhead = 10
)

// Size returns an upper bound of the bytes that the record takes in Kafka, alone in a batch and uncompressed. This is
// what the broker compares with max.message.bytes, and the client with its own bound.
func (r *Record) Size() int {
	return len(r.Key) + len(r.Value) + headersSize(r.Headers) + batchOverhead + recordOverhead
}

func headersSize(headers []Header) int {
	size := 0
	for i := range headers {
		size += len(headers[i].Key) + len(headers[i].Value) + headerOverhead
	}
	return size
}
