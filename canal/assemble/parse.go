package assemble

import (
	"errors"
	"fmt"

	"github.com/go-mysql-org/go-mysql/replication"

	"example.com/outbox-relay/canal/lean"
	"example.com/outbox-relay/canal/plain"
)

// parser decodes single events, with go-mysql's help. Which events are worth it is the caller's decision: the syncer
// hands them out unparsed. The library panics on some malformed events; here that is an error.
type parser struct {
	outer *replication.BinlogParser
	// inner is for the events inside a compressed transaction, which have no checksums.
	inner *replication.BinlogParser
	// rows is what the last rows event was decoded from: a copy of nothing, but a view of the event.
	rows rowsView
	// checksum is what events have at their end.
	checksum int
	ready    bool
}

// rowsView is the undecoded part of a rows event.
type rowsView struct {
	data []byte
	pos  int
	kind replication.EventType
}

func newParser(flavor string) *parser {
	p := &parser{outer: replication.NewBinlogParser(), inner: replication.NewBinlogParser()}
	for _, b := range []*replication.BinlogParser{p.outer, p.inner} {
		b.SetFlavor(flavor)
		b.SetRowsEventDecodeFunc(func(e *replication.RowsEvent, data []byte) error {
			pos, err := lean.Header(e, data)
			p.rows.data, p.rows.pos = data, pos
			return err
		})
	}
	return p
}

// ErrMalformed is returned for a binlog event that can't be read.
var ErrMalformed = errors.New("malformed binlog event")

// malformed wraps ErrMalformed with the event's type and position, never with its content.
func malformed(h *replication.EventHeader, what string) error {
	return fmt.Errorf("%w: %s ending at %d: %s", ErrMalformed, h.EventType, h.LogPos, what)
}

// parse decodes an event; inside means that it came out of a compressed transaction.
func (p *parser) parse(ev *replication.BinlogEvent, inside bool) (event replication.Event, err error) {
	defer func() {
		if r := recover(); r != nil {
			event, err = nil, malformed(ev.Header, "it ends too early")
		}
	}()
	if ev.Header.EventType == replication.FORMAT_DESCRIPTION_EVENT {
		return p.format(ev)
	}
	if !p.ready {
		return nil, malformed(ev.Header, "no format description came before it")
	}
	b := p.outer
	if inside {
		b = p.inner
	}
	p.rows.kind = ev.Header.EventType
	parsed, err := b.Parse(ev.RawData)
	if err != nil {
		return nil, malformed(ev.Header, plain.Text(err))
	}
	return parsed.Event, nil
}

func (p *parser) format(ev *replication.BinlogEvent) (replication.Event, error) {
	parsed, err := p.outer.Parse(ev.RawData)
	if err != nil {
		return nil, malformed(ev.Header, plain.Text(err))
	}
	inner, err := p.inner.Parse(ev.RawData)
	if err != nil {
		return nil, malformed(ev.Header, plain.Text(err))
	}
	outer, ok := parsed.Event.(*replication.FormatDescriptionEvent)
	twin, ok2 := inner.Event.(*replication.FormatDescriptionEvent)
	if !ok || !ok2 {
		return nil, malformed(ev.Header, "not a format description")
	}
	// The parser keeps this very event.
	twin.ChecksumAlgorithm = replication.BINLOG_CHECKSUM_ALG_OFF
	p.checksum = 0
	if outer.ChecksumAlgorithm == replication.BINLOG_CHECKSUM_ALG_CRC32 {
		p.checksum = replication.BinlogChecksumLength
	}
	p.ready = true
	return outer, nil
}

// body returns what is between an event's header and its checksum.
func (p *parser) body(ev *replication.BinlogEvent, inside bool) []byte {
	end := len(ev.RawData)
	if !inside {
		end -= p.checksum
	}
	if end < replication.EventHeaderSize {
		return nil
	}
	return ev.RawData[replication.EventHeaderSize:end]
}
