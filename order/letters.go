package order

import (
	"cmp"
	"slices"

	"example.com/outbox-relay/outbox"
)

// key is what only a key's line has.
type key struct {
	letters map[letterID]bool
	retried map[outbox.Ref]bool // were dead letters: each goes alone, so that nothing follows one that dies again
	news    bool                // something of it may be sendable since Begin
}

type letterID struct {
	table outbox.Table
	id    uint64
}

func idOf(ref outbox.Ref) letterID { return letterID{ref.Table, ref.ID} }

// letter is a dead letter. One whose row has no key but its msg_id has key 0: nothing waits behind it.
type letter struct {
	ref     outbox.Ref
	line    Name
	written uint64 // the round in which the table said so first, 0 when it does not yet
}

// behind reports whether a row waits behind one of the dead letters: in its table those with a lower id, and any of
// another table, with whose ids its own can't be compared.
func (k *key) behind(ref outbox.Ref) bool {
	for id := range k.letters {
		if id.table != ref.Table || id.id < ref.ID {
			return true
		}
	}
	return false
}

// comes notes that a row is parked. One with a lower id than the dead letters has committed later, or is read again.
// It may go by id.
func (l *Line[M]) comes(ref outbox.Ref) {
	if !l.key.behind(ref) {
		l.hint()
	}
}

// hint notes that something of a key may be sendable.
func (l *Line[M]) hint() {
	l.key.news = true
	if l.state == Closed {
		l.become(Draining)
	}
}

// keyed returns the line of a key, which is made if needed: draining, since rows of it may be parked.
func (s *Lines[M]) keyed(name Name) *Line[M] {
	l := s.keys[name.Key]
	if l == nil {
		l = &Line[M]{name: name, of: s, key: &key{letters: make(map[letterID]bool)}}
		s.keys[name.Key] = l
		l.become(Draining)
	}
	return l
}

// Parked reports that the table has parked rows of a key, which need not be known.
func (s *Lines[M]) Parked(key uint64) { s.keyed(Name{Key: key}) }

// Died reports that a message is a dead letter, before the table says so: from now on its key waits. The key is 0
// where nothing waits behind it. The actions are those of the line that is returned.
func (s *Lines[M]) Died(ref outbox.Ref, line Name) (l *Line[M], do Actions[M]) {
	if !s.cfg.Hold {
		return nil, do
	}
	id := idOf(ref)
	if old := s.letters[id]; old != nil && old.line.Key != line.Key {
		s.remove(old, false) // its id or its key is another one's now
	}
	s.letters[id] = &letter{ref: ref, line: line}
	if line.Key == 0 {
		return nil, do
	}
	l = s.keyed(line)
	l.name.Topic = line.Topic
	l.key.letters[id] = true
	l.key.news = true
	do.Defer = l.giveUp()
	return l, do
}

// Buried reports whether the table could be changed to say that a message is a dead letter.
func (s *Lines[M]) Buried(ref outbox.Ref, written bool) {
	l := s.letters[idOf(ref)]
	switch {
	case l == nil:
	case written && l.ref == ref:
		l.written = s.round + 1
	case !written && l.written == 0:
		s.remove(l, false)
	}
}

// remove forgets a dead letter.
func (s *Lines[M]) remove(dead *letter, retried bool) {
	id := idOf(dead.ref)
	delete(s.letters, id)
	l := s.keys[dead.line.Key]
	if l == nil {
		return
	}
	delete(l.key.letters, id)
	if retried {
		if l.key.retried == nil {
			l.key.retried = make(map[outbox.Ref]bool)
		}
		l.key.retried[dead.ref] = true
	}
	l.hint()
}

// Blocked reports that nothing that the table has of a key may be sent, for dead letters are before it. The key is
// closed until one is decided about, or something comes that is before them.
func (l *Line[M]) Blocked() {
	if l.state == Draining && l.key != nil && !l.key.news && len(l.key.letters) > 0 {
		l.become(Closed)
	}
}

// Waits reports whether the key of a due row waits, so that the sweeper parks it.
func (s *Lines[M]) Waits(ref outbox.Ref, line Name) bool {
	l := s.keys[line.Key]
	if l == nil {
		return false
	}
	l.name.Topic = line.Topic
	l.comes(ref)
	return true
}

// Turn is what may be done with a parked row.
type Turn uint8

// The turns.
const (
	Goes      Turn = iota // no dead letter is before it
	GoesAlone             // it was one, after which nothing goes before it is acked
	Behind                // a dead letter is before it
)

// TurnOf returns what may be done with a parked row of a key.
func (s *Lines[M]) TurnOf(key uint64, ref outbox.Ref) Turn {
	l := s.keys[key]
	switch {
	case l == nil:
		return Goes
	case l.key.behind(ref):
		return Behind
	case l.key.retried[ref]:
		return GoesAlone
	}
	return Goes
}

// Overtook returns the msg_id of a dead letter that a message which was just acked has passed: both were on their way
// when it died. "" when there is none.
func (s *Lines[M]) Overtook(m M) string {
	if len(s.keys) == 0 {
		return ""
	}
	l, ref := s.keys[m.Line().Key], m.Ref()
	if l == nil {
		return ""
	}
	for id := range l.key.letters {
		if id.table == ref.Table && id.id < ref.ID {
			return s.letters[id].ref.MsgID
		}
	}
	return ""
}

// BeginRound begins a reading of the dead letters.
func (s *Lines[M]) BeginRound() { s.round++ }

// Compare returns what a round has found dead that was not known, and what is known and not dead any more: of that
// only what the table had said before the round began. Tables that could not be read are not in dead.
func (s *Lines[M]) Compare(dead map[outbox.Table][]uint64) (unknown map[outbox.Table][]uint64, gone []outbox.Ref) {
	unknown = map[outbox.Table][]uint64{}
	still := make(map[letterID]bool, len(s.letters))
	for table, ids := range dead {
		for _, n := range ids {
			if id := (letterID{table, n}); s.letters[id] != nil {
				still[id] = true
			} else {
				unknown[table] = append(unknown[table], n)
			}
		}
	}
	for id, l := range s.letters {
		if _, asked := dead[id.table]; asked && !still[id] && l.written != 0 && l.written <= s.round {
			gone = append(gone, l.ref)
		}
	}
	return unknown, gone
}

// KeyOf returns the key that waits behind a dead letter, 0 when none does.
func (s *Lines[M]) KeyOf(letter outbox.Ref) uint64 {
	if l := s.letters[idOf(letter)]; l != nil {
		return l.line.Key
	}
	return 0
}

// Decided reports that a person has decided about a dead letter: it is none any more. One that was retried is parked.
func (s *Lines[M]) Decided(ref outbox.Ref, retried bool) {
	if l := s.letters[idOf(ref)]; l != nil {
		s.remove(l, retried)
	}
}

// Letter is a dead letter behind which a key waits.
type Letter struct {
	Ref  outbox.Ref
	Line Name
}

// Letters returns the dead letters behind which keys wait, by table and id.
func (s *Lines[M]) Letters() []Letter {
	var all []Letter
	for _, l := range s.letters {
		if l.line.Key != 0 {
			all = append(all, Letter{Ref: l.ref, Line: l.line})
		}
	}
	slices.SortFunc(all, func(a, b Letter) int {
		return cmp.Or(cmp.Compare(a.Ref.Table.String(), b.Ref.Table.String()), cmp.Compare(a.Ref.ID, b.Ref.ID))
	})
	return all
}
