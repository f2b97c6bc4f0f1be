package rewind

import (
	"example.com/outbox-relay/canal/gtid"
	"example.com/outbox-relay/canal/position"
)

// Direction is how two positions stand to each other.
type Direction string

// The directions.
const (
	Same     Direction = "same"
	Back     Direction = "back"    // the new one is earlier: what lies between is read again
	Forward  Direction = "forward" // the new one is later: what lies between is never read
	Sideways Direction = "unknown" // they can't be compared: both may happen
)

// Between returns which way a checkpoint moves. Positions of one server are compared by their place in its binlog, unless
// one of them has no place of its own but only a set of transactions.
func Between(from, to position.Position, bySet bool) Direction {
	if bySet || from.Server != to.Server {
		return betweenSets(from, to)
	}
	order, err := position.Compare(to.File, to.Pos, from.File, from.Pos)
	switch {
	case err != nil:
		return betweenSets(from, to)
	case order < 0:
		return Back
	case order > 0:
		return Forward
	}
	return Same
}

func betweenSets(from, to position.Position) Direction {
	if from.GTID == "" || to.GTID == "" || from.Flavor != to.Flavor {
		return Sideways
	}
	more, err := gtid.Covers(to.Flavor, to.GTID, from.GTID)
	if err != nil {
		return Sideways
	}
	less, err := gtid.Covers(from.Flavor, from.GTID, to.GTID)
	switch {
	case err != nil:
		return Sideways
	case more && less:
		return Same
	case more:
		return Forward
	case less:
		return Back
	}
	return Sideways
}
