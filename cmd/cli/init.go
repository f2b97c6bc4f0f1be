package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"example.com/outbox-relay/cmd/cli/render"
	"example.com/outbox-relay/internal/config"
	"example.com/outbox-relay/internal/wire"
	"example.com/outbox-relay/store"
)

// initFlags are init's.
type initFlags struct {
	printSQL     bool
	user         string
	passwordFile string
}

func (a *app) initCommand() *cobra.Command {
	var f initFlags
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Create what is missing: tables, their index, optional columns",
		Long: `Create what the relay needs on the primary and does not find: the tables that source.tables names, the index
(status, next_retry_time), and the optional columns msg_key, headers, last_error and trace_parent. What is there is left
as it is, so it may be run again. It ends with the grants of the two users (the one who marks, the one who reads the
binlog), for an administrator to run: nobody can grant himself what he lacks.

--print-sql runs nothing and prints everything, also while the server can't be reached. The relay's own user rarely may
create tables: name an administrator by --user, with the password in --password-file.`,
		Example: `  outbox-relay init --print-sql
  outbox-relay init --print-sql | mysql -uroot -p
  outbox-relay init --user root --password-file /run/secrets/root`,
		Args: noArgs, ValidArgsFunction: noFiles,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if f.passwordFile != "" && f.user == "" {
				return misused(cmd, errors.New("--password-file goes with --user"))
			}
			return a.init(cmd.Context(), f)
		},
	}
	flags := cmd.Flags()
	flags.BoolVar(&f.printSQL, "print-sql", false, "print the statements instead of running them")
	flags.StringVar(&f.user, "user", "", "connect as this `USER` instead of source.primary.user")
	flags.StringVar(&f.passwordFile, "password-file", "", "read the user's password from this `FILE`")
	return cmd
}

// initView is what init did, or would do.
type initView struct {
	Sources []initSource `json:"sources"`
}

type initSource struct {
	Source string `json:"source"`
	// Executed tells that Statements were run.
	Executed   bool     `json:"executed"`
	Statements []string `json:"statements"`
	// Grants are for an administrator.
	Grants []string `json:"grants"`
}

// Text writes SQL that a client can be fed with.
func (v initView) Text(p *render.Page) {
	for _, s := range v.Sources {
		p.Blank()
		switch {
		case !s.Executed:
			p.Line("-- source %s: what is missing", s.Source)
		case len(s.Statements) == 0:
			p.Line("-- source %s: nothing is missing", s.Source)
		default:
			p.Line("-- source %s: done", s.Source)
		}
		for _, statement := range s.Statements {
			p.Line("%s", statement)
		}
		if len(s.Grants) > 0 {
			p.Line("-- for an administrator, where it is not so already:")
		}
		for _, statement := range s.Grants {
			p.Line("%s", statement)
		}
	}
}

func (a *app) init(ctx context.Context, f initFlags) error {
	c, err := a.load()
	if err != nil {
		return err
	}
	chosen, err := a.sources(c)
	if err != nil {
		return err
	}
	view := initView{}
	for _, source := range chosen {
		one, err := initOne(ctx, c, source, f)
		if err != nil {
			return errors.Join(fmt.Errorf("source %s: %w", source.Name, err), a.printDone(view, one))
		}
		view.Sources = append(view.Sources, one)
	}
	return a.print(view)
}

// printDone prints what was run before a failure, because it stays.
func (a *app) printDone(view initView, one initSource) error {
	if len(one.Statements) > 0 {
		view.Sources = append(view.Sources, one)
	}
	if len(view.Sources) == 0 {
		return nil
	}
	return a.print(view)
}

func initOne(ctx context.Context, c *config.Config, source config.Source, f initFlags) (initSource, error) {
	cfg, err := wire.Primary(c, source)
	if err != nil {
		return initSource{}, exit(ExitUsage, err)
	}
	cfg.MarkUser = cfg.User
	running := cfg
	switch {
	case f.user != "":
		cfg.User, cfg.Password, err = f.user, "", nil
		if f.passwordFile != "" {
			cfg.Password, err = readPassword(f.passwordFile)
		}
		if err != nil {
			return initSource{}, err
		}
		running.User, running.Password = cfg.User, cfg.Password
	default:
		// The relay's own user can't grant.
		running.StreamUser = cfg.User
	}
	one := initSource{Source: source.Name, Executed: !f.printSQL, Statements: []string{}, Grants: []string{}}
	if !f.printSQL {
		done, err := store.Init(ctx, running, false)
		one.Statements = append(one.Statements, done...)
		if err != nil {
			return one, fmt.Errorf("%w; name a user who may do it with --user, or hand what --print-sql prints to one", err)
		}
	}
	printed, err := store.Init(ctx, cfg, true)
	if err != nil {
		return one, err
	}
	for _, statement := range printed {
		switch {
		case strings.HasPrefix(statement, "GRANT ") || strings.HasPrefix(statement, "CREATE USER "):
			one.Grants = append(one.Grants, statement)
		case f.printSQL:
			one.Statements = append(one.Statements, statement)
		}
	}
	return one, nil
}

func readPassword(file string) (string, error) {
	password, err := os.ReadFile(file)
	if err != nil {
		return "", exit(ExitUsage, fmt.Errorf("read --password-file: %w", err))
	}
	return strings.TrimRight(string(password), "\r\n"), nil
}
