package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// tiers are the privileges with which the text of sbx-helper runs, by file. TestAfterLeave holds the last one against the source, strace the order
// of all (selftest, TestHelperOrder).
var tiers = [...]struct {
	short, long string
	files       []string
}{
	{"some", "with five capabilities or fewer, and the caller's authority over files", nil}, // every other file
	{"all", "with every capability, for seven system calls", []string{"helper/entry_amd64.s", "helper/entry_arm64.s"}},
	{"decides", "decide, with no capability effective", []string{"helper/main.go", "helper/verbs.go", "helper/caller.go", "helper/permitted.go", "helper/refuse.go",
		"shared/wire/wire.go", "shared/wire/report.go", "shared/plan/setup.go", "shared/plan/pack.go", "shared/plan/validate.go"}},
	{"none", "when everything has been given up, which is not counted in", []string{"shared/stage/loop_unsafe.go", "shared/stage/fork_amd64.s", "shared/stage/fork_arm64.s"}},
}

const none = len(tiers) - 1

func tierOf(file string) int {
	for i, t := range tiers {
		if contains(t.files, file) {
			return i
		}
	}
	return 0
}

// verbs are those of helper/verbs.go.
func verbs() ([]string, error) {
	text, err := os.ReadFile("helper/verbs.go")
	if err != nil {
		return nil, err
	}
	var out []string
	for _, m := range row().FindAllSubmatch(text, -1) {
		out = append(out, string(m[1]))
	}
	if len(out) == 0 {
		return nil, errors.New("helper/verbs.go has no verbs")
	}
	return out, nil
}

// row finds one verb's line.
func row() *regexp.Regexp { return regexp.MustCompile(`(?m)^\t\{"([a-z]+)", .*\n`) }

// buildVerb builds sbx-helper into out as if verb were its only one.
func buildVerb(verb, out string) error {
	text, err := os.ReadFile("helper/verbs.go")
	if err != nil {
		return err
	}
	file, err := filepath.Abs("helper/verbs.go")
	if err != nil {
		return err
	}
	alone := row().ReplaceAllStringFunc(string(text), func(line string) string {
		if strings.HasPrefix(line, "\t{\""+verb+"\"") {
			return line
		}
		return ""
	})
	overlay, err := json.Marshal(map[string]map[string]string{"Replace": {file: out + ".go"}})
	if err == nil {
		err = os.WriteFile(out+".go", []byte(alone), 0o600)
	}
	if err == nil {
		err = os.WriteFile(out+".json", overlay, 0o600)
	}
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "build", "-trimpath", "-overlay", out+".json", "-ldflags=-E=sbx_helper_start", "-o", out, "./helper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s alone: %w\n%s", verb, err, text)
	}
	return nil
}

// sums are the lines of a program by tier.
func sums(program string) (by [len(tiers)]int, err error) {
	counts, err := countAll(program)
	for file, n := range counts {
		by[tierOf(file)] += n
	}
	return by, err
}

func printVerbs() error {
	dir, err := os.MkdirTemp("", "linked-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	list, err := verbs()
	if err != nil {
		return err
	}
	for _, v := range list {
		out := filepath.Join(dir, v)
		if err := buildVerb(v, out); err != nil {
			return err
		}
		by, err := sums(out)
		if err != nil {
			return err
		}
		sum := 0
		for i, n := range by {
			if i != none {
				sum += n
			}
		}
		fmt.Printf("%5d lines are what %q takes:\n", sum, v)
		for i, n := range by {
			if n > 0 {
				fmt.Printf("        %5d  %-7s %s\n", n, tiers[i].short, tiers[i].long)
			}
		}
	}
	return nil
}
