package canal

import (
	"context"
	"log/slog"

	"github.com/rs/zerolog"
)

// quietHandler passes go-mysql's log on at debug level. Attributes are left out: the library logs its whole
// configuration, and errors with the content of events.
type quietHandler struct {
	log zerolog.Logger
}

// Enabled reports whether anything would be written.
func (h quietHandler) Enabled(context.Context, slog.Level) bool {
	return h.log.GetLevel() <= zerolog.DebugLevel
}

// Handle writes the record's message.
func (h quietHandler) Handle(_ context.Context, r slog.Record) error {
	h.log.Debug().Str("library", "go-mysql").Msg(shorten(r.Message))
	return nil
}

// WithAttrs returns the handler itself.
func (h quietHandler) WithAttrs([]slog.Attr) slog.Handler { return h }

// WithGroup returns the handler itself.
func (h quietHandler) WithGroup(string) slog.Handler { return h }
