package store

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"example.com/outbox-relay/internal/words"
	"example.com/outbox-relay/mysql"
	"example.com/outbox-relay/outbox"
)

// Progress is how far Candidates has looked through the due rows of topics that it leaves out. The topic is in no index, so a
// million such rows would be read in one call; with a Progress a call looks at a few thousand of them only, and the next one goes
// on behind those. The zero value begins at the start. It is not for concurrent use.
type Progress struct {
	at, ahead map[dueRange]duePlace
}

// dueRange is one range of a table's index (status, next_retry_time).
type dueRange struct {
	table  outbox.Table
	status outbox.Status
}

// duePlace is an entry of the index: its texts as SQL literals. An id is needed, since a second may have thousands of rows.
type duePlace struct {
	due, id string
	last    bool // nothing was behind the entries that were looked at from here
}

// Advance goes on to where the last call has stopped, and reports whether there is more to look at. When there is not, the next
// call begins at the start.
func (p *Progress) Advance() (more bool) {
	p.at, p.ahead = p.ahead, nil
	for _, place := range p.at {
		more = more || !place.last
	}
	if !more {
		p.at = nil
	}
	return more
}

// Begun reports whether a part was looked at and there is more.
func (p *Progress) Begun() bool { return p != nil && len(p.at) > 0 }

// begin forgets how far a call has come whose rows are still to be dealt with.
func (p *Progress) begin() {
	if p != nil {
		p.ahead = make(map[dueRange]duePlace)
	}
}

// lookRows is how many entries of a range one call looks at: each is read by primary key for its topic, which takes some
// microseconds.
const lookRows = 4000

// window returns the conditions that bound a look at a range, "" where the whole of it is looked at.
func (s *Store) window(ctx context.Context, conn *sql.Conn, t *Table, q Query, status outbox.Status) (string, error) {
	if q.Progress == nil || len(q.Except) == 0 || t.due == "" {
		return "", nil
	}
	due, id := t.nextRetry(), t.Col(words.ColumnID)
	key := dueRange{t.Table, status}
	from := ""
	place, going := q.Progress.at[key]
	if going {
		from = fmt.Sprintf(" AND %s>=%s AND (%s>%s OR %s>%s)", due, place.due, due, place.due, id, place.id)
	}
	ends, err := mysql.Texts(ctx, conn, fmt.Sprintf("SELECT CONCAT(%s,'/',%s) FROM %s%s WHERE %s=%d AND %s%s%s ORDER BY %s,%s LIMIT 1 OFFSET %d",
		due, id, t.From(), t.ByDue(), t.Col(words.ColumnStatus), s.number(status), due.due(), t.dueFrom(q), from, due, id, lookRows-1))
	if err != nil {
		return "", err
	}
	if len(ends) == 0 {
		if going {
			place.last = true
			q.Progress.ahead[key] = place
		}
		return from, nil
	}
	at, last, _ := strings.Cut(ends[0], "/")
	end := duePlace{due: mysql.Literal(at), id: mysql.Literal(last)}
	q.Progress.ahead[key] = end
	return from + fmt.Sprintf(" AND %s<=%s AND (%s<%s OR %s<=%s)", due, end.due, due, end.due, id, end.id), nil
}
