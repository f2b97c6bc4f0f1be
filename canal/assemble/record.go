package assemble

import (
	"encoding/binary"
	"errors"

	"example.com/outbox-relay/outbox"
)

// encode appends a row's record.
func (s *spillFile) encode(b []byte, row *outbox.Row) []byte {
	b = binary.AppendUvarint(b, uint64(s.tableNumber(row.Table)))
	b = binary.AppendUvarint(b, row.ID)
	b = binary.AppendUvarint(b, uint64(row.Status))
	b = binary.AppendVarint(b, int64(row.RetryCount))
	for _, text := range [...]string{row.MsgID, row.Topic, row.TraceParent, row.BodyRef, row.NextRetry, row.Created} {
		b = binary.AppendUvarint(b, uint64(len(text)))
		b = append(b, text...)
	}
	// Nil and empty differ here, so the length is written plus one.
	for _, bytes := range [...][]byte{row.Content, row.Key, row.Headers} {
		if bytes == nil {
			b = append(b, 0)
			continue
		}
		b = binary.AppendUvarint(b, uint64(len(bytes))+1)
		b = append(b, bytes...)
	}
	return b
}

// tableNumber finds the table's number. A transaction writes into few local message tables, mostly into one.
func (s *spillFile) tableNumber(t outbox.Table) int {
	for i := range s.tables {
		if s.tables[i] == t {
			return i
		}
	}
	s.tables = append(s.tables, t)
	return len(s.tables) - 1
}

func (s *spillFile) decode(record []byte) (outbox.Row, error) {
	d := recordReader{b: record}
	table := d.uvarint()
	if table >= uint64(len(s.tables)) {
		return outbox.Row{}, errRecord
	}
	row := outbox.Row{Table: s.tables[table]}
	row.ID = d.uvarint()
	row.Status = outbox.Status(d.uvarint())
	row.RetryCount = int(d.varint())
	for _, text := range [...]*string{&row.MsgID, &row.Topic, &row.TraceParent, &row.BodyRef, &row.NextRetry, &row.Created} {
		*text = string(d.bytes(d.uvarint()))
	}
	for _, bytes := range [...]*[]byte{&row.Content, &row.Key, &row.Headers} {
		if n := d.uvarint(); n > 0 {
			*bytes = d.bytes(n - 1)
		}
	}
	if d.broken || len(d.b) > 0 {
		return outbox.Row{}, errRecord
	}
	return row, nil
}

// errRecord is a record that does not read as it was written: the disk changed it.
var errRecord = errors.New("read spill file: a record is corrupt")

// recordReader reads the fields of a record.
type recordReader struct {
	b      []byte
	broken bool
}

func (d *recordReader) uvarint() uint64 {
	v, n := binary.Uvarint(d.b)
	if n <= 0 {
		d.broken, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *recordReader) varint() int64 {
	v, n := binary.Varint(d.b)
	if n <= 0 {
		d.broken, d.b = true, nil
		return 0
	}
	d.b = d.b[n:]
	return v
}

func (d *recordReader) bytes(n uint64) []byte {
	if n > uint64(len(d.b)) {
		d.broken, d.b = true, nil
		return nil
	}
	v := d.b[:n:n]
	d.b = d.b[n:]
	return v
}
