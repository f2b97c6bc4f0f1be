package assemble

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/go-mysql-org/go-mysql/mysql"
	"github.com/go-mysql-org/go-mysql/replication"
	"github.com/klauspost/compress/zstd"
)

// Fields and values of a TRANSACTION_PAYLOAD event.
const (
	payloadEnd         = 0
	payloadCompression = 2
	compressionZstd    = 0
	compressionNone    = 255
)

// payloadEvents calls visit for the events inside a compressed transaction, one after the other: however much the
// transaction holds, only one of its events is in memory. (The library's own decoder unpacks them all.)
func payloadEvents(h *replication.EventHeader, body []byte, visit func(*replication.BinlogEvent) error) error {
	data, compression, err := payloadData(body)
	if err != nil {
		return malformed(h, err.Error())
	}
	var r io.Reader = bytes.NewReader(data)
	switch compression {
	case compressionNone:
	case compressionZstd:
		decoder, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true))
		if err != nil {
			return fmt.Errorf("decompress transaction: %w", err)
		}
		defer decoder.Close()
		r = decoder
	default:
		return malformed(h, fmt.Sprintf("unknown compression %d", compression))
	}
	for {
		ev, err := nextEvent(r)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return malformed(h, err.Error())
		}
		if err := visit(ev); err != nil {
			return err
		}
	}
}

// payloadData reads the fields at the head of the event.
func payloadData(body []byte) (data []byte, compression uint64, err error) {
	short := errors.New("it ends within its fields")
	number := func() (uint64, bool) {
		if len(body) == 0 {
			return 0, false
		}
		if need := lengthSize(body[0]); len(body) < need {
			return 0, false
		}
		v, _, n := mysql.LengthEncodedInt(body)
		body = body[n:]
		return v, true
	}
	for {
		field, ok := number()
		if !ok {
			return nil, 0, short
		}
		if field == payloadEnd {
			return body, compression, nil
		}
		size, ok := number()
		if !ok || size > uint64(len(body)) {
			return nil, 0, short
		}
		rest := body[size:]
		if field == payloadCompression {
			if compression, ok = number(); !ok {
				return nil, 0, short
			}
		}
		body = rest
	}
}

// lengthSize is how many bytes a length-encoded number has.
func lengthSize(first byte) int {
	switch first {
	case 0xfc:
		return 3
	case 0xfd:
		return 4
	case 0xfe:
		return 9
	}
	return 1
}

// nextEvent reads one event; io.EOF means that there is none left.
func nextEvent(r io.Reader) (*replication.BinlogEvent, error) {
	header := make([]byte, replication.EventHeaderSize)
	if _, err := io.ReadFull(r, header); err != nil {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, errors.New("it ends within an event")
		}
		return nil, err
	}
	size := binary.LittleEndian.Uint32(header[9:])
	if size < replication.EventHeaderSize {
		return nil, fmt.Errorf("an event of %d bytes", size)
	}
	// The size is not believed before the bytes are there.
	var raw bytes.Buffer
	raw.Write(header)
	if n, err := io.CopyN(&raw, r, int64(size)-replication.EventHeaderSize); err != nil {
		return nil, fmt.Errorf("it ends within an event, after %d of %d bytes", n+replication.EventHeaderSize, size)
	}
	ev := &replication.BinlogEvent{RawData: raw.Bytes(), Header: new(replication.EventHeader)}
	if err := ev.Header.Decode(header); err != nil {
		return nil, err
	}
	return ev, nil
}
