package diagnose_test

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"example.com/outbox-relay/internal/diagnose"
)

func TestWorstIsTheHighestLevel(t *testing.T) {
	t.Parallel()
	var r diagnose.Report
	assert.Equal(t, diagnose.OK, r.Worst())
	r.OK("a", "fine")
	assert.Equal(t, diagnose.OK, r.Worst())
	r.Fail("b", "broken", "fix it")
	r.Warn("c", "meh", "")
	assert.Equal(t, diagnose.Failure, r.Worst())
}

func TestMergeKeepsTheOrder(t *testing.T) {
	t.Parallel()
	var a, b diagnose.Report
	a.OK("1", "")
	b.Warn("2", "", "")
	b.Fail("3", "", "")
	a.Merge(b)
	var checks []string
	for _, f := range a.Findings {
		checks = append(checks, f.Check)
	}
	assert.Equal(t, []string{"1", "2", "3"}, checks)
}

func TestFindingIsWordsInJSON(t *testing.T) {
	t.Parallel()
	f := diagnose.Finding{Check: "x", Level: diagnose.Warning, Means: "y"}
	out, err := json.Marshal(f)
	require.NoError(t, err)
	assert.JSONEq(t, `{"check":"x","level":"warning","means":"y"}`, string(out))
	var back diagnose.Finding
	require.NoError(t, json.Unmarshal(out, &back))
	assert.Equal(t, f, back)
	require.Error(t, json.Unmarshal([]byte(`{"level":"bad"}`), &back))
	assert.Equal(t, "level(9)", diagnose.Level(9).String())
}
