package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// What a reader can keep in mind.
const (
	mostFiles   = 25 // of product code in a package
	mostMethods = 7
	mostFields  = 12
)

// records are structs that are data, not workers: one field for each thing that a person configures or sees.
var records = map[string]bool{
	"internal/config.Config": true, "internal/config.Columns": true, "internal/metrics.Source": true, "internal/demo.Report": true,
	"internal/demo/workload.Config": true, "internal/desk/messages.Story": true, "internal/desk/rewind.Outcome": true,
	"outbox.Row": true, "outbox.Columns": true,
}

// TestRoomsKeepTheirSize holds what CONTRIBUTING asks of packages, interfaces and structs of the product.
func TestRoomsKeepTheirSize(t *testing.T) {
	t.Parallel()
	files := map[string]int{}
	require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(root, path)
		switch {
		case err != nil:
			return err
		case d.IsDir() && (name == "test" || name == "examples" || name == "bin" || name != "." && strings.HasPrefix(d.Name(), ".")):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		files[filepath.Dir(name)]++
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if spec, ok := n.(*ast.TypeSpec); ok {
				keepsItsSize(t, filepath.Dir(name)+"."+spec.Name.Name, spec.Type)
			}
			return true
		})
		return nil
	}))
	require.Greater(t, len(files), 30, "the product's packages")
	for folder, n := range files {
		assert.LessOrEqual(t, n, mostFiles, "files in %s", folder)
	}
}

func keepsItsSize(t *testing.T, name string, definition ast.Expr) {
	t.Helper()
	switch d := definition.(type) {
	case *ast.InterfaceType:
		assert.LessOrEqual(t, d.Methods.NumFields(), mostMethods, "methods of %s", name)
	case *ast.StructType:
		if !records[name] {
			assert.LessOrEqual(t, d.Fields.NumFields(), mostFields, "fields of %s", name)
		}
	}
}
