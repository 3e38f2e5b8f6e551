package command

import (
	"os"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/session"
)

// onLinux is the row of a command that there is no way for here. It takes what the command takes and says so.
func (t *Term) onLinux(name, help, instead string) Row {
	refuse := func([]string) int {
		return t.Fail(&planner.Refusal{What: "sbx " + name + " works on Linux only", Hint: instead})
	}
	return Row{
		Command: option.Command{Name: name, Args: "...", Help: help + " (Linux only)",
			Text: "Works on Linux only. Here: " + instead + ".", Words: []option.Word{{}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			js := false
			return []option.Option{JSON(&js)}, refuse
		},
	}
}

// What comes into a session later takes namespaces to join, and layers take overlayfs.
const (
	noJoin   = "start what is needed in the same run, as with sbx run -- sh"
	noLayers = "work in a copy or a worktree, and compare with git diff"
	noGroup  = "ps, top or Activity Monitor show the processes"
)

// Exec is sbx exec.
func (t *Term) Exec() Row { return t.onLinux("exec", "run a program in a session", noJoin) }

// Attach is sbx attach.
func (t *Term) Attach() Row { return t.onLinux("attach", "get a shell in a session", noJoin) }

// File is sbx file.
func (t *Term) File() Row { return t.onLinux("file", "read and write files as a session does", noJoin) }

// Ps is sbx ps.
func (t *Term) Ps() Row { return t.onLinux("ps", "show the processes of a session", noGroup) }

// Freeze is sbx freeze.
func (t *Term) Freeze() Row { return t.onLinux("freeze", "stop every process of sessions", noGroup) }

// Thaw is sbx thaw.
func (t *Term) Thaw() Row { return t.onLinux("thaw", "let frozen sessions go on", noGroup) }

// Stats is sbx stats.
func (t *Term) Stats() Row { return t.onLinux("stats", "show what sessions use", noGroup) }

// Top is sbx top.
func (t *Term) Top() Row { return t.onLinux("top", "show what sessions use, again and again", noGroup) }

// Diff is sbx diff.
func (t *Term) Diff() Row { return t.onLinux("diff", "show what a session changed", noLayers) }

// Apply is sbx apply.
func (t *Term) Apply() Row { return t.onLinux("apply", "carry a session's changes over", noLayers) }

// Discard is sbx discard.
func (t *Term) Discard() Row { return t.onLinux("discard", "throw a session's changes away", noLayers) }

// Selftest is sbx selftest.
func (t *Term) Selftest(func(host.Facts) program.Source) Row {
	return t.onLinux("selftest", "check on this host that the sandbox holds",
		"sbx doctor runs a program in the smallest sandbox there is")
}

// LockEnded makes sure that a session has ended, and that nobody removes its record meanwhile.
func (t *Term) LockEnded(sid, dir string) (*os.File, error) {
	if session.Alive(dir) {
		return nil, &planner.Refusal{What: "session " + sid + " is running", Hint: "wait for its end, or end it"}
	}
	f, err := os.OpenFile(dir, os.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}
