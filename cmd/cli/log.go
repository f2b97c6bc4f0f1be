package cli

import (
	"io"
	"os"
	"time"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/internal/config"
)

// logger returns the log that the configuration asks for, on stderr.
func (a *app) logger(c *config.Config) zerolog.Logger {
	level, err := zerolog.ParseLevel(c.Log.Level)
	if err != nil {
		level = zerolog.InfoLevel // the configuration was checked before
	}
	out := a.streams.Err
	if c.Log.Format == "text" || c.Log.Format == "auto" && isTerminal(out) {
		out = zerolog.ConsoleWriter{Out: out, TimeFormat: time.RFC3339, NoColor: !isTerminal(a.streams.Err)}
	}
	return zerolog.New(out).Level(level).With().Timestamp().Logger()
}

// quiet returns the log of a command that ends by itself: what the packages tell of their ordinary work is left out, unless
// the configuration asks for details.
func (a *app) quiet(c *config.Config) zerolog.Logger {
	log := a.logger(c)
	if log.GetLevel() == zerolog.InfoLevel {
		return log.Level(zerolog.WarnLevel)
	}
	return log
}

// isTerminal reports whether w is a character device.
func isTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	if !ok {
		return false
	}
	info, err := file.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}
