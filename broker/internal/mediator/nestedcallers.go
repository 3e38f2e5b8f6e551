//go:build linux

package mediator

import (
	"fmt"
	"os"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/gate/fuse"
	"sbx.example/sbx/broker/internal/gate/notify"
	"sbx.example/sbx/broker/internal/gate/points"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// nestedCallers tells who builds a sandbox inside from who works in one.
type nestedCallers struct {
	once  sync.Once
	ready chan struct{} // closed when the sandbox stands, or is over
	own   uint64        // the number of its mount namespace
	users uint64        // that of its user namespace
	proc  *os.File      // its /proc, which has its processes by the numbers that the kernel tells a file server
}

// standing takes in what the sandbox has of its own.
func (n *nestedCallers) standing(c *child.Child) {
	n.once.Do(func() {
		n.own, n.users = number(c.Fds[plan.FdMountNS]), number(c.Fds[plan.FdUserNS])
		n.proc = c.Fds[plan.FdProc]
		delete(c.Fds, plan.FdProc)
		close(n.ready)
	})
}

func number(ns *os.File) uint64 {
	var st unix.Stat_t
	if ns == nil || unix.Fstat(int(ns.Fd()), &st) != nil {
		return 0
	}
	return st.Ino
}

// works is writes.Options.Nested. Whoever has mounts or a root of its own has them in a user namespace of its own. Of
// whom it cannot be told it is taken for granted.
func (n *nestedCallers) works(c *notify.Call) bool {
	<-n.ready
	var st unix.Stat_t
	return unix.Stat(c.Proc()+"/ns/user", &st) != nil || st.Ino != n.users || !c.Valid()
}

func (n *nestedCallers) end() {
	n.once.Do(func() { close(n.ready) })
}

// builds says whether a process is building a sandbox: one that may mount, in a mount namespace of its own, and has the
// root that bubblewrap has meanwhile, or is sbx in its place. A program may run before this process has heard that the
// sandbox stands.
func (n *nestedCallers) builds(pid uint32) bool {
	<-n.ready
	if n.proc == nil || pid == 0 {
		return false
	}
	dir := int(n.proc.Fd())
	at := func(file string) string { return fmt.Sprintf("%d/%s", pid, file) }
	var st unix.Stat_t
	has := func(file string) bool { return unix.Fstatat(dir, at(file), &st, 0) == nil }
	return has("ns/mnt") && st.Ino != n.own && mayMount(readAt(dir, at("status"))) &&
		(has("root/oldroot") && has("root/newroot") || readAt(dir, at("comm")) == "bwrap\n")
}

func readAt(dir int, name string) string {
	fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return ""
	}
	f := os.NewFile(uintptr(fd), name)
	defer f.Close()
	buf := make([]byte, 4096)
	got, _ := f.Read(buf)
	return string(buf[:got])
}

// mayMount says whether a process has CAP_SYS_ADMIN, in whatever user namespace it is.
func mayMount(status string) bool {
	caps, err := strconv.ParseUint(host.StatusField(status, "CapEff"), 16, 64)
	return err == nil && caps&(1<<unix.CAP_SYS_ADMIN) != 0
}

// before is gatefs.Options.Before, nil where nobody can build a sandbox.
func (md *Mediator) before(uid, gid uint32) func(fuse.FileSystem) fuse.FileSystem {
	if !md.in.Nested {
		return nil
	}
	return points.Before(uid, gid, md.nested.builds)
}
