package assemble

import (
	"maps"
	"slices"
	"time"

	"example.com/outbox-relay/outbox"
)

// openTransaction is a transaction whose commit has not been seen.
type openTransaction struct {
	xaPart
	rows       *rowBuffer
	missed     map[string]int
	kick       bool
	began      bool // its BEGIN was seen, or there will be none
	standalone bool // a MariaDB transaction of a single statement, without commit event
	revived    revived
	altered    bool // a statement names one of our tables
	committed  time.Time
	exact      bool // committed is the time of the commit, to the microsecond
	saves      []savepoint
	unproven   []*tableState // tables with rows in it whose columns are not certain yet
}

// xaPart is what matters of a transaction that may be an XA transaction.
type xaPart struct {
	xa      bool
	xid     string
	xaRows  int  // rows inserted or updated in our tables, of an XA transaction
	touched bool // one of our tables is in it
}

// savepoint is a state of an open transaction to which it may be rolled back.
type savepoint struct {
	name   string
	rows   bufferMark
	missed map[string]int
	kick   bool
	// revived is short of those that came later: it is only appended to.
	revived revived
}

// revived are the rows that updates made due.
type revived struct {
	refs []outbox.Ref
	more int
}

// maxRevived bounds the rows named.
const maxRevived = 1000

func (r *revived) add(ref outbox.Ref) {
	if len(r.refs) < maxRevived {
		r.refs = append(r.refs, ref)
	} else {
		r.more++
	}
}

func (t *openTransaction) miss(reason string, n int) {
	if n == 0 {
		return
	}
	if t.missed == nil {
		t.missed = make(map[string]int)
	}
	t.missed[reason] += n
	t.kick = true
}

// save notes a savepoint. A second one of a name replaces the first.
func (t *openTransaction) save(name string) {
	t.release(name)
	t.saves = append(t.saves, savepoint{name: name, rows: t.rows.mark(), missed: maps.Clone(t.missed), kick: t.kick, revived: t.revived})
}

// rollbackTo returns to a savepoint, which stays; those after it are gone. It reports whether there is such a
// savepoint.
func (t *openTransaction) rollbackTo(name string) bool {
	i := t.find(name)
	if i < 0 {
		return false
	}
	t.rows.rollback(t.saves[i].rows)
	t.missed, t.kick, t.revived = maps.Clone(t.saves[i].missed), t.saves[i].kick, t.saves[i].revived
	t.saves = t.saves[:i+1]
	return true
}

// release forgets a savepoint; what came after it stays in the transaction.
func (t *openTransaction) release(name string) {
	if i := t.find(name); i >= 0 {
		t.saves = slices.Delete(t.saves, i, i+1)
	}
}

func (t *openTransaction) find(name string) int {
	for i, s := range slices.Backward(t.saves) {
		if s.name == name {
			return i
		}
	}
	return -1
}
