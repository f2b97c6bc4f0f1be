package outbox

import (
	"crypto/rand"
	"encoding/hex"
	"sync/atomic"
	"time"
)

// sequence makes UUIDs of version 7 (RFC 9562) that grow: each is larger than the ones before, also within a millisecond and
// when the clock is put back. The first 48 bits are the milliseconds since 1970, the 12 bits after the version the fraction
// of the millisecond (method 3), and 62 bits are random. The zero value is ready.
type sequence struct {
	last atomic.Uint64 // the tick of the last id
}

// ticksPerMillisecond is what 12 bits can tell apart: a tick is 244 ns.
const ticksPerMillisecond = 1 << 12

// next returns a new id.
func (s *sequence) next(now time.Time) string {
	var random [8]byte
	_, _ = rand.Read(random[:]) // never fails: the program would end
	return format(s.tick(now), random)
}

// tick returns the time in ticks since 1970, or one more than the last when that is not later.
func (s *sequence) tick(now time.Time) uint64 {
	tick := uint64(now.UnixMilli())*ticksPerMillisecond + //nolint:gosec // after 1970
		uint64(now.Nanosecond()%int(time.Millisecond))*ticksPerMillisecond/uint64(time.Millisecond) //nolint:gosec // positive
	for {
		last := s.last.Load()
		tick = max(tick, last+1)
		if s.last.CompareAndSwap(last, tick) {
			return tick
		}
	}
}

func format(tick uint64, random [8]byte) string {
	var id [16]byte
	milli := tick / ticksPerMillisecond
	for i := range 6 {
		id[i] = byte(milli >> (40 - 8*i))
	}
	fraction := tick % ticksPerMillisecond
	id[6] = 0x70 | byte(fraction>>8)
	id[7] = byte(fraction)
	copy(id[8:], random[:])
	id[8] = 0x80 | id[8]&0x3f
	var text [36]byte
	hex.Encode(text[0:8], id[0:4])
	hex.Encode(text[9:13], id[4:6])
	hex.Encode(text[14:18], id[6:8])
	hex.Encode(text[19:23], id[8:10])
	hex.Encode(text[24:36], id[10:16])
	text[8], text[13], text[18], text[23] = '-', '-', '-', '-'
	return string(text[:])
}
