package assemble

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"os"

	"example.com/outbox-relay/outbox"
)

// spillFile holds the rows of a transaction that is too large for memory: one record after the other, each its length
// and its fields, a text field being its length and its bytes. The file has no name from the moment it is made, so
// that nothing is left behind, whatever happens; its mode is 0600.
type spillFile struct {
	file   *os.File
	w      *bufio.Writer
	size   int64
	rows   int
	record []byte
	tables []outbox.Table // by number: a record names its table by it
}

// spillMark is an offset in the file to go back to.
type spillMark struct {
	size int64
	rows int
}

func newSpillFile(dir string) (*spillFile, error) {
	file, err := os.CreateTemp(dir, "outbox-relay-*.spill")
	if err != nil {
		return nil, fmt.Errorf("create spill file: %w", err)
	}
	if err := os.Remove(file.Name()); err != nil {
		return nil, errors.Join(fmt.Errorf("unlink spill file: %w", err), file.Close())
	}
	return &spillFile{file: file, w: bufio.NewWriterSize(file, 256<<10)}, nil
}

// append writes a row behind the others.
func (s *spillFile) append(row *outbox.Row) error {
	s.record = s.encode(s.record[:0], row)
	if len(s.record) > math.MaxUint32 {
		return fmt.Errorf("row of %d bytes is too large for the spill file", len(s.record))
	}
	var head [4]byte
	binary.LittleEndian.PutUint32(head[:], uint32(len(s.record)))
	if _, err := s.w.Write(head[:]); err != nil {
		return fmt.Errorf("write spill file: %w", err)
	}
	if _, err := s.w.Write(s.record); err != nil {
		return fmt.Errorf("write spill file: %w", err)
	}
	s.size += int64(len(head) + len(s.record))
	s.rows++
	return nil
}

// mark returns the present end.
func (s *spillFile) mark() spillMark { return spillMark{size: s.size, rows: s.rows} }

// truncate drops the rows behind the mark.
func (s *spillFile) truncate(m spillMark) error {
	if m.size == s.size {
		return nil
	}
	if err := s.w.Flush(); err != nil {
		return fmt.Errorf("write spill file: %w", err)
	}
	if err := s.file.Truncate(m.size); err != nil {
		return fmt.Errorf("truncate spill file: %w", err)
	}
	if _, err := s.file.Seek(m.size, io.SeekStart); err != nil {
		return fmt.Errorf("truncate spill file: %w", err)
	}
	s.size, s.rows = m.size, m.rows
	return nil
}

// each calls visit for the rows from the first on until it returns false.
func (s *spillFile) each(visit func(row *outbox.Row) bool) error {
	if err := s.w.Flush(); err != nil {
		return fmt.Errorf("write spill file: %w", err)
	}
	r := bufio.NewReaderSize(io.NewSectionReader(s.file, 0, s.size), 256<<10)
	for range s.rows {
		var head [4]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return fmt.Errorf("read spill file: %w", err)
		}
		// A buffer of its own for each row: the row's fields are cut from it.
		record := make([]byte, binary.LittleEndian.Uint32(head[:]))
		if _, err := io.ReadFull(r, record); err != nil {
			return fmt.Errorf("read spill file: %w", err)
		}
		row, err := s.decode(record)
		if err != nil {
			return err
		}
		if !visit(&row) {
			return nil
		}
	}
	return nil
}

func (s *spillFile) close() error {
	if err := s.file.Close(); err != nil {
		return fmt.Errorf("close spill file: %w", err)
	}
	return nil
}
