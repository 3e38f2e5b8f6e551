package main

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
)

const broken = `{"Action":"pass","Package":"p","Test":"TestGood"}
{"Action":"output","Package":"p","Test":"TestA/x","Output":"reason\n"}
{"Action":"fail","Package":"p","Test":"TestA/x"}
{"Action":"pass","Package":"p","Test":"TestA/y"}
{"Action":"fail","Package":"p","Test":"TestA"}
{"Action":"fail","Package":"p"}
`

func TestRerun(t *testing.T) {
	pass := `{"Action":"pass","Package":"p","Test":"TestA/x"}` + "\n" + `{"Action":"pass","Package":"p"}`
	fail := `{"Action":"fail","Package":"p","Test":"TestA/x"}` + "\n" + `{"Action":"fail","Package":"p"}`
	for _, tc := range []struct {
		name, stream, second string
		err                  error
		last                 string
		want, wantNot        string
	}{
		{"passes", broken, pass, nil, "4 passed, 0 failed, 0 skipped", "flaky p TestA/x", ""},
		{"fails again", broken, fail, nil, "2 passed, 2 failed, 0 skipped", "reason", "flaky"},
		{"runs nothing", broken, `{"Action":"pass","Package":"p"}`, nil, "2 passed, 2 failed, 0 skipped", "", "flaky"},
		{"cannot run", broken, "", errors.New("no go"), "2 passed, 2 failed, 0 skipped", "no go", "flaky"},
		{"two failed", broken + `{"Action":"fail","Package":"p","Test":"TestB"}`, pass, nil, "2 passed, 3 failed, 0 skipped",
			"", "flaky"},
		{"did not end", `{"Action":"fail","Package":"p"}`, pass, nil, "0 passed, 1 failed, 0 skipped", "", "flaky"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			var out bytes.Buffer
			c := newCounter(&out)
			if err := c.read(strings.NewReader(tc.stream)); err != nil {
				t.Fatal(err)
			}
			c.rerun(func(pkg, pattern string) (io.Reader, error) {
				if pkg != "p" || pattern != "^TestA$/^x$" {
					t.Errorf("ran %s %s", pkg, pattern)
				}
				return strings.NewReader(tc.second), tc.err
			})
			c.close()
			lines := strings.Split(strings.TrimSpace(out.String()), "\n")
			if last := lines[len(lines)-1]; last != tc.last {
				t.Errorf("last line %q, want %q", last, tc.last)
			}
			if !strings.Contains(out.String(), tc.want) || tc.wantNot != "" && strings.Contains(out.String(), tc.wantNot) {
				t.Errorf("output %q", out.String())
			}
		})
	}
}
