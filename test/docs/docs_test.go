package docs

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/cmd/cli"
)

const root = "../.."

// documents returns the text of every document by its path from the root.
func documents(t *testing.T) map[string]string {
	t.Helper()
	found := map[string]string{}
	for _, pattern := range []string{"*.md", "docs/*.md"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			name, err := filepath.Rel(root, path)
			require.NoError(t, err)
			found[name] = string(text)
		}
	}
	for _, name := range []string{
		"README.md", "README.zh-CN.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md", "SECURITY.md",
		"docs/CONFIG.md", "docs/METRICS.md", "docs/OPERATIONS.md", "docs/TESTING.md",
	} {
		require.Contains(t, found, name)
	}
	return found
}

var (
	link    = regexp.MustCompile(`\[[^\]]*\]\(([^)\s]+)\)`)
	heading = regexp.MustCompile(`(?m)^#+ +(.+)$`)
	fence   = regexp.MustCompile("(?ms)^ *```.*?^ *```")
	span    = regexp.MustCompile("`([^`\n]+)`")
	file    = regexp.MustCompile(`^[\w.-]+(/[\w.-]+)+\.(go|md|sh|ya?ml|json)$`)
	named   = regexp.MustCompile(`\bTest[A-Z]\w+`)
	family  = regexp.MustCompile(`^TestS\d+$`) // numbered tests, without the rest of their names
	command = regexp.MustCompile(`outbox-relay((?: [^\s|&#]+)+)`)
	word    = regexp.MustCompile(`^[a-z]+$`)
	target  = regexp.MustCompile(`\bmake ([a-z-]+)`)
)

// anchors returns the names that a document's headings get.
func anchors(text string) map[string]bool {
	found := map[string]bool{}
	for _, match := range heading.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		name := strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			}
			return -1
		}, match[1])
		found[name] = true
	}
	return found
}

func exists(path string) bool {
	_, err := os.Stat(filepath.Join(root, path))
	return err == nil
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	documents := documents(t)
	for name, text := range documents {
		for _, match := range link.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(match[1], "#")
			to := name
			if path != "" {
				to = filepath.Join(filepath.Dir(name), path)
				assert.True(t, exists(to), "%s links to %s", name, match[1])
			}
			if anchor != "" {
				assert.True(t, anchors(documents[to])[anchor], "%s links to %s, which has no such heading", name, match[1])
			}
		}
	}
}

func TestFilesThatAreNamedExist(t *testing.T) {
	t.Parallel()
	for name, text := range documents(t) {
		for _, match := range span.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
			if !file.MatchString(match[1]) {
				continue
			}
			assert.True(t, exists(match[1]), "%s names %s", name, match[1])
		}
	}
}

// A promise is only as good as its test: those that are named exist, in the file that is linked in the same line.
func TestTestsThatAreNamedExist(t *testing.T) {
	t.Parallel()
	everywhere := testFunctions(t)
	for name, text := range documents(t) {
		for line := range strings.SplitSeq(text, "\n") {
			var linked strings.Builder
			for _, match := range link.FindAllStringSubmatch(line, -1) {
				if strings.HasSuffix(match[1], "_test.go") {
					text, err := os.ReadFile(filepath.Join(root, filepath.Dir(name), match[1]))
					assert.NoError(t, err, name)
					linked.Write(text)
				}
			}
			for _, test := range named.FindAllString(line, -1) {
				pattern := "func " + test
				if !family.MatchString(test) {
					pattern += "("
				}
				where := everywhere
				if linked.Len() > 0 {
					where = linked.String()
				}
				assert.True(t, strings.Contains(where, pattern), "%s names %s", name, test) //nolint:testifylint // all of it is too long to print
			}
		}
	}
}

// testFunctions returns the declarations of all tests.
func testFunctions(t *testing.T) string {
	t.Helper()
	declared := regexp.MustCompile(`(?m)^func Test\w+\(`)
	var found strings.Builder
	err := filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, match := range declared.FindAll(text, -1) {
			found.Write(append(match, '\n'))
		}
		return err
	})
	require.NoError(t, err)
	return found.String()
}

// help returns what the command line says about a command.
func help(path []string) (text string, ok bool) {
	var out, errs bytes.Buffer
	code := cli.Main("test", append([]string{"help"}, path...), cli.Streams{In: strings.NewReader(""), Out: &out, Err: &errs}, nil)
	return out.String() + errs.String(), code == cli.ExitOK
}

func TestCommandsAndFlagsThatAreNamedExist(t *testing.T) {
	t.Parallel()
	checked := 0
	for name, text := range documents(t) {
		for _, match := range command.FindAllStringSubmatch(code(text), -1) {
			path, flags := split(strings.Fields(match[1]))
			said, ok := help(path)
			assert.True(t, ok, "%s names outbox-relay%s", name, match[1])
			for _, flag := range flags {
				assert.Contains(t, said, flag, "%s names outbox-relay%s", name, match[1])
			}
			checked++
		}
	}
	assert.Greater(t, checked, 30)
}

// split takes a command line apart: the command's path, up to the first word that can't be a command, and the flags.
func split(words []string) (path, flags []string) {
	open := true
	for _, w := range words {
		switch {
		case strings.HasPrefix(w, "-"):
			name, _, _ := strings.Cut(w, "=")
			flags = append(flags, name)
			open = false
		case open && word.MatchString(w):
			path = append(path, w)
		default:
			open = false
		}
	}
	return path, flags
}

// code returns what a document shows as code: prose also says "outbox-relay is".
func code(text string) string {
	var b strings.Builder
	for _, block := range fence.FindAllString(text, -1) {
		b.WriteString(block + "\n")
	}
	for _, match := range span.FindAllStringSubmatch(fence.ReplaceAllString(text, ""), -1) {
		b.WriteString(match[1] + "\n")
	}
	return b.String()
}

func TestTargetsThatAreNamedExist(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(root, "Makefile"))
	require.NoError(t, err)
	for name, text := range documents(t) {
		for _, match := range target.FindAllStringSubmatch(code(text), -1) {
			assert.Contains(t, string(makefile), "\n"+match[1]+":", "%s names make %s", name, match[1])
		}
	}
}

// The two READMEs must not drift apart in what they promise.
func TestBothReadmesNameTheSameTests(t *testing.T) {
	t.Parallel()
	documents := documents(t)
	assert.Equal(t, named.FindAllString(documents["README.md"], -1), named.FindAllString(documents["README.zh-CN.md"], -1))
	headings := func(name string) int {
		return len(heading.FindAllString(fence.ReplaceAllString(documents[name], ""), -1))
	}
	assert.Equal(t, headings("README.md"), headings("README.zh-CN.md"))
	assert.Equal(t, fence.FindString(documents["README.md"]) != "", fence.FindString(documents["README.zh-CN.md"]) != "")
}
