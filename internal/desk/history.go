package desk

import (
	"time"

	"example.com/outbox-relay/checkpoint"
)

// History is the history of a source's checkpoint, newest first.
type History struct {
	Source  string        `json:"source"`
	Entries []HistoryLine `json:"entries"`
}

// HistoryLine is one change: by a new leader, a recovery or an operator.
type HistoryLine struct {
	At     time.Time `json:"at"`
	Event  string    `json:"event"`
	By     string    `json:"by"`
	User   string    `json:"user,omitempty"`
	Host   string    `json:"host,omitempty"`
	Reason string    `json:"reason,omitempty"`
	Epoch  int64     `json:"epoch"`
	Old    *Position `json:"old"`
	New    *Position `json:"new"`
}

// HistoryOf shows entries of the history.
func HistoryOf(source string, entries []checkpoint.Entry) History {
	view := History{Source: source, Entries: make([]HistoryLine, len(entries))}
	for i, e := range entries {
		view.Entries[i] = HistoryLine{
			At: e.At, Event: e.Event, By: e.By, User: e.User, Host: e.Host, Reason: e.Reason, Epoch: e.Epoch,
			Old: snapshotPosition(e.Old), New: snapshotPosition(e.New),
		}
	}
	return view
}

func snapshotPosition(s checkpoint.Snapshot) *Position {
	if !s.Present || s.Position.IsZero() {
		return nil
	}
	return PositionOf(s.Position)
}
