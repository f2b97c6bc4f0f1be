package render_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"example.com/outbox-relay/cmd/cli/render"
)

// tree is a result with one of everything.
type tree struct {
	Name  string            `json:"name"`
	N     int64             `json:"n"`
	F     float64           `json:"f"`
	On    bool              `json:"on"`
	None  *string           `json:"none"`
	List  []string          `json:"list"`
	Empty []string          `json:"empty"`
	Map   map[string]string `json:"map"`
	Deep  []tree            `json:"deep"`
}

func (v tree) Text(p *render.Page) {
	p.Field("name", "%s", v.Name)
	p.Field("nothing", "")
	p.Field("longer name", "%d", v.N)
	p.Blank()
	p.Header("A", "B")
	p.Row("1", v.Name)
	p.Row("", "2")
	p.Line("end of %s", v.Name)
}

func text(t require.TestingT, format render.Format, v tree) string {
	var out bytes.Buffer
	require.NoError(t, render.Write(&out, format, v))
	return out.String()
}

func TestTable(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "name         x\nlonger name  7\n\nA  B\n1  x\n-  2\nend of x\n", text(t, render.Table, tree{Name: "x", N: 7}))
}

// A name from a table must not reach the terminal as anything but text.
func TestTableIsHarmless(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"\x1b[2J", "\x07", "a\tb", "a\nb", "\u202eabc", "\x9b31m", "\xff\xfe", "\u0085"} {
		got := text(t, render.Table, tree{Name: bad})
		assert.Equal(t, 7+strings.Count(bad, "\n"), strings.Count(got, "\n"), "%q has its lines, and only a line of its own may be several", bad)
		for _, r := range got {
			assert.False(t, r != '\n' && (r < ' ' || r >= 0x7f && r < 0xa0) || r == '\u202e', "%q shows %q", bad, got)
		}
	}
}

func TestYAMLReadsAsJSON(t *testing.T) {
	t.Parallel()
	words := rapid.OneOf(
		rapid.SampledFrom([]string{
			"", " ", "-", "- a", "a: b", "#", "a #b", "true", "No", "null", "~", "1", "0x1", "1e3", "+1", ".5", ".inf", "2026-01-02", "12:30:45",
			"'", `"`, `\`, "a\nb", "\t", "@", "`", "%", "&a", "*a", "!a", "|", ">", "{}", "[]", "a,b", "?", ": ", "a:", "é", "\u2028", "\x7f", "=", "<<", "y", "/", "__x",
		}),
		rapid.String(),
	)
	var one func(depth int) *rapid.Generator[tree]
	one = func(depth int) *rapid.Generator[tree] {
		return rapid.Custom(func(t *rapid.T) tree {
			v := tree{
				Name: words.Draw(t, "name"), N: rapid.Int64().Draw(t, "n"), F: rapid.Float64Range(-1e6, 1e6).Draw(t, "f"),
				On: rapid.Bool().Draw(t, "on"), List: rapid.SliceOfN(words, 0, 3).Draw(t, "list"),
				Map: rapid.MapOfN(words, words, 0, 3).Draw(t, "map"),
			}
			if depth > 0 {
				v.Deep = rapid.SliceOfN(one(depth-1), 0, 2).Draw(t, "deep")
			}
			return v
		})
	}
	rapid.Check(t, func(t *rapid.T) {
		v := one(2).Draw(t, "tree")
		written := text(t, render.YAML, v)
		var got any
		require.NoError(t, yaml.Unmarshal([]byte(written), &got), written)
		again, err := json.Marshal(got)
		require.NoError(t, err)
		require.JSONEq(t, text(t, render.JSON, v), string(again), written)
	})
}

func TestJSONLeavesTextAlone(t *testing.T) {
	t.Parallel()
	assert.Contains(t, text(t, render.JSON, tree{Name: "<a&b>"}), `"<a&b>"`)
}

func TestParse(t *testing.T) {
	t.Parallel()
	for _, name := range render.Formats() {
		format, err := render.Parse(name)
		require.NoError(t, err)
		assert.Equal(t, name, string(format))
	}
	_, err := render.Parse("xml")
	require.EqualError(t, err, `unknown output format "xml": use -o table|json|yaml`)
	require.Error(t, render.Write(&bytes.Buffer{}, "xml", tree{}))
}

type broken struct{}

func (broken) Write([]byte) (int, error) { return 0, assert.AnError }

func TestWriteError(t *testing.T) {
	t.Parallel()
	require.ErrorIs(t, render.Write(broken{}, render.JSON, tree{}), assert.AnError)
}
