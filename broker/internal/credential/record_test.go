//go:build linux

package credential

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/shared/proxied"
)

// TestUnreadableReportEndsProxy: where a report of sbx-proxy's cannot be read, sbx-proxy is ended and does not wait.
func TestUnreadableReportEndsProxy(t *testing.T) {
	for what, c := range map[string]struct {
		length int
		want   string
	}{"a long one": {maxReport + 1, "token too long"}, "a short one": {10, ""}} {
		in, out, err := os.Pipe()
		if err != nil {
			t.Fatal(err)
		}
		const script = `head -c $1 /dev/zero; echo; [ $1 = 10 ] || exec sleep 60`
		proxy, err := os.StartProcess("/bin/sh", []string{"sh", "-c", script, "sh",
			strconv.Itoa(c.length)}, &os.ProcAttr{Files: []*os.File{nil, out, os.Stderr}})
		if err != nil {
			t.Fatal(err)
		}
		out.Close()
		var warned []string
		g := grants(policy.Credential{Name: "me", Hosts: []string{"a.test"}})
		g.by.Warn = func(text string) { warned = append(warned, text) }
		g.proc, g.ended = proxy, make(chan struct{})
		ready := make(chan proxied.Report, 1)
		g.follow(in, ready)
		said := strings.Join(warned, "\n")
		if !strings.Contains(said, "sbx-proxy ended") || !strings.Contains(said, c.want) ||
			strings.Contains(said, "killed") != (c.want != "") {
			t.Errorf("%s: it warned of %q", what, said)
		}
	}
}

// TestUnrecordedUseEndsProxy: where the use of a credential cannot be written down, sbx-proxy is ended, and so it is
// where nobody could keep the uses until there is a record.
func TestUnrecordedUseEndsProxy(t *testing.T) {
	for what, c := range map[string]struct {
		uses           int
		record, broken bool
		want           string // the warning; empty: it goes on
	}{
		"a whole record":                    {1, true, false, ""},
		"a record that another wrote to":    {2, true, true, "cannot be recorded: writing audit log"},
		"few uses before there is one":      {maxEarly, false, false, ""},
		"too many uses before there is one": {maxEarly + 1, false, false, "cannot be recorded: there was too much of it"},
	} {
		log, err := audit.Create(filepath.Join(t.TempDir(), "logs"), "s", audit.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer log.Close()
		proxy, err := os.StartProcess("/bin/sleep", []string{"sleep", "60"}, &os.ProcAttr{})
		if err != nil {
			t.Fatal(err)
		}
		var warned []string
		g := grants(policy.Credential{Name: "me", Hosts: []string{"a.test"}})
		g.by.Warn = func(text string) { warned = append(warned, text) }
		g.proc, g.names = proxy, []string{"me"}
		if c.record {
			if err := g.Record(log); err != nil {
				t.Fatal(err)
			}
		}
		if c.broken {
			f, err := os.OpenFile(log.Path(), os.O_WRONLY|os.O_APPEND, 0)
			if err != nil {
				t.Fatal(err)
			}
			_, err = f.WriteString("x")
			if f.Close(); err != nil {
				t.Fatal(err)
			}
			if err := g.Record(log); err == nil {
				t.Error("a grant is not on record, and nobody is told")
			}
		}
		for range c.uses {
			g.use(&proxied.Use{Secret: "me", Host: "a.test", Port: 443, Method: "GET", Status: 200})
		}
		if c.want == "" {
			_ = proxy.Signal(os.Interrupt)
		}
		state, err := proxy.Wait()
		if err != nil {
			t.Fatal(err)
		}
		if killed := state.String() == "signal: killed"; killed != (c.want != "") {
			t.Errorf("%s: sbx-proxy: %v", what, state)
		}
		said := strings.Join(warned, "\n")
		if c.want == "" && said != "" || !strings.Contains(said, c.want) || len(warned) > 1 {
			t.Errorf("%s: it warned of %q, want %q", what, warned, c.want)
		}
	}
}
