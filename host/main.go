//go:build linux

// Command sbx-host changes what lies around a sandbox, for which sbx itself links nothing. sbx starts
// "sbx-host group" as the user where a limit was asked for and systemd has to be asked for a control group; root runs
// "sbx-host allow-forward" on purpose. It must never be set-user-id, and never run while no group is wanted: a start of
// sbx without limits is as fast as without it.
//
// It exists for its libraries: of an empty program's start and size they would cost every run of sbx what README.md
// ("Dependencies") says.
//   - github.com/coreos/go-systemd/v22/dbus, which cgroups/v3 brings, asks the user's systemd for the scope.
//     cgroup2.NewSystemd cannot: it speaks to the system's manager alone, puts every unit in system.slice, never sets
//     Delegate (nothing sets its canDelegate), has no CollectMode, so that a scope which failed stays, and guesses the
//     path of the group, wrongly for a user's manager.
//   - github.com/containerd/cgroups/v3/cgroup2 finds the group that a process is in, makes the one for the broker
//     below the scope and moves the broker there.
//   - github.com/coreos/go-iptables runs iptables, which is what Docker wrote its rules with.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"os"
	"strings"
)

const usage = `usage: sbx-host group --bus SOCKET --unit NAME.scope --pid PID
       sbx-host allow-forward [--undo] [--dry-run]
`

// statusUsage is the exit status for what was typed wrongly.
const statusUsage = 2

func main() { os.Exit(run(os.Args[1:], os.Stdout, os.Stderr)) }

func run(args []string, out, errs io.Writer) int {
	if len(args) == 0 {
		fmt.Fprint(errs, usage)
		return statusUsage
	}
	flags := flag.NewFlagSet("sbx-host "+args[0], flag.ContinueOnError)
	flags.SetOutput(errs)
	flags.Usage = func() { fmt.Fprint(errs, usage) }
	var do func() error
	switch args[0] {
	case "group":
		var s scope
		flags.StringVar(&s.bus, "bus", "", "")
		flags.StringVar(&s.unit, "unit", "", "")
		flags.IntVar(&s.pid, "pid", 0, "")
		do = func() error { return s.enter(context.Background()) }
	case "allow-forward":
		f := forward{out: out}
		flags.BoolVar(&f.undo, "undo", false, "")
		flags.BoolVar(&f.dry, "dry-run", false, "")
		do = func() error { return f.run() }
	default:
		fmt.Fprint(errs, usage)
		if args[0] == "--help" || args[0] == "-h" {
			return 0
		}
		return statusUsage
	}
	switch err := flags.Parse(args[1:]); {
	case err == flag.ErrHelp:
		return 0
	case err != nil || flags.NArg() > 0:
		if err == nil {
			fmt.Fprint(errs, usage)
		}
		return statusUsage
	}
	if err := do(); err != nil {
		fmt.Fprintln(errs, oneLine(err.Error()))
		return 1
	}
	return 0
}

// oneLine leaves out what a terminal could take for something else: words of a bus or of iptables may be in it.
func oneLine(text string) string {
	text = strings.ReplaceAll(strings.TrimSpace(text), "\n", "; ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, text)
}
