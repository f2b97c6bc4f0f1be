package cli

import (
	"bytes"
	"context"

	"github.com/spf13/cobra"
)

// Root is the command tree, for the documentation and for tests that visit every command.
func Root() *cobra.Command {
	a := &app{version: "v1.2.3", streams: Streams{In: new(bytes.Buffer), Out: new(bytes.Buffer), Err: new(bytes.Buffer)}}
	return a.root()
}

// Execute is Main that ends with a context instead of a signal.
func Execute(ctx context.Context, args []string, streams Streams) int {
	return execute(ctx, "v1.2.3", args, streams, nil)
}
