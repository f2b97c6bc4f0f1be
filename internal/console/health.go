package console

import (
	"fmt"
	"io"
	"net/http"
	"strings"
)

// passes reports whether the check leaves its source ready.
func (c Check) passes() bool { return c.Err == nil || c.Degraded }

// livez tells whether this process still works, whatever its dependencies do: a restart would help it, not them.
func (c *Console) livez(w http.ResponseWriter, r *http.Request) {
	checks := make([]Check, 0, len(c.sources))
	for _, s := range c.sources {
		checks = append(checks, Check{Name: s.Name(), Err: s.Live()})
	}
	c.answer(w, r, "livez", checks)
}

// readyz tells whether every source does its work or stands by to.
func (c *Console) readyz(w http.ResponseWriter, r *http.Request) {
	var checks []Check
	for _, s := range c.sources {
		for _, check := range s.Ready() {
			check.Name = s.Name() + "/" + check.Name
			checks = append(checks, check)
		}
	}
	c.answer(w, r, "readyz", checks)
}

// answer writes ok, or a line for each check as the Kubernetes API server does: when asked by ?verbose, and when one
// fails. Errors name hosts, so without the token they are withheld.
func (c *Console) answer(w http.ResponseWriter, r *http.Request, name string, checks []Check) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	verdict, status := "passed", http.StatusOK
	var lines strings.Builder
	trusted := c.authorised(r)
	for _, check := range checks {
		if !check.passes() {
			verdict, status = "failed", http.StatusServiceUnavailable
		}
		lines.WriteString(check.line(trusted))
	}
	w.WriteHeader(status)
	body := "ok\n"
	if status != http.StatusOK || r.URL.Query().Has("verbose") {
		body = fmt.Sprintf("%s%s check %s\n", lines.String(), name, verdict)
	}
	if _, err := io.WriteString(w, body); err != nil {
		c.log.Debug().Err(err).Msg("health was not taken")
	}
}

func (c Check) line(trusted bool) string {
	mark, word, text := "[+]", "ok", c.Detail
	switch {
	case c.Err != nil && c.Degraded:
		mark, word, text = "[!]", "degraded", c.Err.Error()
	case c.Err != nil:
		mark, word, text = "[-]", "failed", c.Err.Error()
	}
	switch {
	case !trusted && c.Err != nil:
		text = "reason withheld, send the token"
	case !trusted:
		text = ""
	}
	if text != "" {
		text = ": " + strings.ReplaceAll(text, "\n", "; ")
	}
	return fmt.Sprintf("%s%s %s%s\n", mark, c.Name, word, text)
}
