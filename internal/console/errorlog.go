package console

import (
	"strings"

	"github.com/rs/zerolog"
)

// serverLog adapts the logger for net/http. A client that breaks off is no error of ours, so it is logged as debug.
type serverLog struct{ log zerolog.Logger }

// Write logs one line of net/http's.
func (s serverLog) Write(line []byte) (int, error) {
	text := strings.TrimSpace(string(line))
	event := s.log.Debug()
	if strings.HasPrefix(text, "http: panic") {
		event = s.log.Error()
	}
	event.Str("detail", text).Msg("http server")
	return len(line), nil
}
