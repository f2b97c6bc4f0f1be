// Command outbox-relay brings the rows of a local message table to Kafka.
package main

import (
	"os"

	"example.com/outbox-relay/cmd/cli"
)

// version is set by the build.
var version = "dev"

func main() {
	os.Exit(cli.Main(version, os.Args[1:], cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}, os.Environ()))
}
