// Package diagnose is the vocabulary of doctor: what a check of a server found, what that means, and what repairs it.
//
// Every package that talks to a server has an Inspect that returns a Report; the command prints them all alike. It needs
// the standard library only.
package diagnose

import "fmt"

// Level says how bad a finding is.
type Level uint8

// The levels, in rising order.
const (
	OK      Level = iota // as it should be
	Warning              // the relay runs, but something will hurt one day
	Failure              // the relay can't do its work
)

var levelNames = [...]string{"ok", "warning", "failure"}

// String returns the level as doctor prints it.
func (l Level) String() string {
	if int(l) < len(levelNames) {
		return levelNames[l]
	}
	return fmt.Sprintf("level(%d)", uint8(l))
}

// MarshalText writes the level's name, so that JSON and YAML carry words.
func (l Level) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText reads what MarshalText wrote.
func (l *Level) UnmarshalText(text []byte) error {
	for i, name := range levelNames {
		if name == string(text) {
			*l = Level(i)
			return nil
		}
	}
	return fmt.Errorf("unknown level %q: use ok, warning or failure", text)
}

// Finding is the outcome of one check.
type Finding struct {
	// Check names what was looked at, in a fixed form that scripts may match, such as "update privilege on app.local_message".
	Check string `json:"check"`
	Level Level  `json:"level"`
	// Means says what was found and what follows from it, for a person.
	Means string `json:"means"`
	// Repair is the exact SQL or command that repairs it, "" when there is nothing to repair.
	Repair string `json:"repair,omitempty"`
}

// Report is what one Inspect found, in the order of checking.
type Report struct {
	Findings []Finding `json:"findings"`
}

// Add appends a finding.
func (r *Report) Add(f Finding) { r.Findings = append(r.Findings, f) }

// OK appends a check that found everything as it should be.
func (r *Report) OK(check, means string) { r.Add(Finding{Check: check, Means: means}) }

// Warn appends a check whose outcome will hurt one day.
func (r *Report) Warn(check, means, repair string) {
	r.Add(Finding{Check: check, Level: Warning, Means: means, Repair: repair})
}

// Fail appends a check that the relay can't work with.
func (r *Report) Fail(check, means, repair string) {
	r.Add(Finding{Check: check, Level: Failure, Means: means, Repair: repair})
}

// Worst returns the highest level among the findings, OK when there are none.
func (r *Report) Worst() Level {
	worst := OK
	for _, f := range r.Findings {
		worst = max(worst, f.Level)
	}
	return worst
}

// Merge appends the findings of others.
func (r *Report) Merge(others ...Report) {
	for _, o := range others {
		r.Findings = append(r.Findings, o.Findings...)
	}
}
