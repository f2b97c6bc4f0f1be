package inbox

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"example.com/outbox-relay/internal/words"
)

// Delivery is one message as a consumer got it. Do needs no more of it than its ID; the loops fill all of it.
type Delivery struct {
	// ID is the msg_id: what makes two deliveries the same message. See HeaderMsgID.
	ID string
	// Topic, Partition and Offset say where the record lies in Kafka. They are noted in the table for people who look
	// there, unless Topic is empty; nothing is decided by them.
	Topic     string
	Partition int32
	Offset    int64
	Key       []byte
	Value     []byte
	Headers   []Header
	Timestamp time.Time
	// Attempt counts the loop's attempts at this delivery in this process, from 1. It is 0 outside the loops.
	Attempt int
}

// Header is one header of a record.
type Header struct {
	Key   string
	Value []byte
}

// The headers that this package reads and writes. The relay writes HeaderMsgID on every record that it publishes.
const (
	HeaderMsgID = words.HeaderMsgID
	// HeaderCausation is the msg_id of the message whose handler wrote this one (see Emit).
	HeaderCausation = "causation_id"
)

// Header returns the value of the first header of that name.
func (d *Delivery) Header(name string) (value string, ok bool) {
	for _, h := range d.Headers {
		if h.Key == name {
			return string(h.Value), true
		}
	}
	return "", false
}

// HeaderID returns the delivery's msg_id header, "" when it has none. It is the loops' default way to an ID.
func HeaderID(d *Delivery) string {
	id, _ := d.Header(HeaderMsgID)
	return id
}

// PositionID returns an ID made of the delivery's place in Kafka: topic/partition/offset. It is for topics whose
// producer writes no msg_id. It tells a repeated delivery of one record; a record that was written twice has two.
// A topic name too long for an ID (MaxID) makes an ID that Do refuses.
func PositionID(d *Delivery) string {
	return d.Topic + "/" + strconv.FormatInt(int64(d.Partition), 10) + "/" + strconv.FormatInt(d.Offset, 10)
}

// MaxID is how many characters an ID may have, as in the local message table.
const MaxID = 64

// maxGroup is how many characters the name of a consumer group may have.
const maxGroup = 128

// checkID refuses what the table's column would cut off, change, or take for another ID. A message's ID that was
// altered on its way in would make two messages one, and the second would be lost.
func checkID(id string) error {
	switch {
	case id == "":
		return idError("the delivery has no ID")
	case !utf8.ValidString(id):
		return idError("the ID is no UTF-8")
	case utf8.RuneCountInString(id) > MaxID:
		return idError("the ID has more than " + strconv.Itoa(MaxID) + " characters")
	case strings.HasSuffix(id, " "):
		// The server compares without regard to trailing spaces.
		return idError("the ID ends with a space")
	}
	return nil
}
