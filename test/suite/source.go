package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// source is what a package's files say about its tests.
type source struct {
	path      string
	belowTest bool     // in the module's folder test
	unit      []string // the tests, examples and fuzz targets that need no servers
	servers   []string // those in files that -tags unit leaves out
}

// all returns the names of those that always say when they have run, as an example without output does not.
func (s *source) all() []string {
	return slices.DeleteFunc(slices.Concat(s.unit, s.servers), func(name string) bool {
		return strings.HasPrefix(name, "Example")
	})
}

// listed is what go list says about a package.
type listed struct {
	ImportPath, Dir           string
	Module                    struct{ Path string }
	TestGoFiles, XTestGoFiles []string
}

func (l *listed) files() []string { return slices.Concat(l.TestGoFiles, l.XTestGoFiles) }

// readSources reads the packages that patterns name.
func readSources(ctx context.Context, patterns []string) ([]source, error) {
	everything, err := list(ctx, patterns)
	if err != nil {
		return nil, err
	}
	withoutServers, err := list(ctx, slices.Concat([]string{"-tags", "unit"}, patterns))
	if err != nil {
		return nil, err
	}
	unit := map[string][]string{}
	for _, l := range withoutServers {
		unit[l.ImportPath] = l.files()
	}
	sources := make([]source, 0, len(everything))
	for _, l := range everything {
		s := source{path: l.ImportPath, belowTest: strings.HasPrefix(l.ImportPath, l.Module.Path+"/test/")}
		needServers := slices.DeleteFunc(l.files(), func(file string) bool { return slices.Contains(unit[l.ImportPath], file) })
		s.unit, err = testsIn(l.Dir, unit[l.ImportPath])
		if err != nil {
			return nil, err
		}
		s.servers, err = testsIn(l.Dir, needServers)
		if err != nil {
			return nil, err
		}
		sources = append(sources, s)
	}
	return sources, nil
}

// list runs go list, which gives one JSON object after the other.
func list(ctx context.Context, args []string) ([]listed, error) {
	var said bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"list", "-json=ImportPath,Dir,Module,TestGoFiles,XTestGoFiles"}, args)...)
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("list the packages: %w: %s", err, bytes.TrimSpace(said.Bytes()))
	}
	var all []listed
	for objects := json.NewDecoder(bytes.NewReader(out)); ; {
		var l listed
		err := objects.Decode(&l)
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return nil, fmt.Errorf("read what go list says: %w", err)
		}
		all = append(all, l)
	}
}

// run by go test: TestX, not Testify.
var testName = regexp.MustCompile(`^(Test|Fuzz|Example)($|[^a-z])`)

// testsIn returns the names of what go test runs in files of a folder.
func testsIn(dir string, files []string) ([]string, error) {
	var names []string
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join(dir, file), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, fmt.Errorf("read the tests: %w", err)
		}
		for _, declared := range parsed.Decls {
			f, isFunction := declared.(*ast.FuncDecl)
			if isFunction && f.Recv == nil && testName.MatchString(f.Name.Name) && f.Name.Name != "TestMain" {
				names = append(names, f.Name.Name)
			}
		}
	}
	return names, nil
}
