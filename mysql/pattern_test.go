package mysql

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/outbox"
)

func TestPatterns(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		pattern, database, table string
		fold, match              bool
	}{
		{"app.local_message", "app", "local_message", false, true},
		{"app.local_message", "app", "local_message_bak", false, false},
		{"app.local_message", "app", "xlocal_message", false, false},
		{"app.local_message", "xapp", "local_message", false, false},
		{"app.Local_Message", "app", "local_message", false, false},
		{"App.Local_Message", "app", "local_message", true, true},
		{`app./local_message_\d+/`, "app", "local_message_12", false, true},
		{`app./local_message_\d+/`, "app", "local_message_12x", false, false},
		{`app./local_message_\d+/`, "app", "local_message_", false, false},
		{`app./local_message_\d+/`, "app", "Local_Message_12", true, true},
		{`/app\d/.m`, "app7", "m", false, true},
		{`/shop_[ab]/./msg_\d+/`, "shop_a", "msg_12", false, true},
		{`/shop_[ab]/./msg_\d+/`, "shop_c", "msg_1", false, false},
		{`/a.p/./m.n/`, "a.p", "m.n", false, true},
		{`/a|b/./m|n/`, "b", "n", false, true},
		{`/a|b/./m|n/`, "bx", "n", false, false},
		{"x.y$z", "x", "y$z", false, true},
		{"应用.本地消息", "应用", "本地消息", false, true},
		// Dots and slashes in names are written as expressions.
		{`app./odd\.name/`, "app", "odd.name", false, true},
		{`app./with\x2fslash/`, "app", "with/slash", false, true},
	} {
		p, err := ParsePattern(tc.pattern)
		require.NoError(t, err, tc.pattern)
		assert.Equal(t, tc.match, p.Match(outbox.Table{Database: tc.database, Name: tc.table}, tc.fold), "%+v", tc)
		assert.Equal(t, tc.pattern, p.String())
	}
}

// Whatever one part of the relay refuses, all refuse: there is one parser.
func TestNoPatterns(t *testing.T) {
	t.Parallel()
	for wrong, problem := range map[string]string{
		"": notPattern, "table": notPattern, ".table": notPattern, "app.": notPattern, ".": notPattern,
		"/app.table": notPattern, "app./table": notPattern, "/app/table": notPattern, "/x/": notPattern, "/x/y": notPattern,
		// An expression matches some name.
		"//": notPattern, "app.//": notPattern, "//.t": notPattern, "app./": notPattern,
		// Three parts, or a slash of which nobody can say whether it ends the expression.
		"app.x.y": notPattern, "app./a/b/": notPattern, "/a/.b./c/": notPattern, "app./a/.b": notPattern, "app.with/slash": notPattern,
		"app./(/": notExpression, "/(/.t": notExpression, "app./a(/": notExpression,
	} {
		_, err := ParsePattern(wrong)
		var p *PatternError
		require.ErrorAs(t, err, &p, "%q", wrong)
		assert.Equal(t, PatternError{Text: wrong, Problem: problem}, *p)
		require.ErrorContains(t, err, "table pattern ")
	}
	_, err := ParsePatterns(nil)
	require.ErrorContains(t, err, "tables is empty")
	_, err = ParsePatterns([]string{"bad", "a.b", "worse"})
	require.ErrorContains(t, err, `"bad"`)
	require.ErrorContains(t, err, `"worse"`)
}

func TestPatternsOfOneTable(t *testing.T) {
	t.Parallel()
	for text, one := range map[string]bool{"app.m": true, "app./m/": false, "/app/.m": false} {
		p, err := ParsePattern(text)
		require.NoError(t, err)
		table, ok := p.Table()
		assert.Equal(t, one, ok, text)
		if ok {
			assert.Equal(t, outbox.Table{Database: "app", Name: "m"}, table)
		}
	}
}

func TestListsOfPatterns(t *testing.T) {
	t.Parallel()
	p, err := ParsePatterns([]string{"app.local_message", `/shop_[ab]/./msg_\d+/`, "x.y$z"})
	require.NoError(t, err)
	require.Len(t, p.All(), 3)
	for text, want := range map[string]bool{
		"app.local_message": true, "App.local_message": false, "app.local_message_bak": false, "app.xlocal_message": false,
		"shop_a.msg_12": true, "shop_a.msg_": false, "shop_c.msg_1": false, "xshop_a.msg_1": false, "x.y$z": true,
	} {
		database, name, _ := strings.Cut(text, ".")
		require.Equal(t, want, p.Match(outbox.Table{Database: database, Name: name}), text)
	}
	folded := p.FoldCase(true)
	require.True(t, folded.Match(outbox.Table{Database: "APP", Name: "Local_Message"}))
	require.True(t, folded.Match(outbox.Table{Database: "Shop_A", Name: "MSG_1"}))
	require.True(t, p.MatchDatabase("app"))
	require.False(t, p.MatchDatabase("App"))
	require.True(t, p.MatchName("msg_3"))
	require.False(t, p.MatchName("msg_"))
}

func TestHistoriesDoNotMatch(t *testing.T) {
	t.Parallel()
	p, err := ParsePatterns([]string{`app./msg_\w+/`, "app.other_history"})
	require.NoError(t, err)
	p = p.Excluding("{table}_history")
	for name, want := range map[string]bool{"msg_1": true, "msg_1_history": false, "msg_1_history_history": false, "other_history": true, "msg_history": true} {
		assert.Equal(t, want, p.Match(outbox.Table{Database: "app", Name: name}), name)
	}
	assert.True(t, p.Excluding("").Match(outbox.Table{Database: "app", Name: "msg_1_history"}), "nothing is archived")
	assert.False(t, p.FoldCase(true).Match(outbox.Table{Database: "APP", Name: "MSG_1_History"}))
	assert.True(t, p.Names(outbox.Table{Database: "app", Name: "msg_1_history"}))
	assert.True(t, p.IsHistory(outbox.Table{Database: "app", Name: "msg_1_history"}))
	assert.False(t, p.IsHistory(outbox.Table{Database: "app", Name: "msg_1"}))
}

func TestTablesThatMayBeMeant(t *testing.T) {
	t.Parallel()
	there := Tables{
		Databases: []string{"app", "other", "shop"},
		Names:     map[string][]string{"app": {"local_massage", "orders"}, "shop": {"local_message_1"}},
	}
	near := func(text string) []string {
		p, err := ParsePattern(text)
		require.NoError(t, err)
		return there.Near(p, false)
	}
	assert.Equal(t, []string{"app.local_massage"}, near("app.local_message"))
	assert.Equal(t, []string{"shop"}, near("shp.local_message"), "no such database")
	assert.Equal(t, []string{"app"}, near("app.zzzzzzzzz"), "where to look, at least")
	assert.Equal(t, []outbox.Table{{Database: "app", Name: "orders"}, {Database: "shop", Name: "local_message_1"}},
		there.Where(func(t outbox.Table) bool { return t.Name != "local_massage" }))
}
