// Command outbox-relay brings the rows of a local message table to Kafka.
package main

import (
	"os"

	"github.com/rs/zerolog"

	"example.com/outbox-relay/checkpoint"
	"example.com/outbox-relay/cmd/cli"
	"example.com/outbox-relay/kafka"
)

// version is set by the build.
var version = "dev"

func main() {
	streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr, Libraries: libraries}
	os.Exit(cli.Main(version, os.Args[1:], streams, os.Environ()))
}

// libraries routes the logs of those that have one for the process.
func libraries(log zerolog.Logger) {
	checkpoint.RouteLibraryLog(log)
	kafka.LogLibrary(log)
}
