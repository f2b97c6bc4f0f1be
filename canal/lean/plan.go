package lean

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/go-mysql-org/go-mysql/replication"
)

// Column is a column that the caller wants, with what information_schema.columns says about it. The TABLE_MAP event
// overrules Charset and Unsigned where it tells them (MySQL always; MariaDB when binlog_row_metadata is MINIMAL or FULL),
// since it describes the table as it was when the row was written.
type Column struct {
	// Index is the column's place in the TABLE_MAP, counted from 0; -1 when the table has no such column.
	Index int
	// Charset is CHARACTER_SET_NAME, "" when it is not known or NULL.
	Charset string
	// Unsigned says that COLUMN_TYPE contains "unsigned".
	Unsigned bool
	// DataType is DATA_TYPE, "" when not known. It is what tells a BINARY(16) from MariaDB's UUID and INET6, which look
	// alike in the binlog.
	DataType string
}

// Plan knows how to walk the row images of one table definition. It does not change once made: several goroutines may
// use it.
type Plan struct {
	types []byte
	metas []uint16
	marks []byte // signedness and charsets, as far as the TABLE_MAP tells them
	steps []step
	// readers has one entry per wanted column; slots counts the different columns among them.
	readers []reader
	slots   int
}

// NewPlan makes the plan for the tables that tm describes. It fails with ErrUnsupported when the rows can't be walked
// or a wanted column can't be read with certainty; the error names the column by its index.
func NewPlan(tm *replication.TableMapEvent, wanted []Column) (*Plan, error) {
	if len(tm.ColumnType) != len(tm.ColumnMeta) || uint64(len(tm.ColumnType)) != tm.ColumnCount {
		return nil, malformed("table map of %d columns has %d types and %d metadata",
			tm.ColumnCount, len(tm.ColumnType), len(tm.ColumnMeta))
	}
	p := &Plan{
		types: bytes.Clone(tm.ColumnType),
		metas: slices.Clone(tm.ColumnMeta),
		marks: columnMarks(tm),
		steps: make([]step, len(tm.ColumnType)),
	}
	old := mayHideFractions(tm)
	for i := range p.steps {
		s, err := newStep(tm.ColumnType[i], tm.ColumnMeta[i])
		if err == nil && old && hidesFraction(tm.ColumnType[i]) {
			err = unsupported("a time in the format of before MariaDB 10.1: rebuild the table with ALTER TABLE ... FORCE")
		}
		if err != nil {
			return nil, fmt.Errorf("column %d: %w", i, err)
		}
		p.steps[i] = s
	}
	for _, col := range wanted {
		if err := p.want(tm, col); err != nil {
			return nil, fmt.Errorf("column %d: %w", col.Index, err)
		}
	}
	return p, nil
}

// Fits reports whether the plan is right for the tables that tm describes: same types, lengths, signedness and charsets.
// The caller who keeps plans by table makes a new one when it isn't. Column names and what information_schema told are
// not compared.
func (p *Plan) Fits(tm *replication.TableMapEvent) bool {
	return p.fitsRows(tm) && bytes.Equal(p.marks, columnMarks(tm))
}

// Kinds returns the kind of each wanted column's values.
func (p *Plan) Kinds() []Kind {
	kinds := make([]Kind, len(p.readers))
	for i := range p.readers {
		kinds[i] = p.readers[i].kind
	}
	return kinds
}

// fitsRows compares what decides the length of the columns.
func (p *Plan) fitsRows(tm *replication.TableMapEvent) bool {
	return bytes.Equal(p.types, tm.ColumnType) && slices.Equal(p.metas, tm.ColumnMeta)
}

// want adds a reader for one wanted column. A column may be wanted more than once.
func (p *Plan) want(tm *replication.TableMapEvent, col Column) error {
	if col.Index == -1 {
		p.readers = append(p.readers, reader{slot: -1})
		return nil
	}
	if col.Index < 0 || col.Index >= len(p.steps) {
		return malformed("the table has %d columns", len(p.steps))
	}
	r, err := newReader(tm, col)
	if err != nil {
		return err
	}
	s := &p.steps[col.Index]
	if s.slot < 0 {
		s.slot = p.slots
		p.slots++
	}
	r.slot = s.slot
	p.readers = append(p.readers, r)
	return nil
}

// columnMarks strings together the metadata that tells how values are to be read, to compare it later.
func columnMarks(tm *replication.TableMapEvent) []byte {
	marks := bytes.Clone(tm.SignednessBitmap)
	for _, list := range [][]uint64{tm.DefaultCharset, tm.ColumnCharset} {
		marks = append(marks, '/')
		for _, id := range list {
			marks = append(marks, byte(id), byte(id>>8), byte(id>>16), byte(id>>24))
		}
	}
	return marks
}
