package lean

import (
	"math/bits"

	"github.com/go-mysql-org/go-mysql/replication"
)

// Decode calls visit for each row of an event: an insert has no image before, a delete none after, an update both. The
// event's header must have been decoded (see Header); data and pos are what Rows returned.
//
// The images are good during the call of visit only, their Bytes for ever. Decode stops at the first error, also at one
// that visit returns.
func (p *Plan) Decode(e *replication.RowsEvent, data []byte, pos int, visit func(before, after Image) error) error {
	return p.DecodeSome(e, data, pos, nil, visit)
}

// DecodeSome is Decode for a caller who can tell by the numbers alone that a row is of no interest: keep is called first,
// with images whose numbers and states are set and whose Bytes are nil. Unless it returns true the row is passed over,
// and costs no allocation. A nil keep keeps every row.
func (p *Plan) DecodeSome(e *replication.RowsEvent, data []byte, pos int, keep func(before, after Image) bool,
	visit func(before, after Image) error,
) error {
	w, err := p.newWalk(e, data, pos)
	if err != nil {
		return err
	}
	for w.pos < len(w.data) {
		start := w.pos
		if err := w.next(); err != nil {
			return err
		}
		if w.pos == start {
			return malformed("%d bytes behind a row without columns", len(w.data)-w.pos)
		}
		if keep != nil && !keep(w.before.shown(), w.after.shown()) {
			continue
		}
		if err := w.before.fill(p.readers, w.data); err != nil {
			return err
		}
		if err := w.after.fill(p.readers, w.data); err != nil {
			return err
		}
		if err := visit(w.before.shown(), w.after.shown()); err != nil {
			return err
		}
	}
	return nil
}

// walk is the state of going through the rows of one event.
type walk struct {
	plan          *Plan
	data          []byte
	pos           int
	before, after side
}

// side is the image before the change, or the one after.
type side struct {
	used  bool
	steps []step // of the columns that the image holds
	nulls int    // bytes of the null bitmap
	spans []span // by slot: where the wanted columns are in the present row
	image Image
}

// span is the place of a column's bytes in the event.
type span struct {
	state      State
	start, end int
}

func (p *Plan) newWalk(e *replication.RowsEvent, data []byte, pos int) (*walk, error) {
	if e.Table == nil || !p.fitsRows(e.Table) || e.ColumnCount != uint64(len(p.steps)) {
		return nil, ErrMismatch
	}
	if pos < 0 || pos > len(data) {
		return nil, malformed("header of %d bytes in an event of %d", pos, len(data))
	}
	w := &walk{plan: p, data: data, pos: pos}
	var err error
	switch e.Type() {
	case replication.EnumRowsEventTypeInsert:
		err = w.after.use(p, e.ColumnBitmap1)
	case replication.EnumRowsEventTypeDelete:
		err = w.before.use(p, e.ColumnBitmap1)
	case replication.EnumRowsEventTypeUpdate:
		if err = w.before.use(p, e.ColumnBitmap1); err == nil {
			err = w.after.use(p, e.ColumnBitmap2)
		}
	default:
		// PARTIAL_UPDATE_ROWS: the image after may hold JSON diffs instead of values.
		err = unsupported("rows event %s", e.Type())
	}
	if err != nil {
		return nil, err
	}
	return w, nil
}

// use sets the side up for images that hold the columns of the bitmap.
func (s *side) use(p *Plan, bitmap []byte) error {
	if len(bitmap) < (len(p.steps)+7)/8 {
		return malformed("bitmap of %d bytes for %d columns", len(bitmap), len(p.steps))
	}
	s.used = true
	s.spans = make([]span, p.slots)
	s.image = make(Image, len(p.readers))
	for i := range s.image {
		s.image[i].Kind = p.readers[i].kind
	}
	s.steps = p.steps
	if n := countBits(bitmap, len(p.steps)); n < len(p.steps) {
		s.steps = make([]step, 0, n)
		for i := range p.steps {
			if bitmap[i>>3]&(1<<(i&7)) != 0 {
				s.steps = append(s.steps, p.steps[i])
			}
		}
	}
	s.nulls = (len(s.steps) + 7) / 8
	return nil
}

// countBits counts the bits set among the first n.
func countBits(bitmap []byte, n int) int {
	count := 0
	for _, b := range bitmap[:n/8] {
		count += bits.OnesCount8(b)
	}
	if rest := n % 8; rest != 0 {
		count += bits.OnesCount8(bitmap[n/8] & (1<<rest - 1))
	}
	return count
}

// next finds the columns of the next row and reads their numbers.
func (w *walk) next() error {
	for _, s := range []*side{&w.before, &w.after} {
		if !s.used {
			continue
		}
		end, ok := s.locate(w.data, w.pos)
		if !ok {
			return malformed("it ends within a row, at byte %d of %d", end, len(w.data))
		}
		w.pos = end
		s.readNumbers(w.plan.readers, w.data)
	}
	return nil
}

// locate notes where the wanted columns of the image at pos are, and returns where the image ends. It fails when the
// event ends before the image does.
func (s *side) locate(data []byte, pos int) (end int, ok bool) {
	if len(data)-pos < s.nulls {
		return pos, false
	}
	nulls := data[pos : pos+s.nulls]
	pos += s.nulls
	for i := range s.steps {
		st := &s.steps[i]
		if nulls[i>>3]&(1<<(i&7)) != 0 {
			if st.slot >= 0 {
				s.spans[st.slot].state = Null
			}
			continue
		}
		size := st.size
		if st.prefix > 0 {
			if size, ok = lengthAt(data, pos, st.prefix); !ok {
				return pos, false
			}
			pos += int(st.prefix)
		}
		// As unsigned numbers, so that a length of 4 GiB is too long also where int has 32 bits.
		if uint(size) > uint(len(data)-pos) {
			return pos, false
		}
		if st.slot >= 0 {
			s.spans[st.slot] = span{state: Present, start: pos, end: pos + size}
		}
		pos += size
	}
	return pos, true
}

// readNumbers sets the states and the numbers of the image.
func (s *side) readNumbers(readers []reader, data []byte) {
	for i := range readers {
		r, v := &readers[i], &s.image[i]
		if r.slot < 0 {
			continue
		}
		sp := s.spans[r.slot]
		*v = Value{State: sp.state, Kind: r.kind}
		if sp.state != Present {
			continue
		}
		switch r.kind {
		case Int:
			v.Int = r.signed(data[sp.start:sp.end])
		case Uint:
			v.Uint = r.unsigned(data[sp.start:sp.end])
		case Bytes:
		}
	}
}

// fill sets the bytes of the image, all of them cut from one allocation.
func (s *side) fill(readers []reader, data []byte) error {
	size, found := 0, false
	for i := range readers {
		if s.wantsBytes(&readers[i]) {
			sp := s.spans[readers[i].slot]
			size += readers[i].estimate(sp.end - sp.start)
			found = true
		}
	}
	if !found {
		return nil
	}
	buf := make([]byte, 0, size)
	for i := range readers {
		r := &readers[i]
		if !s.wantsBytes(r) {
			continue
		}
		start := len(buf)
		var err error
		if buf, err = r.appendText(buf, data[s.spans[r.slot].start:s.spans[r.slot].end]); err != nil {
			return err
		}
		// Should a later append move buf, this slice keeps the bytes where they were: they are final.
		s.image[i].Bytes = buf[start:len(buf):len(buf)]
	}
	return nil
}

func (s *side) wantsBytes(r *reader) bool {
	return s.used && r.slot >= 0 && r.kind == Bytes && s.spans[r.slot].state == Present
}

// shown returns the image, nil when the event has none on this side.
func (s *side) shown() Image {
	if !s.used {
		return nil
	}
	return s.image
}
