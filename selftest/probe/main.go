//go:build linux

// Package main is the program that runs inside a sandbox during `sbx selftest` and performs one forbidden act per call.
// It must never do lasting harm: every act is bounded, cleans up, sends no packet to a real host, and is not performed
// while root of the host. The runner in selftest/checks starts it, inside sandboxes and (for negative controls)
// outside.
package main

import (
	"encoding/json"
	"os"
	"runtime"
	"slices"
)

func main() {
	// ptrace, setns and unshare speak about one thread: the first one.
	runtime.LockOSThread()
	args := os.Args[1:]
	host, drop := false, false
	for len(args) > 0 {
		switch args[0] {
		case "-host":
			host = true
		case "-drop":
			drop = true
		default:
			os.Exit(command(args, host, drop))
		}
		args = args[1:]
	}
	os.Stderr.WriteString("usage: probe [-host] [-drop] ACT [ARG...] | batch FILE | facts | list | wrap KEY CMD...\n")
	os.Exit(2)
}

func command(args []string, host, drop bool) int {
	verb, rest := args[0], args[1:]
	switch verb {
	case "batch":
		return batch(rest)
	case "wrap":
		return wrap(rest)
	case "nap":
		return nap(rest)
	case "facts":
		return printJSON(facts())
	case "list":
		return printJSON(actNames())
	}
	if drop {
		if err := dropRoot(); err != nil {
			return printJSON(skipped(verb, "cannot give up root: "+err.Error()))
		}
	}
	return printJSON(perform(verb, rest, host))
}

// perform never lets an act run while it could really hurt the host.
func perform(name string, args []string, host bool) outcome {
	fn := findAct(name)
	if fn == nil {
		return skipped(name, "unknown act")
	}
	if !host && rootOfHost() {
		o := won("root of the host with capabilities: not performed")
		o.Act = name
		return o
	}
	o := fn(args)
	o.Act = name
	return o
}

func printJSON(v any) int {
	b, err := json.Marshal(v)
	if err != nil {
		return 1
	}
	if _, err := os.Stdout.Write(append(b, '\n')); err != nil {
		return 1
	}
	return 0
}

func actNames() []string {
	var names []string
	for _, a := range acts() {
		names = append(names, a.name)
	}
	slices.Sort(names)
	return names
}
