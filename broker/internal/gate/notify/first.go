//go:build linux

package notify

import (
	"bytes"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/seccompbpf"
)

const (
	maxPath       = 4096 // PATH_MAX, with its NUL
	resolveCached = 0x20 // RESOLVE_CACHED (5.12): a walk that never waits for a disk or another server
)

// scratch is the loop's memory, so that a call that passes allocates nothing.
type scratch struct {
	mem  [2][maxPath]byte
	proc [64]byte
	join [2*maxPath + 2]byte
}

// name is a path as a call gave it, copied once.
type name struct {
	dir      int32
	path     []byte // ends in NUL
	nofollow bool
	look     look
	full     []byte // the same from the root on, dots and all, as long as the loop looks at it
}

// verdict of the look at one name.
type verdict uint8

const (
	passes  verdict = iota // the kernel's own walk says all there is to say
	cold                   // the walk needs a disk
	missing                // not inside; the host may have it
	unknown                // the caller cannot be looked at
)

// first looks at a new notification and answers it or hands it on.
func (s *server) first(n *notif, sc *scratch) {
	c := s.calls.find(n.arch, n.nr)
	switch {
	case s.closed.Load():
		s.fail(n.id, unix.EACCES)
		return
	case s.Carrier != nil && s.Carrier.Take(&Call{fd: s.fd, n: *n}):
		return
	case c == nil:
		s.refuse(n, seccompbpf.Name(seccompbpf.Arch(n.arch), int(n.nr)), "", unix.EPERM, "the call is refused by policy")
		return
	case c.setsGroup(n): // a carrier lets nothing of that come here
		s.fail(n.id, unix.EPERM)
		return
	case c.kind == kindConnect || c.kind == kindBind || c.kind == kindSocketcall:
		s.address(n, c)
		return
	case c.kind == kindOpen2:
		// Its mode and flags are in memory, so it can never pass, and the C libraries and Go fall back to openat.
		s.fail(n.id, unix.ENOSYS)
		return
	}
	flags := c.flagsOf(n)
	names, count, ok := s.names(n, c, flags, sc)
	if !ok {
		return
	}
	worst := passes
	for i := range count {
		v := s.look(n, &names[i], resolveCached, sc)
		worst = max(worst, v)
	}
	if count == 1 && worst != passes {
		if e, ok := s.refused.holds(n, flags, names[0].full); ok {
			s.fail(n.id, e)
			return
		}
	}
	if worst == passes && s.uncovers(c, names[:count]) {
		worst = missing
	}
	switch {
	case worst == unknown:
		s.unreadable(n)
	case worst == passes && (c.kind != kindExec || s.Grafter == nil):
		s.pass(n.id)
	default:
		s.slow(n, c, flags, names[:count], worst == cold && (c.kind != kindExec || s.Grafter == nil))
	}
}

// setsGroup says whether a call would set the set-group-id bit, which the filter hands over for directories that a
// carrier changes.
func (c *call) setsGroup(n *notif) bool {
	return c.op == "chmod" && n.args[max(int(c.path)+1, 1)]&unix.S_ISGID != 0
}

// names copies the path or the two paths of a call. Where that fails it answers and returns false.
func (s *server) names(n *notif, c *call, flags uint64, sc *scratch) (names [2]name, count int, ok bool) {
	args := [2]struct{ dir, path int8 }{{c.dir, c.path}, {c.dir2, c.path2}}
	for i, a := range args {
		if a.path < 0 {
			break
		}
		size, e := readPath(n.pid, n.args[a.path], sc.mem[i][:])
		switch {
		case e == unix.EFAULT || e == unix.ENAMETOOLONG:
			// The kernel says the same itself, or reads something else meanwhile and walks that inside.
			s.pass(n.id)
			return names, 0, false
		case e != 0:
			s.unreadable(n)
			return names, 0, false
		case size == 1: // "" is the descriptor itself, or an error
			s.pass(n.id)
			return names, 0, false
		}
		nofollow := c.nofollow(flags)
		if i == 1 {
			nofollow = true
		}
		names[i] = name{dir: dirOf(n, a.dir), path: sc.mem[i][:size], nofollow: nofollow, look: c.look(flags)}
		count++
	}
	return names, count, true
}

// firstRead is how much of a path is read at first: most are shorter.
const firstRead = 256

// readPath copies a string with its NUL, page by page: the page after it need not exist.
func readPath(pid uint32, addr uint64, dst []byte) (int, syscall.Errno) {
	for got := 0; got < len(dst); {
		most := len(dst)
		if got == 0 {
			most = min(most, firstRead)
		}
		chunk := dst[got:min(most, got+4096-int((addr+uint64(got))&4095))]
		k, e := readMemory(pid, addr+uint64(got), chunk)
		if e != 0 {
			return 0, e
		}
		if k == 0 {
			return 0, unix.EFAULT
		}
		if i := bytes.IndexByte(chunk[:k], 0); i >= 0 {
			return got + i + 1, 0
		}
		got += k
	}
	return 0, unix.ENAMETOOLONG
}

// unreadable answers a caller whose memory or directories cannot be looked at: the set-up itself, a program made from a
// file without read permission, one that made itself undumpable, or one that is dying. What it may reach inside it
// reaches by the kernel's own walk; it is never asked about.
func (s *server) unreadable(n *notif) { s.pass(n.id) }

// look walks one name inside.
func (s *server) look(n *notif, nm *name, cached uint64, sc *scratch) verdict {
	root := s.rootFor(n)
	if root == nil {
		return unknown
	}
	p := nm.path
	if p[0] != '/' {
		var v verdict
		if p, v = sc.joined(n, nm); p == nil {
			return v
		}
		if s.Grafter != nil && s.Grafter.Placed() && s.covered(root, n.pid, nm.dir, p[:len(p)-len(nm.path)]) {
			nm.full = p
			return missing
		}
	}
	nm.full = p
	dotdot := bytes.Contains(p, []byte("/.."))
	if !dotdot && kernelFile(p) {
		return passes
	}
	flags := uint64(unix.O_PATH | unix.O_CLOEXEC)
	if nm.nofollow {
		flags |= unix.O_NOFOLLOW
	}
	if len(root.served) > 0 && own(root, p[:len(p)-1]) != "" {
		return lookServed(p, flags, cached, dotdot)
	}
	e := unix.ENOENT
	if s.Grafter != nil && s.Grafter.Placed() {
		e = s.placedThere(root, p, flags, unix.RESOLVE_NO_MAGICLINKS|cached, nm.look)
		if e == unix.EREMOTE {
			return missing
		}
	} else {
		e = root.exists(p, flags, unix.RESOLVE_NO_MAGICLINKS|cached)
	}
	switch e {
	case unix.ENOENT:
	case unix.EAGAIN:
		return cold
	case unix.EACCES:
		if len(root.served) > 0 { // a link into a served directory may lead out of it again
			return missing
		}
		return passes
	default: // there, or an error that the kernel will find as well
		return passes
	}
	if dotdot {
		return missing
	}
	// No link on the way to what is missing: then the name is what it seems.
	e = root.exists(p, flags|unix.O_NOFOLLOW, unix.RESOLVE_NO_SYMLINKS|cached)
	if e == unix.ENOENT {
		if p := cleaned(p); s.View.Visible(p) || s.Grafter != nil && s.Grafter.Placed() && s.Grafter.Granted(p) {
			return passes
		}
	}
	return missing
}

// lookServed walks a name in a served directory on the host. Only links and dots can lead out of it.
func lookServed(p []byte, flags, cached uint64, dotdot bool) verdict {
	if dotdot {
		return missing
	}
	fd, e := openPath(unix.AT_FDCWD, p, flags|unix.O_NOFOLLOW, unix.RESOLVE_NO_SYMLINKS|unix.RESOLVE_NO_MAGICLINKS|cached)
	switch e {
	case 0:
		link := false
		if flags&unix.O_NOFOLLOW == 0 {
			_, typ, err := identify(fd)
			link = err == nil && typ == unix.S_IFLNK
		}
		unix.Close(fd)
		if link {
			return missing
		}
		return passes
	case unix.EAGAIN:
		return cold
	case unix.ELOOP:
		return missing
	}
	return passes
}

// joined makes an absolute path of a relative one. nil: the verdict says why not.
func (sc *scratch) joined(n *notif, nm *name) ([]byte, verdict) {
	link := startOf(sc.proc[:0], n.pid, nm.dir)
	if link == nil {
		return nil, passes // EBADF
	}
	k, e := readLink(link, sc.join[:maxPath])
	if e == unix.EACCES || e == unix.EPERM {
		return nil, unknown
	}
	if e != 0 || sc.join[0] != '/' || k >= maxPath || bytes.HasSuffix(sc.join[:k], []byte(" (deleted)")) {
		return nil, passes // not a directory, or one without a name
	}
	if k > 1 {
		sc.join[k] = '/'
		k++
	}
	k += copy(sc.join[k:], nm.path)
	return sc.join[:k], passes
}

// startOf names the link to the directory that a relative path starts from, with a NUL; nil for a bad descriptor.
func startOf(dst []byte, pid uint32, dir int32) []byte {
	dst = strconv.AppendUint(append(dst, "/proc/"...), uint64(pid), 10)
	switch {
	case dir == unix.AT_FDCWD:
		return append(dst, "/cwd\x00"...)
	case dir < 0:
		return nil
	}
	return append(strconv.AppendInt(append(dst, "/fd/"...), int64(dir), 10), 0)
}

// kernelFile: these trees answer for themselves, and the broker's view of them is another one.
func kernelFile[T string | []byte](p T) bool {
	for _, dir := range [...]string{"/proc", "/dev", "/sys"} {
		if len(p) >= len(dir) && string(p[:len(dir)]) == dir && (len(p) == len(dir) || p[len(dir)] == '/' ||
			p[len(dir)] == 0) {
			return true
		}
	}
	return false
}

// cleaned drops the NUL, doubled slashes and single dots; the path has no "..".
func cleaned(p []byte) string {
	p = p[:len(p)-1]
	if !bytes.Contains(p, []byte("//")) && !bytes.Contains(p, []byte("/.")) && (len(p) == 1 || p[len(p)-1] != '/') {
		return string(p)
	}
	var b strings.Builder
	for c := range bytes.SplitSeq(p, []byte{'/'}) {
		if len(c) > 0 && string(c) != "." {
			b.WriteByte('/')
			b.Write(c)
		}
	}
	if b.Len() == 0 {
		return "/"
	}
	return b.String()
}
