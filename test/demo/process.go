package main

import (
	"context"
	"errors"
	"net/http"
	"os/exec"
	"time"

	"example.com/outbox-relay/test/process"
)

// exitCode is how an ended process ended: an error when it was not by an exit code.
func exitCode(p *process.Process) (int, error) {
	var exit *exec.ExitError
	switch err := p.Err(); {
	case err == nil:
		return 0, nil
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode(), nil // it has said why
	default:
		return 1, err
	}
}

// poll calls try every few milliseconds until it says yes or the context or the process ends.
func poll(ctx context.Context, p *process.Process, try func() bool) bool {
	tick := time.NewTicker(25 * time.Millisecond)
	defer tick.Stop()
	for !try() {
		select {
		case <-ctx.Done():
			return false
		case <-p.Ended():
			return false
		case <-tick.C:
		}
	}
	return true
}

// ready asks the relay's console.
func ready(ctx context.Context, console string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+console+"/readyz", http.NoBody)
	if err != nil {
		return false
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return false
	}
	_ = answer.Body.Close()
	return answer.StatusCode == http.StatusOK
}
