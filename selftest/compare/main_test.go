//go:build linux

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const goStream = `{"Action":"start","Package":"os"}
{"Action":"output","Package":"os","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"pass","Package":"os","Test":"TestA","Elapsed":0.5}
{"Action":"output","Package":"os","Test":"TestB/sub","Output":"    b_test.go:7: no such thing\n"}
{"Action":"output","Package":"os","Test":"TestB/sub","Output":"    --- SKIP: TestB/sub (0.00s)\n"}
{"Action":"skip","Package":"os","Test":"TestB/sub","Elapsed":0}
{"Action":"pass","Package":"os","Elapsed":1}
`

// A failed subtest leaves a case without a name (test.support.testresult does that).
const junit = `<testsuites tests="4" errors="1" failures="1"><testsuite start="x" tests="4">
<testcase name="test.test_os.A.test_one" status="run" result="completed" time="0.5" />
<testcase name="test.test_os.A.test_two" status="run" time="0.1"><skipped>requires root</skipped></testcase>
<testcase name="test.test_os.A.test_three" time="9"><error type="OSError"
message="Traceback:&#10;OSError: [Errno 30] Read-only file system: '/usr/lib/x.pyc'&#10;">…</error></testcase>
<testcase />
<testcase name="test.test_os.A.test_four" time="0.1"><failure message="AssertionError: 1 != 2"/></testcase>
</testsuite></testsuites>`

func write(t *testing.T, name, text string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestReadResults(t *testing.T) {
	for _, c := range []struct {
		text string
		want results
	}{
		{goStream, results{
			"os.TestA":     {passed, "", 0.5},
			"os.TestB/sub": {skipped, "b_test.go:7: no such thing", 0},
		}},
		{junit, results{
			"test.test_os.A.test_one":   {passed, "", 0.5},
			"test.test_os.A.test_two":   {skipped, "requires root", 0.1},
			"test.test_os.A.test_three": {failed, "OSError: [Errno 30] Read-only file system: '/usr/lib/x.pyc'", 9},
			"test.test_os.A.test_four":  {failed, "AssertionError: 1 != 2", 0.1},
		}},
	} {
		got, err := readResults(write(t, "r", c.text))
		if err != nil {
			t.Fatal(err)
		}
		for name, want := range c.want {
			if got[name] != want {
				t.Errorf("%s: %+v, want %+v", name, got[name], want)
			}
		}
		if len(got) != len(c.want) {
			t.Errorf("%d results, want %d: %v", len(got), len(c.want), got)
		}
	}
}

// A run that did not happen equals nothing.
func TestNoResults(t *testing.T) {
	for _, text := range []string{
		"", "<testsuites></testsuites>", `{"Action":"fail","Package":"os"}`, "<testsuites><testsuite>", "sbx: no",
	} {
		file := write(t, "r", text)
		if _, err := run(new(strings.Builder), "", 0, file, file); err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%q: error %v, want one that names the file", text, err)
		}
	}
}

func TestDifferences(t *testing.T) {
	good := strings.NewReplacer("<error ", "<none ", "</error>", "</none>").Replace(junit)
	outside := write(t, "out", good)
	inside := write(t, "in", strings.Replace(junit, `name="test.test_os.A.test_one"`, "", 1))
	for _, c := range []struct {
		page string
		open int
	}{
		{"", 2},
		// second cells are no names
		{"| test | outside |\n|---|---|\n| `test.test_os.A.test_one` | `test.test_os.A.test_three` |\n", 1},
		{"| `test.test_os.A.test_one`, `OSError: [Errno 30] *: '/usr/lib/*'` | x |", 0},
		{"| `test.test_os.*` | x |", 0},
		{"| `test.test_os` `A.*` `*.test_on` | x |", 2},
		{"`test.test_os.*` is only said\n", 2},
	} {
		page := ""
		if c.page != "" {
			page = write(t, "page.md", c.page)
		}
		var b strings.Builder
		open, err := run(&b, page, 1, outside, inside)
		if err != nil || open != c.open {
			t.Errorf("page %q: %d differences that nothing explains, %v; want %d\n%s", c.page, open, err, c.open, &b)
		}
		for _, line := range []string{"test.test_os.A.test_three\tpass -> fail\tOSError",
			"test.test_os.A.test_one\tpass -> absent"} {
			if !strings.Contains(b.String(), line) {
				t.Errorf("the difference %q is not printed:\n%s", line, &b)
			}
		}
	}
}

func TestSlower(t *testing.T) {
	fast := write(t, "out", strings.Replace(goStream, `"Elapsed":0.5`, `"Elapsed":0.1`, 1))
	var b strings.Builder
	_, err := run(&b, "", 0.3, fast, write(t, "in", goStream))
	if err != nil || !strings.Contains(b.String(), "slower\tos.TestA\t0.10s -> 0.50s") {
		t.Errorf("%v\n%s", err, &b)
	}
	b.Reset()
	if _, err := run(&b, "", 0.3, fast, fast); err != nil || strings.Contains(b.String(), "slower") {
		t.Errorf("equal times are called slower: %v\n%s", err, &b)
	}
}
