package harness

import (
	"bytes"
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"
)

// Outcome is how a command ended.
type Outcome struct {
	Code           int
	Stdout, Stderr string
}

// Command runs another command of the relay's binary on the same settings, to its end.
func Command(t testing.TB, s Settings, args ...string) Outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, Binary(t), append(args, "--config", s.Write(t))...)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.Env = &stdout, &stderr, environment()
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) || ctx.Err() != nil {
		t.Fatalf("run %v: %v", args, errors.Join(err, ctx.Err()))
	}
	return Outcome{Code: cmd.ProcessState.ExitCode(), Stdout: stdout.String(), Stderr: stderr.String()}
}
