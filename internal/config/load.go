package config

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
)

// SearchPaths are where the file is looked for when none is named, in this order.
func SearchPaths() []string {
	return []string{"outbox-relay.yaml", "/etc/outbox-relay/outbox-relay.yaml"}
}

// Input says where a configuration comes from.
type Input struct {
	File    string   // the file that was named; it must exist. "" takes the first of Search that exists
	Search  []string // nil means SearchPaths()
	Sets    []string // key.path=value, stronger than all else; the last one wins
	Environ []string // as os.Environ() returns it: for OUTBOX_RELAY_* and for ${NAME}
}

// Result is a configuration that can be worked with.
type Result struct {
	Config   *Config
	File     string   // the file that was read, "" when there is none
	Warnings []string // what works but should not stay so
}

// Load reads the configuration. Everything wrong with it is reported at once, as an *Error; another error means that
// the file could not be read.
func Load(in Input) (*Result, error) {
	file, source, err := readFile(in)
	if err != nil {
		return nil, err
	}
	var found problemList
	c := converter{problems: &found, origin: file}
	root := c.document(source)
	if len(found.list) > 0 {
		return nil, found.err() // half a file would only bring false problems
	}
	overrides := append(fromEnvironment(in.Environ), fromFlags(in.Sets, &found)...)
	for _, o := range overrides {
		root = overlay(root, o.path, o.value)
	}
	d := &decoder{root: root, environ: variables(in.Environ), problems: &found}
	cfg := Defaults()
	d.config(cfg)
	d.check(cfg)
	if err := found.err(); err != nil {
		return nil, err
	}
	warned := warnings(file, d)
	if file == "" && len(overrides) == 0 {
		warned = append(warned, "no configuration was found, so every setting has its default: write outbox-relay.yaml, name another file with --config, or set OUTBOX_RELAY_* variables")
	}
	return &Result{Config: cfg, File: file, Warnings: warned}, nil
}

// readFile returns the file's name and content; no file at all is an empty one, unless it was named.
func readFile(in Input) (name string, source []byte, err error) {
	if in.File != "" {
		source, err := os.ReadFile(in.File)
		if err != nil {
			return "", nil, fmt.Errorf("read the configuration: %w; name an existing file with --config", err)
		}
		return in.File, source, nil
	}
	search := in.Search
	if search == nil {
		search = SearchPaths()
	}
	for _, name := range search {
		source, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return "", nil, fmt.Errorf("read the configuration: %w; make it readable or name another with --config", err)
		}
		return name, source, nil
	}
	return "", nil, nil
}

func variables(environ []string) map[string]string {
	values := make(map[string]string, len(environ))
	for _, line := range environ {
		if name, value, ok := strings.Cut(line, "="); ok {
			values[name] = value
		}
	}
	return values
}

// warnings lists which secrets others on this machine can read.
func warnings(file string, d *decoder) []string {
	var out, inFile []string
	for _, use := range d.exposed {
		if use.at.line > 0 {
			inFile = append(inFile, use.path)
			continue
		}
		out = append(out, fmt.Sprintf("%s is given by --set, where every user of this machine can see it; use the environment or its _file form", use.path))
	}
	if len(inFile) == 0 {
		return out
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode().Perm()&0o004 == 0 {
		return out
	}
	return append(out, fmt.Sprintf("%s can be read by every user of this machine and holds %s; chmod 640 it, or use ${NAME} or the _file form",
		file, strings.Join(inFile, ", ")))
}
