//go:build linux

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// tiers are the privileges with which the text of sbx-helper runs, by file. TestAfterLeave holds the last one against
// the source, strace the order of all (selftest, TestHelperOrder).
var tiers = [...]struct {
	short, long string
	files       []string
}{
	{"some", "with five capabilities or fewer, and the caller's authority over files", nil}, // every other file
	{"all", "with every capability, for ten system calls", []string{"helper/entry_amd64.s", "helper/entry_arm64.s"}},
	{"decides", "decide, with no capability effective", []string{"helper/main.go", "helper/verbs.go",
		"helper/verbs_launch.go", "helper/verbs_host.go", "helper/caller.go", "helper/quota.go", "helper/permitted.go",
		"helper/refuse.go",
		"shared/wire/wire.go", "shared/wire/report.go", "shared/plan/setup.go", "shared/plan/unpack.go",
		"shared/plan/validate.go"}},
	{"none", "when everything has been given up, which is not counted in", []string{"shared/stage/loop_unsafe.go",
		"shared/tape/job_unsafe.go", "shared/tape/clone_amd64.s", "shared/tape/clone_arm64.s"}},
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

// programs are the two of package sbx-helper-suid and the plain one, by the tag that each is built with.
var programs = [...]struct{ name, tag string }{{"sbx-helper-suid", "sbx_launch"}, {"sbx-helper-host-suid", "sbx_host"},
	{"sbx-helper", ""}}

// build builds sbx-helper with a tag.
func build(tag, out string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-tags", tag, "-ldflags=-E=sbx_helper_start", "-o", out, "./helper")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building %s: %w\n%s", tag, err, text)
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

func printPrograms() error {
	dir, err := os.MkdirTemp("", "linked-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	for _, p := range programs {
		out := filepath.Join(dir, p.name)
		if err := build(p.tag, out); err != nil {
			return err
		}
		by, err := sums(out)
		if err != nil {
			return err
		}
		fmt.Printf("%5d lines are privileged in %s:\n", privileged(by), p.name)
		for i, n := range by {
			if n > 0 {
				fmt.Printf("        %5d  %-7s %s\n", n, tiers[i].short, tiers[i].long)
			}
		}
	}
	return nil
}

func privileged(by [len(tiers)]int) (sum int) {
	for i, n := range by {
		if i != none {
			sum += n
		}
	}
	return sum
}
