//go:build linux

package notify

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// hostDevices are the file systems that the host was ever seen to have. A tmpfs that is none of them is the sandbox's.
type hostDevices struct {
	mu   sync.Mutex
	seen map[string]bool
}

func (h *hostDevices) note(mountinfo string) error {
	b, err := os.ReadFile(mountinfo)
	if err != nil {
		return fmt.Errorf("reading mounts: %w", err)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.seen == nil {
		h.seen = map[string]bool{}
	}
	for line := range strings.Lines(string(b)) {
		if m, ok := parseMount(line); ok {
			h.seen[m.device] = true
		}
	}
	return nil
}

func (h *hostDevices) has(device string) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.seen[device]
}

// mount is one line of /proc/PID/mountinfo (proc_pid_mountinfo(5)).
type mount struct {
	id     uint64
	device string // major:minor of the superblock, which for btrfs and overlay is not what stat says
	fstype string
}

func parseMount(line string) (mount, bool) {
	head, tail, ok := strings.Cut(line, " - ")
	f := strings.Fields(head)
	t := strings.Fields(tail)
	if !ok || len(f) < 6 || len(t) < 1 {
		return mount{}, false
	}
	id, err := strconv.ParseUint(f[0], 10, 64)
	if err != nil {
		return mount{}, false
	}
	return mount{id, f[2], t[0]}, true
}

// ours says whether a socket file was made by the session: it lies on a file system that only the sandbox has, or a
// process of the sandbox holds the socket that is bound to it.
func (s *server) ours(pid uint32, fd int) bool {
	id, _, err := identify(fd)
	if err != nil {
		return false
	}
	return s.ownFileSystem(pid, id) || heldInside(pid, id)
}

func (s *server) ownFileSystem(pid uint32, id identity) bool {
	b, err := os.ReadFile("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/mountinfo")
	if err != nil || s.host.note("/proc/self/mountinfo") != nil {
		return false
	}
	for line := range strings.Lines(string(b)) {
		m, ok := parseMount(line)
		if ok && m.id == id.mount {
			// In an overlay a socket of a lower layer is another inode than the one the host program bound.
			return (m.fstype == "tmpfs" || m.fstype == "overlay") && !s.host.has(m.device)
		}
	}
	return false
}

// maxHeld bounds the search for the holder of a socket.
const maxHeld = 20000

// heldInside looks for a process in the caller's PID namespace with a socket that is bound to this very file. Names
// prove nothing: a file can be moved to where another one was bound.
func heldInside(pid uint32, id identity) bool {
	ns, err := os.Stat("/proc/" + strconv.FormatUint(uint64(pid), 10) + "/ns/pid")
	if err != nil {
		return false
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return false
	}
	budget := maxHeld
	for i := len(entries) - 1; i >= 0 && budget > 0; i-- {
		p, err := strconv.Atoi(entries[i].Name())
		if err != nil {
			continue
		}
		if holds(p, ns, id, &budget) {
			return true
		}
	}
	return false
}

func holds(pid int, ns os.FileInfo, id identity, budget *int) bool {
	dir := "/proc/" + strconv.Itoa(pid)
	theirs, err := os.Stat(dir + "/ns/pid")
	if err != nil || !os.SameFile(ns, theirs) {
		return false
	}
	pidfd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		return false
	}
	defer unix.Close(pidfd)
	fds, err := os.ReadDir(dir + "/fd")
	if err != nil {
		return false
	}
	// The number was looked at before and after the descriptor was made, and a number of a living process is its own.
	theirs, err = os.Stat(dir + "/ns/pid")
	if err != nil || !os.SameFile(ns, theirs) || unix.PidfdSendSignal(pidfd, 0, nil, 0) != nil {
		return false
	}
	for _, f := range fds {
		if *budget--; *budget < 0 {
			return false
		}
		n, err := strconv.Atoi(f.Name())
		if err != nil {
			continue
		}
		if link, err := os.Readlink(dir + "/fd/" + f.Name()); err == nil && strings.HasPrefix(link, "socket:") &&
			boundTo(pidfd, n, id) {
			return true
		}
	}
	return false
}

func boundTo(pidfd, fd int, id identity) bool {
	sock, err := unix.PidfdGetfd(pidfd, fd, 0)
	if err != nil {
		return false
	}
	defer unix.Close(sock)
	if domain, err := unix.GetsockoptInt(sock, unix.SOL_SOCKET, unix.SO_DOMAIN); err != nil || domain != unix.AF_UNIX {
		return false
	}
	file, e := boundFile(sock)
	if e != 0 {
		return false
	}
	defer unix.Close(file)
	got, _, err := identify(file)
	return err == nil && got.major == id.major && got.minor == id.minor && got.ino == id.ino
}
