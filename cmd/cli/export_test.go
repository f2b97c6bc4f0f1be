package cli

import (
	"bytes"

	"github.com/spf13/cobra"
)

// Root is the command tree, for the documentation and for tests that visit every command.
func Root() *cobra.Command {
	a := &app{version: "v1.2.3", streams: Streams{In: new(bytes.Buffer), Out: new(bytes.Buffer), Err: new(bytes.Buffer)}}
	return a.root()
}
