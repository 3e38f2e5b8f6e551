//go:build linux

package resources

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/program"
)

// reaperCommand is what sbx starts itself with; it is nothing for people.
const reaperCommand = "reap-group"

// reapWait is how long the reaper waits for the last process to be gone.
const reapWait = 10 * time.Second

// reaper is a process that outlives the broker and removes its group: nobody else could, as a killed broker runs
// nothing any more and what is in the sandbox sees none of it. It is sbx itself, started anew.
type reaper struct {
	pid   int
	alive int // the pipe's end that is ours alone: the kernel closes it when this process is no more
}

// Outlive has the group removed from now on when this process is killed. It does not wait until the reaper runs.
// Without one the next session removes what a killed broker leaves.
func (g *Group) Outlive() {
	begun := make(chan *reaper, 1)
	g.reaper = begun
	go func() {
		r, _ := g.startReaper()
		begun <- r
	}()
}

func (g *Group) startReaper() (*reaper, error) {
	var pipe [2]int
	if err := unix.Pipe2(pipe[:], unix.O_CLOEXEC); err != nil {
		return nil, fmt.Errorf("making pipe: %w", err)
	}
	defer unix.Close(pipe[0])
	// It holds the lock as well, so that others stay away until the group is gone. No key of a terminal's is for it.
	none := ^uintptr(0)
	pid, err := program.Self().Fork([]string{reaperCommand, g.Dir}, &syscall.ProcAttr{Dir: "/", Env: []string{},
		Files: []uintptr{uintptr(pipe[0]), none, none, uintptr(g.lock)}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		unix.Close(pipe[1])
		return nil, fmt.Errorf("starting the reaper of control group %s: %w", g.Dir, err)
	}
	return &reaper{pid: pid, alive: pipe[1]}, nil
}

// dismiss ends the reaper: what it would do is done by this process now.
func (r *reaper) dismiss() {
	_ = unix.Kill(r.pid, unix.SIGKILL)
	for {
		if _, err := unix.Wait4(r.pid, nil, 0, nil); err != unix.EINTR {
			break
		}
	}
	unix.Close(r.alive)
}

// IsReaper says whether a program with these arguments is meant to be the reaper of a group.
func IsReaper(args []string) bool {
	return len(args) == 3 && args[1] == reaperCommand && strings.HasPrefix(filepath.Base(args[2]), prefix)
}

// Reap is all that the reaper does.
func Reap(args []string) error {
	_, _ = io.Copy(io.Discard, os.Stdin) // it ends when the broker does
	return (&Group{Dir: args[2]}).remove(reapWait)
}
