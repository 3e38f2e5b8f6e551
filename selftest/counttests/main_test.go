package main

import (
	"io"
	"os/exec"
	"strings"
	"testing"
)

func run(t *testing.T, stream string) (string, [kinds]int) {
	t.Helper()
	var b strings.Builder
	c := counter{out: &b, texts: map[key][]string{}, failed: map[string]bool{}}
	if err := c.read(strings.NewReader(stream)); err != nil {
		t.Fatal(err)
	}
	c.close()
	return b.String(), c.counts
}

func TestCounts(t *testing.T) {
	out, n := run(t, `{"Action":"run","Package":"a","Test":"T1"}
{"Action":"output","Package":"a","Test":"T1","Output":"=== RUN T1\n"}
{"Action":"output","Package":"a","Test":"T1","Output":"boring\n"}
{"Action":"pass","Package":"a","Test":"T1"}
{"Action":"output","Package":"a","Test":"T2/sub","Output":"the reason\n"}
{"Action":"fail","Package":"a","Test":"T2/sub"}
{"Action":"output","Package":"a","Test":"T3","Output":"missing: userns\n"}
{"Action":"skip","Package":"a","Test":"T3"}
{"Action":"fail","Package":"a","Elapsed":1.25}
`)
	if n != [kinds]int{1, 1, 1} {
		t.Errorf("counted %v", n)
	}
	for _, want := range []string{"FAIL a T2/sub\n    the reason\n", "skip a T3\n    missing: userns\n", "FAIL a 1.2s\n",
		"\n1 passed, 1 failed, 1 skipped\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is not in %q", want, out)
		}
	}
	if strings.Contains(out, "boring") {
		t.Errorf("what passed is printed: %q", out)
	}
}

func TestReasonsAreRepeated(t *testing.T) {
	out, _ := run(t, `{"Action":"output","Package":"a","Test":"T/script","Output":"    testscript.go:609: WORK=/x\n"}
{"Action":"output","Package":"a","Test":"T/script","Output":"        FAIL: x.txtar:3: no match\n"}
{"Action":"output","Package":"a","Test":"T/script","Output":"        FAIL: x.txtar:9: nor here\n"}
{"Action":"fail","Package":"a","Test":"T/script"}
{"Action":"fail","Package":"a","Test":"T"}
{"Action":"output","Package":"a","Test":"U","Output":"    u_test.go:7: 3 is not 4\n"}
{"Action":"fail","Package":"a","Test":"U"}
`)
	want := "why a T/script: FAIL: x.txtar:3: no match\nwhy a U: u_test.go:7: 3 is not 4\n0 passed, 3 failed, 0 skipped\n"
	if !strings.HasSuffix(out, want) {
		t.Errorf("%q does not end with %q", out, want)
	}
}

func TestBrokenBuildIsAFailure(t *testing.T) {
	out, n := run(t, `{"ImportPath":"b","Action":"build-output","Output":"b/x.go:1: undefined: y\n"}
{"Action":"fail","Package":"b","Elapsed":0,"FailedBuild":"b"}
`)
	if n[failed] != 1 || !strings.Contains(out, "undefined: y") ||
		!strings.HasSuffix(out, "0 passed, 1 failed, 0 skipped\n") {
		t.Errorf("%v %q", n, out)
	}
}

func TestCrashIsAFailure(t *testing.T) {
	out, n := run(t, `{"Action":"output","Package":"b","Test":"T","Output":"fatal error\n"}
{"Action":"output","Package":"b","Output":"exit status 2\n"}
{"Action":"fail","Package":"b"}
`)
	if n[failed] != 1 || !strings.Contains(out, "fatal error") || !strings.Contains(out, "exit status 2") {
		t.Errorf("%v %q", n, out)
	}
}

func TestCoverageIsPrinted(t *testing.T) {
	out, _ := run(t, `{"Action":"output","Package":"b","Output":"coverage: 81.2% of statements\n"}
{"Action":"pass","Package":"b","Elapsed":1}
{"Action":"output","Package":"c","Output":"coverage: [no statements]\n"}
{"Action":"pass","Package":"c","Elapsed":1}
`)
	if !strings.Contains(out, "ok   b 1.0s, covers 81.2%\n") || !strings.Contains(out, "ok   c 1.0s\n") {
		t.Errorf("%q", out)
	}
}

func TestOtherLinesAreShown(t *testing.T) {
	if out, _ := run(t, "go: no such module\n"); !strings.HasPrefix(out, "go: no such module\n") {
		t.Errorf("%q", out)
	}
}

// A command that ends badly without one failed test has not run everything.
func TestFailedCommandIsAFailure(t *testing.T) {
	for script, want := range map[string]int{
		`echo '{"Action":"pass","Package":"a","Test":"T"}'; exit 1`:                                         1,
		`echo '{"Action":"pass","Package":"a","Test":"T"}'`:                                                 0,
		`echo '{"Action":"fail","Package":"a","Test":"T"}'; echo '{"Action":"fail","Package":"a"}'; exit 1`: 1,
	} {
		c := newCounter(io.Discard)
		c.run(exec.Command("sh", "-c", script))
		if c.counts[failed] != want {
			t.Errorf("%s: %v, want %d failed", script, c.counts, want)
		}
	}
}

// The slowest are the tests that do something, and not those that wait for them.
func TestSlowest(t *testing.T) {
	var b strings.Builder
	c := newCounter(&b)
	if err := c.read(strings.NewReader(`{"Action":"pass","Package":"a","Test":"T1/x","Elapsed":2}
{"Action":"pass","Package":"a","Test":"T1/y","Elapsed":7.25}
{"Action":"pass","Package":"a","Test":"T1","Elapsed":9}
{"Action":"fail","Package":"b","Test":"T2","Elapsed":3}
`)); err != nil {
		t.Fatal(err)
	}
	b.Reset()
	c.slowest(2)
	if want := "slow a T1/y 7.2s\nslow b T2 3.0s\n"; b.String() != want {
		t.Errorf("%q, want %q", b.String(), want)
	}
	if c.slowest(0); strings.Count(b.String(), "slow") != 2 {
		t.Error("none were asked for")
	}
}
