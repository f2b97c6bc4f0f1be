package desk

import (
	"context"
	"fmt"
	"time"

	"example.com/outbox-relay/canal"
	"example.com/outbox-relay/canal/position"
	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/internal/wire"
)

// Binlog is what the server says about a position.
type Binlog struct {
	Usable      bool   `json:"usable"`
	Recovery    string `json:"recovery,omitempty"`
	Detail      string `json:"detail,omitempty"`
	FileExists  bool   `json:"file_exists"`
	BytesBehind uint64 `json:"bytes_behind"`
	FilesBehind int    `json:"files_behind"`
	// SecondsBehind is the age of the first event behind the position, 0 when nothing is.
	SecondsBehind    *float64 `json:"seconds_behind,omitempty"`
	RetentionSeconds float64  `json:"retention_seconds"`
	// PurgedInHours is left out when it is not known.
	PurgedInHours *float64  `json:"purged_in_hours,omitempty"`
	End           *Position `json:"end,omitempty"`
	Problem       string    `json:"problem,omitempty"`
}

// binlog asks the server whose binlog is read. That it can't be asked is a result.
func (s *Scope) binlog(ctx context.Context, from position.Position) *Binlog {
	cfg, err := wire.Stream(s.Config, s.Source)
	if err != nil {
		return &Binlog{Problem: err.Error()}
	}
	d, err := canal.BinlogDistance(ctx, cfg, from)
	if err != nil {
		return &Binlog{Problem: err.Error()}
	}
	view := BinlogOf(d)
	if !d.Usable {
		return view
	}
	behind := 0.0
	at, ok, err := canal.NextEvent(ctx, cfg, from)
	if err != nil {
		view.Problem = fmt.Sprintf("how old it is can't be told: %s", err)
		return view
	}
	if ok {
		behind = max(human.Seconds(time.Since(at).Round(time.Second)), 0)
	}
	view.SecondsBehind = &behind
	return view
}

// BinlogOf shows how far a position is from the binlog's end, without what only an event can answer.
func BinlogOf(d canal.Distance) *Binlog {
	view := &Binlog{
		Usable: d.Usable, Recovery: d.Recovery, Detail: d.Detail, FileExists: d.FileExists, BytesBehind: d.BytesBehind,
		FilesBehind: d.FilesBehind, RetentionSeconds: human.Seconds(d.Retention), End: PositionOf(d.End),
	}
	if d.KnownPurge {
		hours := float64(int(d.PurgedIn.Hours()*10)) / 10
		view.PurgedInHours = &hours
	}
	return view
}
