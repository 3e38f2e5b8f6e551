//go:build linux

package command

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

// Ps is sbx ps.
func (t *Term) Ps() Row {
	return Row{
		Command: option.Command{Name: "ps", Args: "[--json] SID", Help: "show the processes of a session",
			Text: "Shows the processes of a running session: pid inside and outside, state, processor time, memory, and the " +
				"open\n" +
				"question that one waits for.",
			Words: []option.Word{{From: option.Session}, {}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			js := false
			return []option.Option{JSON(&js)}, func(words []string) int { return t.ps(words, js) }
		},
	}
}

// process is one row of sbx ps --json.
type process struct {
	PID     int          `json:"pid"`     // inside
	Outside int          `json:"outside"` // on the host
	Parent  int          `json:"parent"`  // inside, 1: process 1 of the sandbox
	State   string       `json:"state"`   // a letter, as in proc_pid_stat(5)
	Seconds float64      `json:"cpu_seconds"`
	Memory  int64        `json:"memory"` // resident, bytes
	Started time.Time    `json:"started"`
	Cwd     plan.Bytes   `json:"cwd"`
	Exe     plan.Bytes   `json:"exe"`
	Argv    []plan.Bytes `json:"argv"`
	Waits   string       `json:"waits"`
	ID      string       `json:"question"`
}

// ps shows the processes of one session.
func (t *Term) ps(sids []string, js bool) int {
	if len(sids) != 1 {
		return t.Fail(option.Wrong("sbx ps wants one session", "sbx ls lists them"))
	}
	list := []process{}
	err := t.with(sids[0], func(c *control.Client) error {
		open, err := c.Pending()
		if err == nil {
			list = processesOf(c.Info.Init, open)
		}
		return err
	})
	if err != nil {
		return t.Fail(err)
	}
	if js {
		t.Print(Encode(struct {
			SID       string    `json:"sid"`
			Processes []process `json:"processes"`
		}{sids[0], list}))
		return 0
	}
	home := host.Lookup(t.Env, "HOME")
	rows := make([][]string, 0, len(list))
	for _, p := range list {
		what := p.Exe.Quote()
		if len(p.Argv) > 0 {
			words := make([]string, len(p.Argv))
			for i, a := range p.Argv {
				words[i] = a.Quote()
			}
			what = strings.Join(words, " ")
		}
		if p.Waits != "" {
			what += "  (waits: " + p.Waits + ")"
		}
		rows = append(rows, []string{strconv.Itoa(p.PID), strconv.Itoa(p.Outside), stateWord(p.State),
			Age(time.Since(p.Started)), Short(p.Cwd, home), fmt.Sprintf("%.2fs", p.Seconds),
			fmt.Sprintf("%dK", p.Memory>>10), what})
	}
	t.Print(t.Table([]Column{{Head: "PID", Width: 7, Right: true}, {Head: "OUTSIDE", Right: true, Spare: 4},
		{Head: "STATE"}, {Head: "AGE", Right: true, Spare: 1}, {Head: "DIRECTORY", Spare: 2},
		{Head: "CPU", Right: true, Spare: 3},
		{Head: "MEMORY", Right: true, Spare: 3}, {Head: "COMMAND"}}, rows))
	return 0
}

// stateWord says what a process does; letter is that of proc_pid_stat(5).
func stateWord(letter string) string {
	switch letter {
	case "R":
		return "runs"
	case "S", "I":
		return "waits"
	case "D":
		return "disk"
	case "T":
		return "stopped"
	case "t":
		return "traced"
	case "Z", "X", "x":
		return "ended"
	}
	return letter
}

// processesOf lists what descends from process 1 of a sandbox: whoever loses its parent inside becomes process 1's.
func processesOf(one int, open []prompt.Question) []process {
	entries, err := os.ReadDir("/proc")
	if err != nil || one <= 0 {
		return []process{}
	}
	all := make(map[int]*stat)
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if s := readStat(pid); s != nil {
				all[pid] = s
			}
		}
	}
	boot := bootTime()
	list := []process{}
	for pid, s := range all {
		if pid == one || !descends(all, s, one) {
			continue
		}
		p := process{Outside: pid, State: s.state, Seconds: float64(s.ticks) / ticksPerSecond,
			Memory: s.pages * int64(os.Getpagesize()), Started: boot.Add(time.Duration(s.start) * time.Second / ticksPerSecond)}
		_, p.PID, _ = host.Lineage(uint32(pid))
		if p.Parent = 1; s.parent != one {
			_, p.Parent, _ = host.Lineage(uint32(s.parent))
		}
		dir := "/proc/" + strconv.Itoa(pid)
		exe, _ := os.Readlink(dir + "/exe")
		p.Exe = plan.Bytes(exe)
		cwd, _ := os.Readlink(dir + "/cwd")
		p.Cwd = plan.Bytes(cwd)
		if exe == "" {
			p.Exe = plan.Bytes(s.name)
		}
		line, _ := os.ReadFile(dir + "/cmdline")
		p.Argv = []plan.Bytes{}
		if args := strings.TrimSuffix(string(line[:min(len(line), 1000)]), "\x00"); args != "" {
			for a := range strings.SplitSeq(args, "\x00") {
				p.Argv = append(p.Argv, plan.Bytes(a))
			}
		}
		for _, q := range open {
			if q.PID == pid {
				p.ID = q.ID[:min(len(q.ID), 8)]
				p.Waits = strings.TrimSpace(q.Op+" "+plan.Bytes(path.Clean(q.Path+q.Host)).Quote()) + ", question " + p.ID
			}
		}
		list = append(list, p)
	}
	slices.SortFunc(list, func(a, b process) int { return a.PID - b.PID })
	return list
}

// stat is a part of /proc/PID/stat.
type stat struct {
	name, state  string
	parent       int
	ticks, start int64
	pages        int64
}

// ticksPerSecond is USER_HZ, which is the same on every Linux.
const ticksPerSecond = 100

func readStat(pid int) *stat {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return nil
	}
	text := string(b)
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')') // the name may hold anything
	if open < 0 || end < open {
		return nil
	}
	f := strings.Fields(text[end+1:])
	if len(f) < 22 {
		return nil
	}
	n := func(i int) int64 { v, _ := strconv.ParseInt(f[i-3], 10, 64); return v } // numbered as in the manual
	return &stat{name: text[open+1 : end], state: f[0], parent: int(n(4)), ticks: n(14) + n(15), start: n(22),
		pages: n(24)}
}

func descends(all map[int]*stat, s *stat, one int) bool {
	for range 1 << 12 {
		if s == nil || s.parent <= 1 {
			return false
		}
		if s.parent == one {
			return true
		}
		s = all[s.parent]
	}
	return false
}

func bootTime() time.Time {
	b, _ := os.ReadFile("/proc/stat")
	_, rest, _ := strings.Cut(string(b), "\nbtime ")
	line, _, _ := strings.Cut(rest, "\n")
	n, _ := strconv.ParseInt(line, 10, 64)
	return time.Unix(n, 0)
}
