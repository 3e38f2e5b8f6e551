//go:build linux

// Command bench compares commands pairwise in one run: it interleaves them, so that the noise of the
// machine falls on all alike, and prints medians, 99th percentiles and ratios to the first.
//
//	bench [-n 200] [-warm 10] NAME=COMMAND NAME=COMMAND ...
//	bench -call KIND:NUMBER
//	bench -first N [-gate gatefs] [-scope file] -sbx PATH
//	bench -messages N NAME=COMMAND ...
//
// COMMAND is split at spaces. The first is the base of the ratios. One that begins with @ is run elsewhere: by
// "bench -times", which the command of -elsewhere starts in other surroundings; @@ is that of the second -elsewhere.
// The second form makes one system call many times, as a command to compare. The third measures approvals, see
// first. The fourth measures round trips to servers on standard input and output.
package main

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"time"
)

func main() {
	n := flag.Int("n", 200, "rounds")
	warm := flag.Int("warm", 10, "rounds that do not count")
	questions := flag.Int("first", 0, "measure this many approvals")
	sbx := flag.String("sbx", "sbx", "the sbx that is measured by -first")
	gate := flag.String("gate", "gatefs", "its engine")
	scope := flag.String("scope", "file", "what each answer grants: once, file, dir or tree")
	var elsewhere []string
	flag.Func("elsewhere", "the command that runs bench -times; repeated for @@ and so on", func(s string) error {
		elsewhere = append(elsewhere, s)
		return nil
	})
	call := flag.String("call", "", "make a call many times: KIND:NUMBER")
	trips := flag.Int("messages", 0, "measure this many round trips to each command")
	times := flag.Bool("times", false, "run the commands that are read, and write how long each took")
	top := flag.String("inside", "", "be the program that -first measures")
	flag.Parse()
	var err error
	switch {
	case *times:
		err = serveTimes(os.Stdin, os.Stdout)
	case *call != "":
		err = repeat(*call)
	case *top != "":
		err = inside(*top)
	case *trips > 0:
		err = messages(*trips, *warm, flag.Args())
	case *questions > 0:
		err = first(*questions, *sbx, *gate, *scope)
	default:
		err = run(*n, *warm, elsewhere, flag.Args())
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

type peer struct {
	name  string
	argv  []string
	times []time.Duration
}

func peersOf(args []string) (peers []*peer, err error) {
	for _, a := range args {
		name, cmd, ok := strings.Cut(a, "=")
		argv := strings.Fields(cmd)
		if !ok || len(argv) == 0 {
			return nil, fmt.Errorf("%q is not NAME=COMMAND", a)
		}
		peers = append(peers, &peer{name: name, argv: argv})
	}
	if len(peers) == 0 {
		return nil, fmt.Errorf("nothing to compare")
	}
	return peers, nil
}

func run(n, warm int, elsewhere, args []string) error {
	peers, err := peersOf(args)
	if err != nil {
		return err
	}
	var others []*remote
	for _, e := range elsewhere {
		there, err := startRemote(strings.Fields(e))
		if err != nil {
			return err
		}
		defer there.end()
		others = append(others, there)
	}
	for i := range n + warm {
		for _, p := range peers {
			take := timed
			if argv0 := strings.TrimLeft(p.argv[0], "@"); argv0 != p.argv[0] {
				which := len(p.argv[0]) - len(argv0)
				if which > len(others) {
					return fmt.Errorf("%s: there is no such elsewhere", p.name)
				}
				take = func(argv []string) (time.Duration, error) {
					return others[which-1].timed(append([]string{argv0}, argv[1:]...))
				}
			}
			d, err := take(p.argv)
			if err != nil {
				return fmt.Errorf("%s: %w", p.name, err)
			}
			if i >= warm {
				p.times = append(p.times, d)
			}
		}
	}
	report(peers)
	return nil
}

// timed runs a command.
func timed(argv []string) (time.Duration, error) {
	c := exec.Command(argv[0], argv[1:]...)
	begin := time.Now()
	out, err := c.CombinedOutput()
	d := time.Since(begin)
	if err != nil {
		return 0, fmt.Errorf("%w\n%s", err, out)
	}
	return d, nil
}

func report(peers []*peer) {
	base := time.Duration(0)
	fmt.Printf("%-24s %10s %10s %8s\n", "command", "median ms", "p99 ms", "ratio")
	for _, p := range peers {
		slices.Sort(p.times)
		median := p.times[len(p.times)/2]
		if base == 0 {
			base = median
		}
		p99 := p.times[len(p.times)*99/100]
		fmt.Printf("%-24s %10.2f %10.2f %8.2f\n", p.name, ms(median), ms(p99), float64(median)/float64(base))
	}
}

func ms(d time.Duration) float64 { return float64(d.Microseconds()) / 1000 }
