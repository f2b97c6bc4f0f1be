package main

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// played is a report that was given events, one a line.
func played(t *testing.T, events string) (*report, *bytes.Buffer) {
	t.Helper()
	var out bytes.Buffer
	r := &report{out: &out}
	require.NoError(t, readEvents(strings.NewReader(events), r))
	return r, &out
}

// failing are the events of a package p whose test TestX fails and says something.
func failing(said string) string {
	return `{"Action":"run","Package":"p","Test":"TestX"}
{"Action":"output","Package":"p","Test":"TestX","Output":"` + said + `\n"}
{"Action":"fail","Package":"p","Test":"TestX","Elapsed":1.5}
{"Action":"fail","Package":"p","Elapsed":2}
`
}

var listedX = map[flakyTest]flakyEntry{{"p", "TestX"}: {cause: "slow disk", since: time.Unix(0, 0)}}

func TestVerdictsAreNeverRunAgain(t *testing.T) {
	t.Parallel()
	for name, said := range map[string]string{
		"DataRace":     "WARNING: DATA RACE",
		"RelaysRace":   `    relay.go:1: the relay's log has \"WARNING: DATA RACE\"`,
		"Panic":        "panic: runtime error: index out of range",
		"RelaysPanic":  `    relay.go:1: the relay's log has \"panic:\"`,
		"Oracle":       "    e2e_test.go:1: verdict: out of order 1 (m-2 after m-3)",
		"Fault":        "        FAULT lost 1 (m-1)",
		"Copies":       `        \tMessages:   \tcopies`,
		"Property":     "    [rapid] failed after 3 tests: order lost",
		"DeepProperty": "x_test.go:1: [rapid] panic after 3 tests: boom",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := played(t, failing(said))
			verdicts := judge(r.failures(), listedX)
			require.Len(t, verdicts, 1)
			assert.True(t, verdicts[0].isFinal(), "although it is listed")
		})
	}
}

func TestOtherFailuresAreRunAgainWhenTheyAreListed(t *testing.T) {
	t.Parallel()
	r, _ := played(t, failing("    scene.go:1: not ready within 30 s"))
	assert.False(t, judge(r.failures(), listedX)[0].isFinal())
	assert.Equal(t, "slow disk", judge(r.failures(), listedX)[0].listed.cause)
	unlisted := judge(r.failures(), nil)[0]
	assert.Contains(t, unlisted.final, flakyList)
}

func TestARaceOutsideATestIsAVerdict(t *testing.T) {
	t.Parallel()
	r, _ := played(t, `{"Action":"output","Package":"p","Output":"WARNING: DATA RACE\n"}`+"\n"+failing("    not ready"))
	assert.Equal(t, "a data race in its package", judge(r.failures(), listedX)[0].final)
	r, _ = played(t, `{"Action":"run","Package":"p","Test":"TestFine"}
{"Action":"output","Package":"p","Test":"TestFine","Output":"WARNING: DATA RACE\n"}
{"Action":"pass","Package":"p","Test":"TestFine"}`+"\n"+failing("    not ready"))
	assert.Equal(t, "a data race in its package", judge(r.failures(), listedX)[0].final, "also when it stands with another test")
}

func TestWhatDoesNotPassFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ events, test, final string }{
		"NoEnd": {
			`{"Action":"run","Package":"p","Test":"TestX"}
{"Action":"fail","Package":"p","Elapsed":2}`, "TestX", "it never came to an end",
		},
		"Skipped": {
			`{"Action":"run","Package":"p","Test":"TestX"}
{"Action":"skip","Package":"p","Test":"TestX"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"pass","Package":"p","Elapsed":2}`, "TestX", "it was skipped: what it needs is missing",
		},
		"SkippedPart": {
			`{"Action":"run","Package":"p","Test":"TestX"}
{"Action":"skip","Package":"p","Test":"TestX/MySQL"}
{"Action":"pass","Package":"p","Test":"TestX"}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"pass","Package":"p","Elapsed":2}`, "TestX", "it was skipped: what it needs is missing",
		},
		"TestMain": {
			`{"Action":"output","Package":"p","Output":"goleak: found unexpected goroutines\n"}
{"Action":"fail","Package":"p","Elapsed":2}`, "", "the package failed outside its tests",
		},
		"Build": {
			`{"ImportPath":"p [p.test]","Action":"build-output","Output":"p/x.go:1:1: syntax error\n"}
{"ImportPath":"p [p.test]","Action":"build-fail"}
{"Action":"fail","Package":"p","FailedBuild":"p [p.test]"}`, "", "it does not build",
		},
		"ExitedByItself": {
			`{"Action":"run","Package":"p","Test":"TestX"}
{"Action":"pass","Package":"p","Test":"TestX"}`, "", "the package never came to its end",
		},
		"TestMainExitsWithoutTests": {
			`{"Action":"output","Package":"p","Output":"ok  \tp\t0.001s\n"}
{"Action":"pass","Package":"p","Elapsed":0.001}`, "", "the package never came to its end",
		},
		"FirstOfTwoRounds": {
			`{"Action":"run","Package":"p","Test":"TestY"}
{"Action":"fail","Package":"p","Test":"TestY"}
{"Action":"run","Package":"p","Test":"TestY"}
{"Action":"pass","Package":"p","Test":"TestY"}
{"Action":"fail","Package":"p","Elapsed":2}`, "TestY", "a failure, and test/flaky.md does not list the test",
		},
		"SecondOfTwoRoundsHasNoEnd": {
			`{"Action":"run","Package":"p","Test":"TestX"}
{"Action":"pass","Package":"p","Test":"TestX"}
{"Action":"run","Package":"p","Test":"TestX"}
{"Action":"fail","Package":"p","Elapsed":2}`, "TestX", "it never came to an end",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := played(t, tt.events)
			require.True(t, r.failed())
			verdicts := judge(r.failures(), listedX)
			require.Len(t, verdicts, 1)
			assert.Equal(t, tt.test, verdicts[0].test)
			assert.Equal(t, tt.final, verdicts[0].final)
		})
	}
}

func TestFailingOutputIsPrintedAndPassingIsNot(t *testing.T) {
	t.Parallel()
	_, out := played(t, `{"Action":"output","Package":"p","Output":"-test.shuffle 42\n"}
{"Action":"output","Package":"p","Test":"TestFine","Output":"noise\n"}
{"Action":"output","Package":"p","Test":"TestX/Part","Output":"=== RUN   TestX/Part\n"}
{"Action":"pass","Package":"p","Test":"TestFine","Elapsed":25}
{"Action":"output","Package":"p","Test":"TestX/Part","Output":"what is wrong\n"}
`+failing("the rest"))
	assert.Contains(t, out.String(), "what is wrong\nthe rest\n")
	assert.NotContains(t, out.String(), "noise")
	assert.NotContains(t, out.String(), "=== RUN")
	assert.Contains(t, out.String(), "-test.shuffle 42", "or nobody could run it in that order again")
	assert.Contains(t, out.String(), "25.0s TestFine")
	assert.Contains(t, out.String(), "FAIL     2.0s    2 tests  p\n")
}

func TestSummaryFitsAScreenAndSaysWhatWasRunAgain(t *testing.T) {
	t.Parallel()
	r, out := played(t, failing("    not ready"))
	verdicts := judge(r.failures(), listedX)
	out.Reset()
	require.NoError(t, summarize(out, r, verdicts, []retried{{verdict: verdicts[0], passed: true}}, nil, time.Minute))
	assert.Contains(t, out.String(), "1 packages, 1 tests, 1m0s")
	assert.Contains(t, out.String(), "run again  p TestX: passed (slow disk, since 1970-01-01)")
	require.ErrorIs(t, summarize(out, r, verdicts, []retried{{verdict: verdicts[0]}}, nil, time.Minute), errFailed)
	out.Reset()
	many := make([]verdict, 100)
	for i := range many {
		many[i] = verdict{pkg: strings.Repeat("p", i/4+1), test: "TestX"}
	}
	require.ErrorIs(t, summarize(out, r, many, nil, nil, time.Minute), errFailed)
	assert.Less(t, strings.Count(out.String(), "\n"), 40)
	assert.Contains(t, out.String(), "and 80 more")
	out.Reset()
	require.ErrorIs(t, summarize(out, r, make([]verdict, 100), nil, nil, time.Minute), errFailed)
	assert.Contains(t, out.String(), "(100 tests)")
}

func TestFlakyListNeedsCauseAndDate(t *testing.T) {
	t.Parallel()
	read := func(text string) (map[flakyTest]flakyEntry, error) {
		path := filepath.Join(t.TempDir(), "flaky.md")
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return readFlaky(path)
	}
	listed, err := read("# Words with `TestNames`\n| package | test | cause | since |\n|---|---|---|---|\n| `p` | `TestX` | slow disk | 2026-11-30 |\n")
	require.NoError(t, err)
	require.Contains(t, listed, flakyTest{"p", "TestX"})
	for _, wrong := range []string{
		"| `p` | `TestX` |  | 2026-11-30 |", "| `p` | `TestX` | slow disk | soon |", "| `p` | `TestX` | slow disk |", "| p | `TestX` | slow | 2026-11-30 |",
		strings.Repeat("| `p` | `TestX` | slow | 2026-11-30 |\n", 1) + "| `p` | `TestA` | s | 2026-11-30 |\n| `p` | `TestB` | s | 2026-11-30 |\n" +
			"| `p` | `TestC` | s | 2026-11-30 |\n| `p` | `TestD` | s | 2026-11-30 |\n| `p` | `TestE` | s | 2026-11-30 |\n",
	} {
		_, err := read(wrong)
		require.Error(t, err, wrong)
	}
	_, err = readFlaky("../../" + flakyList)
	require.NoError(t, err, "the list itself")
}

// A module of its own has a test that fails the first time and one that breaks an order: the first is listed and
// passes when it is run again; the second is too, and is not.
func TestRunOfARealModule(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n",
		"m_test.go": `package m

import (
	"os"
	"testing"
)

func TestFirstTime(t *testing.T) {
	if _, err := os.Stat("seen"); err != nil {
		if err := os.WriteFile("seen", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Fatal("the first time")
	}
}

func TestOrder(t *testing.T) {
	if os.Getenv("SUITE_ORDER") != "" {
		t.Fatal("verdict: out of order 1")
	}
}
`,
		"test/flaky.md": "| `m` | `TestFirstTime` | by its nature | 2026-11-30 |\n| `m` | `TestOrder` | luck | 2026-11-30 |\n",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	t.Chdir(dir)
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"./...", "--", "-count=1"}, &out), out.String())
	assert.Contains(t, out.String(), "run again  m TestFirstTime: passed (by its nature, since 2026-11-30)")
	require.NoError(t, os.Remove("seen"))
	t.Setenv("SUITE_ORDER", "broken")
	out.Reset()
	require.ErrorIs(t, run(t.Context(), []string{"./...", "--", "-count=1"}, &out), errFailed)
	assert.Contains(t, out.String(), "FAILED     m TestOrder: a verdict of the oracle")
	assert.NotContains(t, out.String(), "passed (by its nature)", "nothing is run again when the run fails anyway")
	out.Reset()
	require.ErrorIs(t, run(t.Context(), []string{"./...", "--", "-run", "TestNone"}, &out), errFailed)
	assert.Contains(t, out.String(), "no test was run")
	require.ErrorContains(t, run(t.Context(), []string{"./..."}, &out), "usage")
	require.ErrorContains(t, run(t.Context(), []string{"./...", "--", "-failfast"}, &out), "-failfast")
}

// A person who interrupts a run is told what was running, and nothing goes on.
func TestInterruptedRunLeavesNothingBehind(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.MkdirAll(filepath.Join(dir, "test"), 0o700))
	for name, text := range map[string]string{
		"go.mod": "module m\n\ngo 1.26\n", "test/flaky.md": "",
		"m_test.go": `package m

import (
	"os"
	"strconv"
	"testing"
)

func TestHangs(t *testing.T) {
	if err := os.WriteFile("pid", []byte(strconv.Itoa(os.Getpid())), 0o600); err != nil {
		t.Fatal(err)
	}
	<-t.Context().Done()
}
`,
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	t.Chdir(dir)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	var out bytes.Buffer
	ended := make(chan error, 1) // size 1: it is read after the interrupt
	go func() { ended <- run(ctx, []string{"./...", "--", "-count=1"}, &out) }()
	var pid []byte
	require.Eventually(t, func() bool {
		pid, _ = os.ReadFile("pid")
		return len(pid) > 0
	}, time.Minute, 10*time.Millisecond)
	interrupt()
	require.ErrorIs(t, <-ended, errFailed)
	assert.Contains(t, out.String(), "FAILED     run go test: context canceled")
	assert.Contains(t, out.String(), "m TestHangs: it never came to an end")
	require.NoFileExists(t, filepath.Join("/proc", string(pid)))
}
