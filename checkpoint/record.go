package checkpoint

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"example.com/outbox-relay/canal/position"
)

// Version is the format that this package writes. A record with a higher one is never touched.
const Version = 1

// The fields of the hash.
const (
	fieldVersion = "v"
	fieldServer  = "server"
	fieldFlavor  = "flavor"
	fieldGTID    = "gtid"
	fieldFile    = "file"
	fieldPos     = "pos"
	fieldOffsets = "offsets"
	fieldEpoch   = "epoch"
	fieldSavedAt = "saved_at"
	fieldBy      = "by"
	fieldSeq     = "seq" // orders the saves of one epoch, see save.lua
)

// Record is a saved checkpoint.
type Record struct {
	// Version is the format; Save writes the package's own, whatever it holds.
	Version int
	// Position is up to where everything is settled.
	Position position.Position
	// Offsets tells, for each topic and partition written to, where in Kafka what came after Position begins.
	Offsets map[string]map[int32]int64
	// Epoch is the writer's, as NextEpoch gave it.
	Epoch int64
	// SavedAt is when it was saved, by the writer's clock; Save takes the present when it is zero.
	SavedAt time.Time
	// By is the writer; Save takes Config.Owner when it is empty. It must stay the same through an epoch.
	By string
	// Note, when not empty, makes Save add a line to the history with this as its reason, such as "recovered: purged".
	// It isn't stored in the record.
	Note string
}

// fields returns the record as Redis keeps it. Numbers are written as text: pos and offsets go beyond 2^53, where Lua's
// numbers are no longer exact.
func (r Record) fields(seq int64) ([]any, error) {
	offsets := r.Offsets
	if offsets == nil {
		offsets = map[string]map[int32]int64{}
	}
	encoded, err := json.Marshal(offsets)
	if err != nil {
		return nil, fmt.Errorf("encode offsets: %w", err)
	}
	return []any{
		fieldVersion, strconv.Itoa(Version),
		fieldServer, r.Position.Server,
		fieldFlavor, r.Position.Flavor,
		fieldGTID, r.Position.GTID,
		fieldFile, r.Position.File,
		fieldPos, strconv.FormatUint(r.Position.Pos, 10),
		fieldOffsets, string(encoded),
		fieldEpoch, strconv.FormatInt(r.Epoch, 10),
		fieldSavedAt, r.SavedAt.UTC().Format(time.RFC3339Nano),
		fieldBy, r.By,
		fieldSeq, strconv.FormatInt(seq, 10),
	}, nil
}

// parseRecord reads what fields wrote. The error is ErrNewer, or ErrBroken with everything that is wrong.
func parseRecord(fields map[string]string) (Record, error) {
	version, err := strconv.Atoi(fields[fieldVersion])
	if err == nil && version > Version {
		return Record{Version: version}, newerError(fields[fieldVersion])
	}
	p := parser{fields: fields}
	if err != nil || version < 1 {
		p.wrong(fieldVersion, "must be the number of the format")
	}
	rec := Record{
		Version: version,
		Position: position.Position{
			Server: p.text(fieldServer),
			Flavor: p.text(fieldFlavor),
			GTID:   p.text(fieldGTID),
			File:   p.text(fieldFile),
			Pos:    p.unsigned(fieldPos),
		},
		Offsets: p.offsets(fieldOffsets),
		Epoch:   p.signed(fieldEpoch),
		SavedAt: p.time(fieldSavedAt),
		By:      fields[fieldBy],
	}
	p.check(rec.Position)
	if len(p.problems) > 0 {
		return Record{Version: version}, fmt.Errorf("%w: %s", ErrBroken, strings.Join(p.problems, "; "))
	}
	return rec, nil
}

// parser gathers every problem of a record, so that an operator sees all at once.
type parser struct {
	fields   map[string]string
	problems []string
}

func (p *parser) wrong(field, want string) {
	value, ok := p.fields[field]
	if !ok {
		p.problems = append(p.problems, "field "+field+" is missing")
		return
	}
	const shown = 40
	if len(value) > shown {
		value = value[:shown]
	}
	p.problems = append(p.problems, fmt.Sprintf("field %s is %q: it %s", field, value, want))
}

func (p *parser) text(field string) string {
	value, ok := p.fields[field]
	if !ok {
		p.wrong(field, "")
	}
	return value
}

func (p *parser) unsigned(field string) uint64 {
	n, err := strconv.ParseUint(p.fields[field], 10, 64)
	if err != nil {
		p.wrong(field, "must be a whole number of 0 or more")
	}
	return n
}

func (p *parser) signed(field string) int64 {
	n, err := strconv.ParseInt(p.fields[field], 10, 64)
	if err != nil || n < 1 {
		p.wrong(field, "must be a whole number of 1 or more")
	}
	return n
}

func (p *parser) time(field string) time.Time {
	at, err := time.Parse(time.RFC3339Nano, p.fields[field])
	if err != nil {
		p.wrong(field, "must be a time such as 2026-01-02T15:04:05Z")
	}
	return at
}

func (p *parser) offsets(field string) map[string]map[int32]int64 {
	var offsets map[string]map[int32]int64
	if err := json.Unmarshal([]byte(p.fields[field]), &offsets); err != nil {
		p.wrong(field, `must be JSON such as {"topic":{"0":42}}`)
		return nil
	}
	return offsets
}

// check looks at what the fields say together.
func (p *parser) check(pos position.Position) {
	if _, ok := p.fields[fieldFlavor]; ok && pos.Flavor != position.MySQL && pos.Flavor != position.MariaDB {
		p.wrong(fieldFlavor, "must be mysql or mariadb")
	}
	_, hasFile := p.fields[fieldFile]
	_, hasGTID := p.fields[fieldGTID]
	if hasFile && hasGTID && pos.IsZero() {
		p.problems = append(p.problems, "fields file and gtid are both empty")
	}
}
