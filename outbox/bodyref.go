package outbox

import (
	"fmt"
	"strconv"
	"strings"
)

// BodyRef names the Kafka record that holds a staged body.
type BodyRef struct {
	Topic     string
	Partition int32
	Offset    int64
}

// String returns topic/partition/offset, as the body_ref column holds it. A topic has no slash in it.
func (r BodyRef) String() string {
	return r.Topic + "/" + strconv.Itoa(int(r.Partition)) + "/" + strconv.FormatInt(r.Offset, 10)
}

// ParseBodyRef reads what String writes. The text comes from the database and may be anything.
func ParseBodyRef(text string) (BodyRef, error) {
	fail := func() (BodyRef, error) {
		return BodyRef{}, fmt.Errorf("body_ref %.100q is not topic/partition/offset", text)
	}
	parts := strings.Split(text, "/")
	if len(parts) != 3 || parts[0] == "" {
		return fail()
	}
	partition, err := strconv.ParseInt(parts[1], 10, 32)
	if err != nil || partition < 0 {
		return fail()
	}
	offset, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil || offset < 0 {
		return fail()
	}
	return BodyRef{Topic: parts[0], Partition: int32(partition), Offset: offset}, nil
}

// bodyRefType holds the longest topic that Kafka allows with a partition and an offset.
const bodyRefType = "VARCHAR(320)"
