//go:build linux

package changes

import (
	"os"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestAppliesBelowLongPaths: a tree whose paths are longer than a call takes is looked through, and applied whole.
func TestAppliesBelowLongPaths(t *testing.T) {
	const depth = 40
	name := strings.Repeat("d", 250)
	l := newLab(t)
	l.begin()
	bottom := func(top string, fresh bool) *os.File {
		at, err := openRoot(top)
		l.check(err)
		for range depth {
			if fresh {
				l.check(unix.Mkdirat(at, name, 0o755))
			}
			next, err := openSame(at, name)
			unix.Close(at)
			l.check(err)
			at = next
		}
		flags := unix.O_RDWR
		if fresh {
			flags |= unix.O_CREAT
		}
		fd, err := unix.Openat(at, "f", flags, 0o644)
		unix.Close(at)
		l.check(err)
		return os.NewFile(uintptr(fd), "f")
	}
	f := bottom(l.upper, true)
	_, err := f.WriteString("deep")
	l.check(err)
	l.check(f.Close())
	res, err := Apply(l.scan(), l.opt())
	if err != nil || res.Applied != depth+1 {
		t.Fatalf("%d of %d applied: %v", res.Applied, depth+1, err)
	}
	f = bottom(l.host, false)
	defer f.Close()
	var b [8]byte
	if n, _ := f.Read(b[:]); string(b[:n]) != "deep" {
		t.Errorf("%q at the bottom", b[:n])
	}
	// The control: one name that is too long is so in pieces as well.
	root, err := openRoot(l.host)
	l.check(err)
	defer unix.Close(root)
	if _, err := openBelow(root, strings.Repeat("n", 5000)); err != unix.ENAMETOOLONG {
		t.Errorf("a name of 5000 bytes: %v", err)
	}
}
