package desk

import (
	"context"
	"encoding/json"
	"time"

	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/console"
	"example.com/outbox-relay/internal/human"
	"example.com/outbox-relay/relay"
)

// Running is what a running relay says about itself.
type Running struct {
	Running       bool          `json:"running"`
	Version       string        `json:"version"`
	Started       time.Time     `json:"started"`
	UptimeSeconds float64       `json:"uptime_seconds"`
	Ready         bool          `json:"ready"`
	Sources       []SourceState `json:"sources"`
}

// SourceState is one source of a running relay.
type SourceState struct {
	Name   string                `json:"name"`
	Ready  bool                  `json:"ready"`
	Checks []console.CheckStatus `json:"checks"`
	State  relay.Status          `json:"state"`
	// How long ago these were, by the clock here; left out when they have not been.
	CheckpointAgeSeconds float64 `json:"checkpoint_age_seconds,omitempty"`
	LastSweepAgeSeconds  float64 `json:"last_sweep_age_seconds,omitempty"`
}

// decodeSources reads the relay's own part of the answer. A relay of another version may say more or less.
func decodeSources(answer console.Status) []SourceState {
	var states []SourceState
	for _, s := range answer.Sources {
		one := SourceState{Name: s.Name, Ready: s.Ready, Checks: s.Checks}
		if err := json.Unmarshal(s.Status, &one.State); err != nil {
			one.State.Errors = append(one.State.Errors, "its state can't be read: is it of another version?")
		}
		one.CheckpointAgeSeconds, one.LastSweepAgeSeconds = age(one.State.Saved), age(one.State.LastSweep)
		states = append(states, one)
	}
	return states
}

// age is how long ago something was, 0 for what has not been. Clocks of two machines may be apart.
func age(at time.Time) float64 {
	if at.IsZero() {
		return 0
	}
	return max(human.Seconds(time.Since(at)), 0.001)
}

// ConsoleOf returns where the relay of a configuration answers.
func ConsoleOf(c *config.Config) console.Config {
	return console.Config{Listen: c.Console.Listen, Token: c.Console.Token.Reveal(), Prefix: c.Console.Prefix}
}

// AskRelay asks a running relay about all of its sources.
func AskRelay(ctx context.Context, client *console.Client) (Running, error) {
	answer, err := client.Status(ctx)
	if err != nil {
		return Running{}, err
	}
	return Running{
		Running: true, Version: answer.Version, Started: answer.Started, Ready: answer.Ready,
		UptimeSeconds: human.Seconds(time.Since(answer.Started).Round(time.Second)), Sources: decodeSources(answer),
	}, nil
}

// Only leaves out other sources than the named one.
func (r Running) Only(source string) Running {
	all := r.Sources
	r.Sources = nil
	for _, s := range all {
		if s.Name == source {
			r.Sources = append(r.Sources, s)
		}
	}
	return r
}
