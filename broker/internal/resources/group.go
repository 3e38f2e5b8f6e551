//go:build linux

package resources

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// prefix is what the names of our groups begin with.
const prefix = "sbx-"

// Group is the control group of one session.
type Group struct {
	Dir    string
	Parent Parent
	limits Limits
	inner  string         // the group below that has all that runs; "" for none
	begin  string         // where process 1 begins in there; "" for none
	lock   int            // of its directory, as long as this process lives: by that others know that it is in use
	reaper <-chan *reaper // nil before Outlive
}

// How often and how long apart a name is tried whose last group is just being removed.
const (
	makeTries = 40
	makePause = 10 * time.Millisecond
)

// Make makes the group of the session sid below the parent.
func (p Parent) Make(sid string) (*Group, error) {
	g := &Group{Dir: filepath.Join(p.Dir, prefix+sid), Parent: p}
	for try := 0; ; try++ {
		err := unix.Mkdir(g.Dir, 0o755)
		if err == unix.EEXIST && try < makeTries {
			if try > 0 {
				time.Sleep(makePause) // it is just being removed
			}
			p.Sweep() // a dead broker's of the same name
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("making control group %s: %w", g.Dir, err)
		}
		if g.lock, err = lockDir(g.Dir); err == nil {
			return g, nil
		}
		if try > makeTries { // else somebody swept it between the two calls
			return nil, fmt.Errorf("locking control group %s: %w", g.Dir, err)
		}
	}
}

// lockDir opens and locks a group's directory; the lock ends with this process.
func lockDir(dir string) (int, error) {
	fd, err := unix.Open(dir, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return -1, err
	}
	if err := unix.Flock(fd, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Set writes the limits and returns those that this group cannot have, each with the reason.
func (g *Group) Set(l Limits, list []Control) map[string]error {
	g.limits = l
	failed := map[string]error{}
	for _, c := range list {
		if err := write(filepath.Join(g.Dir, c.File), c.Value); err != nil {
			if os.IsNotExist(err) {
				name, _, _ := strings.Cut(c.File, ".")
				err = fmt.Errorf("the group has no %s controller", name)
			}
			failed[c.File] = err
		}
	}
	return failed
}

// Add puts a process in the group.
func (g *Group) Add(pid int) error {
	if pid <= 0 {
		return fmt.Errorf("moving process %d: %w", pid, unix.ESRCH) // 0 would be this process itself
	}
	// It may have begun there, and moving it even to where it is takes as long as moving it.
	if b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cgroup", pid)); err == nil &&
		strings.HasSuffix(strings.TrimSuffix(string(b), "\n"), strings.TrimPrefix(g.place(), filepath.Dir(g.Dir))) {
		return nil
	}
	if err := write(g.place()+"/cgroup.procs", strconv.Itoa(pid)); err != nil {
		return fmt.Errorf("moving the sandbox into its control group: %w", err)
	}
	return nil
}

// Descriptor is that of the group's directory, for clone3(2).
func (g *Group) Descriptor() int { return g.lock }

// Kill ends every process of the group at once (5.14). To die takes processor time, which is not held back any more.
func (g *Group) Kill() error {
	_ = write(g.Dir+"/cpu.max", "max")
	return write(g.Dir+"/cgroup.kill", "1")
}

// Freeze stops every process of the group where it is (5.2), process 1 too, or lets them go on. What is stopped can be
// killed.
func (g *Group) Freeze(on bool) error {
	value := int64(0)
	if on {
		value = 1
	}
	if err := write(g.Dir+"/cgroup.freeze", strconv.FormatInt(value, 10)); err != nil {
		return fmt.Errorf("freezing control group %s: %w", g.Dir, err)
	}
	// A process in a system call that cannot be interrupted stops later; nothing of it runs until then either.
	for begin, pause := time.Now(), 100*time.Microsecond; time.Since(begin) < freezeWait; pause = min(2*pause,
		10*time.Millisecond) {
		if keyed(g.text("cgroup.events"), "frozen") == value {
			break
		}
		time.Sleep(pause)
	}
	return nil
}

// freezeWait bounds the waiting for the kernel to say that everything stands still.
const freezeWait = 500 * time.Millisecond

// removeWait bounds the waiting for the last process to be gone.
const removeWait = 2 * time.Second

// sweepWait is how long a session waits for the processes of another, whose broker is dead.
const sweepWait = 100 * time.Millisecond

// Remove ends what is left in the group and removes it.
func (g *Group) Remove() error {
	if g.reaper != nil {
		if r := <-g.reaper; r != nil {
			r.dismiss()
		}
	}
	defer unix.Close(g.lock)
	return g.remove(removeWait)
}

func (g *Group) remove(wait time.Duration) error {
	err := removeGroups(g.Dir)
	if err == nil || err == unix.ENOENT {
		return nil
	}
	if kerr := g.Kill(); kerr != nil {
		for _, w := range g.Pids() {
			_ = unix.Kill(w, unix.SIGKILL)
		}
	}
	for begin, pause := time.Now(), 200*time.Microsecond; time.Since(begin) < wait; pause = min(2*pause,
		20*time.Millisecond) {
		if err = removeGroups(g.Dir); err == nil || err == unix.ENOENT {
			return nil
		}
		time.Sleep(pause)
	}
	return fmt.Errorf("removing control group %s: %w", g.Dir, err)
}

// removeGroups removes a group and, if there are any, those below it.
func removeGroups(dir string) error {
	err := unix.Rmdir(dir)
	if err != unix.EBUSY && err != unix.ENOTEMPTY {
		return err
	}
	list, lerr := os.ReadDir(dir)
	if lerr != nil {
		return err
	}
	for _, e := range list {
		if e.IsDir() {
			if err := removeGroups(filepath.Join(dir, e.Name())); err != nil && err != unix.ENOENT {
				return err
			}
		}
	}
	return unix.Rmdir(dir)
}

// Sweep removes the groups below the parent that dead brokers left. Their processes died with them.
func (p Parent) Sweep() {
	list, err := os.ReadDir(p.Dir)
	if err != nil {
		return
	}
	for _, e := range list {
		if !strings.HasPrefix(e.Name(), prefix) || !e.IsDir() {
			continue
		}
		dir := filepath.Join(p.Dir, e.Name())
		fd, err := lockDir(dir)
		if err != nil {
			continue // in use, or not ours
		}
		_ = (&Group{Dir: dir}).remove(sweepWait) // what does not die in time goes with the next sweep
		unix.Close(fd)
	}
}
