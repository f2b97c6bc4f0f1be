package cli

import (
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
)

// versionView is what this binary is.
type versionView struct {
	Version  string `json:"version"`
	Commit   string `json:"commit,omitempty"`
	Modified bool   `json:"modified,omitempty"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// Text writes one line.
func (v versionView) Text(p *render.Page) {
	line := "outbox-relay " + v.Version
	if v.Commit != "" {
		line += " (" + v.Commit[:min(12, len(v.Commit))]
		if v.Modified {
			line += ", modified"
		}
		line += ")"
	}
	p.Line("%s, %s, %s", line, v.Go, v.Platform)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print the version",
		Example: `  outbox-relay version
  outbox-relay version -o json`,
		Args: noArgs, ValidArgsFunction: noFiles,
		RunE: func(*cobra.Command, []string) error {
			view := versionView{Version: a.version, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
			if info, ok := debug.ReadBuildInfo(); ok {
				for _, setting := range info.Settings {
					switch setting.Key {
					case "vcs.revision":
						view.Commit = setting.Value
					case "vcs.modified":
						view.Modified = setting.Value == "true"
					}
				}
			}
			return a.print(view)
		},
	}
}
