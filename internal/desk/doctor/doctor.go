// Package doctor checks everything that a relay needs, server by server, and says what repairs what is wrong. It changes
// nothing.
package doctor

import (
	"context"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/diagnose"
)

// Result is what was found.
type Result struct {
	Failures int       `json:"failures"`
	Warnings int       `json:"warnings"`
	Findings []Finding `json:"findings"`
}

// Finding is the outcome of one check, with who was asked.
type Finding struct {
	Source string `json:"source,omitempty"`
	// Part is who was asked: primary, binlog, kafka or redis.
	Part string `json:"part"`
	diagnose.Finding
}

// Examine asks all servers of the sources at the same time, each for limit at most, and returns what was found in a fixed
// order. A server that can't be asked is a finding; the only error is that ctx has ended.
func Examine(
	ctx context.Context, c *config.Config, sources []config.Source, log zerolog.Logger, limit time.Duration,
) (Result, error) {
	result := Result{Findings: examine(ctx, c, sources, log, limit)}
	for _, f := range result.Findings {
		switch f.Level {
		case diagnose.Failure:
			result.Failures++
		case diagnose.Warning:
			result.Warnings++
		case diagnose.OK:
		}
	}
	return result, ctx.Err()
}

// Brief leaves out what is as it should be.
func (r Result) Brief() Result {
	troubles := []Finding{}
	for _, f := range r.Findings {
		if f.Level != diagnose.OK {
			troubles = append(troubles, f)
		}
	}
	r.Findings = troubles
	return r
}
