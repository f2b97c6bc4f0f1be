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

func TestAFailureHasItsReason(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ said, why string }{
		"DataRace":     {"WARNING: DATA RACE", "a data race in its package"},
		"RelaysRace":   {`    relay.go:1: the relay's log has \"WARNING: DATA RACE\"`, "a data race in its package"},
		"Panic":        {"panic: runtime error: index out of range", "a panic in its package"},
		"RelaysPanic":  {`    relay.go:1: the relay's log has \"panic:\"`, "a panic in its package"},
		"Oracle":       {"    e2e_test.go:1: verdict: out of order 1 (m-2 after m-3)", "a verdict of the oracle"},
		"Fault":        {"        FAULT lost 1 (m-1)", "a verdict of the oracle"},
		"Copies":       {`        \tMessages:   \tcopies`, "a verdict of the oracle"},
		"Property":     {"    [rapid] failed after 3 tests: order lost", "a property that does not hold"},
		"DeepProperty": {"x_test.go:1: [rapid] panic after 3 tests: boom", "a property that does not hold"},
		"AnyOther":     {"    scene.go:1: not ready within 30 s", "it failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, _ := played(t, failing(tt.said))
			assert.Equal(t, []verdict{{pkg: "p", test: "TestX", why: tt.why}}, judge(r.failures()))
		})
	}
}

func TestARaceOutsideATestIsTheReason(t *testing.T) {
	t.Parallel()
	r, _ := played(t, `{"Action":"output","Package":"p","Output":"WARNING: DATA RACE\n"}`+"\n"+failing("    not ready"))
	assert.Equal(t, "a data race in its package", judge(r.failures())[0].why)
	r, _ = played(t, `{"Action":"run","Package":"p","Test":"TestFine"}
{"Action":"output","Package":"p","Test":"TestFine","Output":"WARNING: DATA RACE\n"}
{"Action":"pass","Package":"p","Test":"TestFine"}`+"\n"+failing("    not ready"))
	assert.Equal(t, "a data race in its package", judge(r.failures())[0].why, "also when it stands with another test")
}

func TestWhatDoesNotPassFails(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ events, test, why string }{
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
{"Action":"fail","Package":"p","Elapsed":2}`, "TestY", "it failed",
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
			assert.Equal(t, []verdict{{pkg: "p", test: tt.test, why: tt.why}}, judge(r.failures()))
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

func TestTimeOfATestHasItsParallelPartsAndNotTheirWaiting(t *testing.T) {
	t.Parallel()
	r, out := played(t, `{"Time":"2026-01-01T00:00:00Z","Action":"run","Package":"p","Test":"TestX"}
{"Time":"2026-01-01T00:00:01Z","Action":"pause","Package":"p","Test":"TestX"}
{"Time":"2026-01-01T00:01:00Z","Action":"cont","Package":"p","Test":"TestX"}
{"Time":"2026-01-01T00:01:00Z","Action":"run","Package":"p","Test":"TestX/A"}
{"Time":"2026-01-01T00:01:00Z","Action":"pause","Package":"p","Test":"TestX/A"}
{"Time":"2026-01-01T00:01:00Z","Action":"run","Package":"p","Test":"TestX/B"}
{"Time":"2026-01-01T00:01:00Z","Action":"pause","Package":"p","Test":"TestX/B"}
{"Time":"2026-01-01T00:10:00Z","Action":"cont","Package":"p","Test":"TestX/A"}
{"Time":"2026-01-01T00:10:20Z","Action":"cont","Package":"p","Test":"TestX/B"}
{"Time":"2026-01-01T00:10:30Z","Action":"pass","Package":"p","Test":"TestX/A","Elapsed":30}
{"Time":"2026-01-01T00:10:41Z","Action":"pass","Package":"p","Test":"TestX/B","Elapsed":21}
{"Time":"2026-01-01T00:10:41Z","Action":"pass","Package":"p","Test":"TestX","Elapsed":1}
{"Action":"output","Package":"p","Output":"PASS\n"}
{"Action":"pass","Package":"p","Elapsed":700}`)
	require.False(t, r.failed())
	assert.Contains(t, out.String(), " 41.0s TestX\n")
}

func TestSummaryFitsAScreenAndHasTheTimeOfEachPart(t *testing.T) {
	t.Parallel()
	r, out := played(t, failing("    not ready"))
	r.part, r.took = "servers", time.Minute
	out.Reset()
	require.NoError(t, summarize(out, []*report{r, {part: "stories", took: time.Hour}}, nil, nil))
	assert.Contains(t, out.String(), "servers        1m0s   1 packages, 1 tests\n")
	assert.Contains(t, out.String(), "stories      1h0m0s   0 packages, 0 tests\n")
	assert.Contains(t, out.String(), "together     1h1m0s\n")
	out.Reset()
	many := make([]verdict, 100)
	for i := range many {
		many[i] = verdict{pkg: strings.Repeat("p", i/4+1), test: "TestX"}
	}
	require.ErrorIs(t, summarize(out, []*report{r}, many, nil), errFailed)
	assert.Less(t, strings.Count(out.String(), "\n"), 40)
	assert.Contains(t, out.String(), "and 80 more")
	out.Reset()
	require.ErrorIs(t, summarize(out, []*report{r}, make([]verdict, 100), nil), errFailed)
	assert.Contains(t, out.String(), "(100 tests)")
}

func TestMissingIsWhatNoPartHasRun(t *testing.T) {
	t.Parallel()
	r, _ := played(t, failing("a failed test was run, too"))
	s := source{path: "p", unit: []string{"TestX", "ExampleX"}, servers: []string{"TestLost"}}
	assert.Equal(t, []verdict{{pkg: "p", test: "TestLost", why: "it stands in the sources, and no part has run it"}},
		missing([]source{s}, []*report{{}, r}))
	assert.Len(t, missing([]source{s}, nil), 2)
}

// write makes the files of a module in a new folder and changes there.
func write(t *testing.T, files map[string]string) {
	t.Helper()
	dir := t.TempDir()
	files["go.mod"] = "module m\n\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	t.Chdir(dir)
}

// testFile is a file of package m with tests that do nothing.
func testFile(constraint string, names ...string) string {
	text := constraint + "package m\n\nimport \"testing\"\n"
	for _, name := range names {
		text += "\nfunc " + name + "(t *testing.T) {}\n"
	}
	return text
}

const needsServers = "//go:build !unit\n\n"

func TestEachTestIsInOnePart(t *testing.T) {
	write(t, map[string]string{
		"a/x_test.go":              testFile("", "TestUnit", "TestMeets"),
		"a/x_server_test.go":       testFile(needsServers, "TestServer", "TestÄ"),
		"b/odd_name_test.go":       testFile(needsServers, "TestMeets"), // the name of a unit test elsewhere
		"b/x_bench_test.go":        testFile("//go:build bench && !unit\n\n", "TestBench"),
		"test/s/x_test.go":         testFile("", "TestUnitOfStories"),
		"test/s/x_server_test.go":  testFile(needsServers, "TestStory"),
		"testing/x_server_test.go": testFile(needsServers, "TestServer"),
		"none/x.go":                "package none\n",
	})
	sources, err := readSources(t.Context(), []string{"./..."})
	require.NoError(t, err)
	assert.Equal(t, []part{
		{"unit", []string{"m/a", "m/test/s"}, []string{"-tags", "unit"}},
		{"servers", []string{"m/a", "m/b", "m/testing"}, []string{"-p", "2", "-run", "^(TestServer|TestÄ|TestMeets|TestServer)$"}},
		{"stories", []string{"m/test/s"}, []string{"-p", "1", "-run", "^(TestStory)$"}},
	}, partsOf(sources))

	var out bytes.Buffer
	require.NoError(t, run(t.Context(), []string{"./...", "--", "-count=1", "-v"}, &out), out.String())
	for _, line := range []string{"unit .* 2 packages, 3 tests", "servers .* 3 packages, 5 tests", "stories .* 1 packages, 1 tests"} {
		assert.Regexp(t, line, out.String())
	}
	assert.NotContains(t, out.String(), "TestBench")

	out.Reset()
	require.NoError(t, run(t.Context(), []string{"./...", "--", "-count=1", "-run", "TestServer"}, &out), out.String())
	assert.Regexp(t, "chosen .* 2 packages, 2 tests", out.String(), "flags that say what is run are obeyed")
	sources, err = readSources(t.Context(), []string{"./none"})
	require.NoError(t, err)
	assert.Empty(t, partsOf(sources))
}

func TestAFailureIsFinal(t *testing.T) {
	write(t, map[string]string{"m_test.go": `package m

import (
	"os"
	"testing"
)

func TestFirstTime(t *testing.T) {
	if _, err := os.Stat("seen"); err != nil {
		if err := os.WriteFile("seen", nil, 0o600); err != nil {
			t.Fatal(err)
		}
		t.Fatal("verdict: out of order 1")
	}
}
`, "a/x_server_test.go": testFile(needsServers, "TestServer")})
	var out bytes.Buffer
	require.ErrorIs(t, run(t.Context(), []string{"./...", "--", "-count=1"}, &out), errFailed)
	assert.Contains(t, out.String(), "FAILED     m TestFirstTime: a verdict of the oracle")
	assert.Regexp(t, "servers .* 1 packages, 1 tests", out.String(), "the other parts are run all the same")
	out.Reset()
	require.NoError(t, run(t.Context(), []string{"./...", "--", "-count=1"}, &out), out.String())
	out.Reset()
	require.ErrorIs(t, run(t.Context(), []string{"./...", "--", "-run", "TestNone"}, &out), errFailed)
	assert.Contains(t, out.String(), "no test was run")
	require.ErrorContains(t, run(t.Context(), []string{"./..."}, &out), "usage")
	require.ErrorContains(t, run(t.Context(), []string{"./...", "--", "-failfast"}, &out), "-failfast")
}

// A person who interrupts a run is told what was running, and nothing goes on.
func TestInterruptedRunLeavesNothingBehind(t *testing.T) {
	write(t, map[string]string{
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
	})
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
