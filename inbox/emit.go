package inbox

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"strconv"
	"sync"

	"example.com/outbox-relay/outbox"
)

// Outbox is where Emit writes: an *outbox.Box, or in tests an outboxtest.Box.
type Outbox interface {
	PutAll(ctx context.Context, tx outbox.Execer, messages []outbox.Message) ([]outbox.Receipt, error)
}

var _ Outbox = outbox.Putter(nil)

// Emit writes follow-up messages to the outbox (Config.Outbox) in the handler's transaction, in their order: they are sent if
// and only if the message is handled. The context is the handler's own, or one from Caused.
//
// Each message gets the header causation_id, the msg_id of the message that is being handled, so the outbox table needs the column for
// headers. A message without an ID gets one that is computed from the group, the causing message, the topic, the key, and its number
// among those of the same topic and key: if the same message is ever handled again (its record was purged, or deleted by hand to
// repeat it), the same handler emits the same IDs, and the outbox and the next consumer know them. Receipt.Duplicate tells.
func (in *Inbox) Emit(ctx context.Context, tx Execer, messages ...outbox.Message) ([]outbox.Receipt, error) {
	if in.outbox == nil {
		return nil, errors.New("emit: the inbox has no outbox; set Config.Outbox")
	}
	caused, ok := ctx.Value(causeKey{}).(*cause)
	if !ok {
		return nil, fmt.Errorf("emit: %w; pass the handler's own context, or one from Caused", ErrNoCause)
	}
	own := make([]outbox.Message, len(messages))
	for i, m := range messages {
		if m.ID == "" {
			m.ID = caused.next(in.group, m.Topic, m.Key)
		}
		// A map of its own: the caller's is the caller's.
		headers := make(map[string]string, len(m.Headers)+1)
		maps.Copy(headers, m.Headers)
		headers[HeaderCausation] = caused.id
		m.Headers = headers
		own[i] = m
	}
	receipts, err := in.outbox.PutAll(ctx, tx, own)
	if err != nil {
		return receipts, fmt.Errorf("emit %d messages because of %s: %w", len(own), caused.id, err)
	}
	return receipts, nil
}

// Caused returns a context in which Emit takes the message of that ID for the cause, for those who use First. Make a new one for
// each transaction: it counts the messages that are emitted in it.
func (in *Inbox) Caused(ctx context.Context, id string) context.Context {
	return context.WithValue(ctx, causeKey{}, &cause{id: id, emitted: map[string]int{}})
}

type causeKey struct{}

// cause is the message that is being handled in a context.
type cause struct {
	id string

	mu      sync.Mutex
	emitted map[string]int // how many messages of a topic and key have got an ID
}

// next returns the ID of the next message of that topic and key: a UUID of version 8 (RFC 9562) made of the first bits of a hash.
func (c *cause) next(group, topic, key string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	of := strconv.Itoa(len(topic)) + ":" + topic + key
	n := c.emitted[of]
	c.emitted[of]++
	// Lengths keep the parts apart: no two different lists of parts make the same text.
	sum := sha256.Sum256([]byte(fmt.Sprintf("%d:%s%d:%s%d:%s%d", len(group), group, len(c.id), c.id, len(of), of, n)))
	id := sum[:16]
	id[6] = 0x80 | id[6]&0x0f
	id[8] = 0x80 | id[8]&0x3f
	text := hex.EncodeToString(id)
	return text[:8] + "-" + text[8:12] + "-" + text[12:16] + "-" + text[16:20] + "-" + text[20:]
}
