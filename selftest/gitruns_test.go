//go:build linux

package selftest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"sbx.example/sbx/selftest/need"
)

// gitRow is one row of the tables of docs/git.md.
type gitRow struct {
	settings [][2]string // key, value
	file     string      // or a file
	shown    string      // what git runs it in; empty: nothing that a test can do
	since    string
}

func (r gitRow) String() string {
	if r.file != "" {
		return r.file
	}
	return fmt.Sprint(r.settings)
}

// quoted is a code span, between one backtick or two.
var quoted = regexp.MustCompile("`` ?(.+?) ``|`([^`]+)`")

// gitRows reads the tables.
func gitRows(t *testing.T) []gitRow {
	text, err := os.ReadFile(filepath.Join("..", "docs", "git.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ = bytes.Cut(text, []byte("## What git would run"))
	var rows []gitRow
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), " | ")
		words := quoted.FindAllStringSubmatch(cells[0], -1)
		if !strings.HasPrefix(line, "| `") || len(words) == 0 {
			continue
		}
		var r gitRow
		for _, w := range words {
			if key, value, ok := strings.Cut(w[1]+w[2], " = "); ok {
				r.settings = append(r.settings, [2]string{key, value})
			} else {
				r.file = w[2]
			}
		}
		last := strings.TrimSpace(cells[len(cells)-1])
		if command := quoted.FindStringSubmatch(last); command != nil && !strings.HasPrefix(last, "nothing: ") {
			r.shown = command[2]
		} else if last == "" {
			t.Errorf("%v: neither a control nor why there is none", r)
		}
		if len(cells) == 3 {
			r.since = strings.TrimSpace(cells[1])
		}
		rows = append(rows, r)
	}
	return rows
}

// TestGitRuns tries from inside every setting by which git runs a program, then works outside with each git: no program
// ran, and nothing changed. As the control the same settings are made outside, and do run.
func TestGitRuns(t *testing.T) {
	t.Parallel()
	needSandbox(t)
	rows := gitRows(t)
	if len(rows) < 50 {
		t.Fatalf("docs/git.md has %d rows", len(rows))
	}
	for i, git := range need.Gits(t) {
		out, err := exec.Command(git, "version").Output()
		if err != nil {
			t.Fatal(git, err)
		}
		version := strings.TrimSpace(string(out))
		t.Run(version, func(t *testing.T) {
			gitRuns(t, rows, git, version, filepath.Join(shop.dir, fmt.Sprintf("gitruns%d", i)))
		})
	}
}

// gitRuns is the test with one git for what is done outside, in a directory of its own.
func gitRuns(t *testing.T, rows []gitRow, git, version, top string) {
	writeRows(t, top, rows)
	run := func(want int, args ...string) string {
		t.Helper()
		cmd := exec.Command(args[0], args[1:]...)
		cmd.Dir, cmd.SysProcAttr = filepath.Join(top, "home", "project"), shop.attr()
		if _, err := os.Stat(cmd.Dir); err != nil {
			cmd.Dir = top
		}
		cmd.Env = append(shop.env(filepath.Join(top, "home"), top), "TOP="+top,
			"PATH="+filepath.Dir(git)+":"+filepath.Dir(shop.sbx)+":/usr/bin:/bin")
		var out, errs bytes.Buffer
		cmd.Stdout, cmd.Stderr = &out, &errs
		if _ = cmd.Run(); cmd.ProcessState == nil || cmd.ProcessState.ExitCode() != want {
			t.Fatalf("%q: %v\n%s%s", args, cmd.ProcessState, clip(out.Bytes()), clip(errs.Bytes()))
		}
		return out.String() + errs.String()
	}
	script := filepath.Join(top, "gitruns.sh")
	inside := []string{shop.sbx, "run", "-q", "--ro", top + "/rows", "--ro", top + "/origin", "--ro", script, "--env",
		"TOP"}
	plant := []string{"--", "sh", script, "plant"}
	unchanged := func(when string) {
		t.Helper()
		before, err := os.ReadFile(filepath.Join(top, "config"))
		after, err2 := os.ReadFile(filepath.Join(top, "home", "project", ".git", "config"))
		if err := errors.Join(err, err2); err != nil || !bytes.Equal(before, after) {
			t.Errorf("%s: the configuration is another: %v\n%s", when, err, after)
		}
		if marks := run(0, "sh", script, "work"); marks != "" {
			t.Errorf("%s: ran outside:\n%s", when, marks)
		}
	}
	run(0, "sh", script, "build")
	checkControl(t, rows, version, run(0, "sh", script, "control"))
	run(0, slices.Concat(inside, plant)...)
	unchanged("written in place")
	run(0, slices.Concat(inside, []string{"--ephemeral", "--keep", "--name", "runs"}, plant)...)
	if told := run(125, shop.sbx, "apply", "runs"); !strings.Contains(told, " .git/config  ! guarded: setting ") {
		t.Errorf("sbx apply tells: %s", told)
	}
	run(0, shop.sbx, "apply", "--skip", "runs")
	unchanged("written to a layer")
}

// checkControl fails for a row whose program git does not run outside either.
func checkControl(t *testing.T, rows []gitRow, version, ran string) {
	for i, r := range rows {
		if r.shown == "" || strings.Contains(ran, fmt.Sprintf("ran %03d\n", i)) {
			continue
		}
		var have, since [2]int
		_, _ = fmt.Sscanf(version, "git version %d.%d", &have[0], &have[1])
		_, _ = fmt.Sscanf(r.since, "%d.%d", &since[0], &since[1])
		if slices.Compare(have[:], since[:]) >= 0 {
			t.Errorf("%v: outside, git %s runs nothing", r, r.shown)
			continue
		}
		t.Logf("%v: %s is too old for a control", r, version)
	}
}

// writeRows makes the directory that gitruns.sh works in.
func writeRows(t *testing.T, top string, rows []gitRow) {
	script, err := os.ReadFile("testdata/gitruns.sh")
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		p := filepath.Join(top, name)
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	write("gitruns.sh", string(script))
	write("bin/git-merge-m", "#!/bin/sh\n: >"+top+"/marks/strategy\n")
	write("bin/mark", "#!/bin/sh\n: >"+top+"/marks/word\n")
	write("stdin", "protocol=https\nhost=git.example\n\n")
	for _, d := range []string{"home", "marks"} {
		if err := os.MkdirAll(filepath.Join(top, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range rows {
		dir := fmt.Sprintf("rows/%03d/", i)
		at := filepath.Join(top, dir)
		mark := "#!/bin/sh\n: >" + top + fmt.Sprintf("/marks/%03d\n", i)
		config := "[core]\n\tfsmonitor = " + at + "/mark\n"
		write(dir+"mark", mark)
		write(dir+"hooks/pre-commit", mark)
		write(dir+"config", config)
		write(dir+"attributes", "* filter=own\n")
		replace := strings.NewReplacer("MARK", at+"/mark", "DIR", at+"/hooks", "FILE", at+"/config", "ATTRIBUTES",
			at+"/attributes",
			"ORIGIN", top+"/origin", "EVIL", top+"/evil", "INSIDE", top+"/home/project/inside.git")
		var set strings.Builder
		for _, s := range r.settings {
			fmt.Fprintf(&set, "git config \"$@\" '%s' '%s'\n", replace.Replace(s[0]), replace.Replace(s[1]))
		}
		switch {
		case r.file == "":
			write(dir+"set", set.String())
		case strings.Contains(r.file, "/hooks/"):
			write(dir+"text", mark)
		case strings.HasSuffix(r.file, "attributes"):
			write(dir+"text", "* filter=own\n")
		case r.file == ".gitmodules":
			write(dir+"text", fmt.Sprintf("[submodule \"sub\"]\n\tpath = sub\n\turl = %s/lib\n\tupdate = !%s/mark\n", top, at))
		case strings.HasSuffix(r.file, "commondir"):
			write(dir+"text", top+"/evil\n")
		case strings.Contains(r.file, "/remotes/"):
			write(dir+"text", "URL: "+top+"/home/project/inside.git\n")
		case strings.Contains(r.file, "/branches/"):
			write(dir+"text", top+"/home/project/inside.git\n")
		case strings.HasSuffix(r.file, "gitdir"):
			write(dir+"text", top+"/home/project/repaired/.git\n")
		case strings.HasPrefix(r.file, "nested/"):
			write(dir+"text", "[core]\n\trepositoryformatversion = 0\n"+config)
		default:
			write(dir+"text", config)
		}
		if r.file != "" {
			write(dir+"file", r.file+"\n")
		}
		if r.shown != "" {
			write(dir+"shown", r.shown+"\n")
		}
	}
	if err := shop.own(top); err != nil {
		t.Fatal(err)
	}
}
