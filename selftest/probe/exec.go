//go:build linux

package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"strings"
	"time"
)

// output runs a program and returns everything it printed, 64 KiB at most.
func output(env []string, argv ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 8*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.WaitDelay = time.Second
	cmd.Env = append(os.Environ(), env...)
	var b bytes.Buffer
	cmd.Stdout, cmd.Stderr = &b, &b
	err := cmd.Run()
	return string(b.Next(1 << 16)), err
}

// execRead uses exec, the loader and shells as readers: content often shows in their error texts.
func execRead(paths []string) outcome {
	var t tally
	for _, p := range paths {
		for _, argv := range [][]string{{p}, {"/lib64/ld-linux-x86-64.so.2", p}, {"/bin/sh", p}, {"/bin/sh", "-c", ". " + p},
			{"/usr/bin/awk", "-f", p}, {"/bin/grep", "-f", p, p}} {
			text, err := output([]string{"LD_PRELOAD=" + p}, argv...)
			call := strings.Join(argv, " ")
			switch {
			case strings.Contains(text, "CANARY"):
				t.win(call, "CANARY")
			case err != nil && name(err) != "OTHER":
				t.add(call, name(err))
			default:
				t.add(call, none)
			}
		}
	}
	return t.outcome()
}

// execOut runs a command and looks for the canary in its output.
func execOut(argv []string) outcome {
	if len(argv) == 0 {
		return skipped("execout", "no command")
	}
	text, err := output(nil, argv...)
	if strings.Contains(text, "CANARY") {
		return won("the canary was printed")
	}
	o := nothing("")
	if err != nil {
		if n := name(err); n != "OTHER" {
			o.Errno = n
		}
		o.Detail["note"] = err.Error() + " " + text[:min(len(text), 200)]
	}
	return o
}
