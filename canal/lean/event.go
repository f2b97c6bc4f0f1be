package lean

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"io"

	"github.com/go-mysql-org/go-mysql/replication"
)

// Header decodes the header of a rows event as RowsEvent.DecodeHeader does, and returns where the rows begin. Where
// that one panics on a truncated event, this one returns ErrMalformed.
func Header(e *replication.RowsEvent, data []byte) (pos int, err error) {
	defer func() {
		if r := recover(); r != nil {
			pos, err = 0, malformed("header in %d bytes", len(data))
		}
	}()
	pos, err = e.DecodeHeader(data)
	if err != nil {
		return 0, fmt.Errorf("decode rows event header: %w", err)
	}
	if pos < 0 || pos > len(data) || e.ColumnCount != uint64(len(e.Table.ColumnType)) {
		return 0, malformed("header of %d bytes in an event of %d, for %d columns", pos, len(data), e.ColumnCount)
	}
	return pos, nil
}

// Rows returns what is to be decoded of an event of type tp: data, which the header was decoded from, and the place where its
// rows begin. Rows that MariaDB compressed (log_bin_compress) are decompressed into a copy; nothing but the event's type
// shows that they are.
func Rows(tp replication.EventType, data []byte, pos int) ([]byte, int, error) {
	switch tp { //nolint:exhaustive // the others are not compressed
	case replication.MARIADB_WRITE_ROWS_COMPRESSED_EVENT_V1, replication.MARIADB_UPDATE_ROWS_COMPRESSED_EVENT_V1,
		replication.MARIADB_DELETE_ROWS_COMPRESSED_EVENT_V1:
		rows, err := decompress(data[pos:])
		return rows, 0, err
	}
	return data, pos, nil
}

// zlibRatio is more than zlib can ever compress: one byte to 1032. Whoever claims more lies.
const zlibRatio = 1032

// decompress undoes MariaDB's compression of rows: a byte whose lower three bits tell how many bytes hold the length of
// the content, that length (big endian), and a zlib stream.
func decompress(data []byte) ([]byte, error) {
	if len(data) == 0 {
		return nil, malformed("compressed rows without a header")
	}
	n := int(data[0] & 0x07)
	if n < 1 || n > 4 || len(data) < 1+n || data[0]>>4&0x07 != 0 {
		return nil, malformed("compressed rows with the header %#x", data[0])
	}
	size := 0
	for _, b := range data[1 : 1+n] {
		size = size<<8 | int(b)
	}
	body := data[1+n:]
	if size < 0 || size/zlibRatio > len(body) {
		return nil, malformed("%d compressed bytes claim to hold %d", len(body), size)
	}
	r, err := zlib.NewReader(bytes.NewReader(body))
	if err != nil {
		return nil, malformed("compressed rows: %v", err)
	}
	rows := make([]byte, size)
	if _, err := io.ReadFull(r, rows); err != nil {
		return nil, malformed("compressed rows: %v", err)
	}
	return rows, nil
}
