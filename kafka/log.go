package kafka

import (
	"fmt"
	"strings"

	"github.com/IBM/sarama"
	"github.com/rs/zerolog"
)

// LogLibrary sends what sarama writes to its own log to ours, at level debug. sarama has one log for the whole
// process, so a program calls this once, before it opens a client.
func LogLibrary(log zerolog.Logger) {
	to := libraryLog{log.With().Str("component", "sarama").Logger()}
	sarama.Logger = to
	sarama.DebugLogger = to
}

type libraryLog struct{ log zerolog.Logger }

// Print logs at debug.
func (l libraryLog) Print(v ...any) { l.write(fmt.Sprint(v...)) }

// Printf logs at debug.
func (l libraryLog) Printf(format string, v ...any) {
	if l.log.GetLevel() <= zerolog.DebugLevel {
		l.write(fmt.Sprintf(format, v...))
	}
}

// Println logs at debug.
func (l libraryLog) Println(v ...any) {
	if l.log.GetLevel() <= zerolog.DebugLevel {
		l.write(fmt.Sprintln(v...))
	}
}

func (l libraryLog) write(text string) { l.log.Debug().Msg(strings.TrimSpace(text)) }
