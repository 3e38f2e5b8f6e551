package notify

import (
	"math/rand"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"sbx/seccompbpf"
)

// frontView shows dir/shown and keeps dir/gated/secret away; all else is gated.
type frontView struct{ dir string }

func (v frontView) at(p string) string { rest, _ := strings.CutPrefix(p, v.dir); return rest + "/" }

func (v frontView) Visible(p string) bool { return strings.HasPrefix(v.at(p), "/shown/") }

func (v frontView) Denied(p string) (bool, unix.Errno) {
	return strings.HasPrefix(v.at(p), "/gated/secret/"), unix.ENOENT
}

func (v frontView) Gated(p string) bool {
	no, _ := v.Denied(p)
	return !no && !v.Visible(p)
}

func (v frontView) Known() (shown, sealed []string) {
	return []string{v.dir + "/shown"}, []string{v.dir + "/gated/secret"}
}

// TestFront compares what the front lets pass with what the loop and its walk say of the same calls: it may hand over more than it
// has to, and never let a call pass that the loop would not.
func TestFront(t *testing.T) {
	host, top := t.TempDir(), t.TempDir()
	write := func(below, p string) {
		p = below + host + "/" + p
		if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(p, nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range []string{"shown/a", "shown/d/a", "shown/only", "gated/a", "gated/d/a", "gated/secret/a"} {
		write("", p)
	}
	for _, p := range []string{"shown/a", "shown/d/a", "gated/in/a"} {
		write(top, p)
	}
	for p, text := range map[string]string{"shown/l": "d", "shown/out": "../gated", "shown/none": "nowhere", "shown/far": host + "/gated/a"} {
		for _, where := range []string{"", top} {
			if err := os.Symlink(text, where+host+"/"+p); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := os.Symlink("shown", top+host+"/gated/l"); err != nil {
		t.Fatal(err)
	}

	root, err := unix.Open(top, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(root)
	id, _, err := identify(root)
	if err != nil {
		t.Fatal(err)
	}
	arch := seccompbpf.Arch(nativeArch())
	s := &server{native: nativeArch(), calls: newCallIndex(arch), Options: Options{View: frontView{host}, Taken: new(atomic.Int64)}}
	f := new(front)
	f.prepare(s)
	s.front = f
	r := &sandboxRoot{fd: root, id: id}
	s.root.Store(r)
	s.publish(r)
	if !f.known || f.ready == 0 {
		t.Fatal("the front does not know where to walk")
	}

	names := []string{"shown", "gated", "secret", "in", "a", "d", "l", "out", "none", "far", "only", "x", ".x", ".", "..", "..x", "", "gated", "shown"}
	sc, passed, handed := new(scratch), map[verdict]int{}, 0
	rng := rand.New(rand.NewSource(1))
	flags := []uint64{unix.O_RDONLY, unix.O_RDONLY, unix.O_WRONLY, unix.O_RDWR | unix.O_CREAT, unix.O_PATH | unix.O_NOFOLLOW, unix.O_DIRECTORY}
	buf := make([]byte, 3*4096)
	page := (4096 - int(uintptr(unsafe.Pointer(&buf[0]))&4095)) & 4095
	for range 20000 {
		p := host
		if rng.Intn(20) == 0 {
			p = []string{"", "/", "/proc/self/x", "/dev", "/devx", "/" + strings.Repeat("x", 600)}[rng.Intn(6)]
		}
		for range rng.Intn(5) {
			p += "/" + names[rng.Intn(len(names))]
		}
		// also at the end of a page
		at := page + 4096 - rng.Intn(len(p)+2)
		copy(buf[at:], p+"\x00")
		nr, _ := seccompbpf.Number(arch, "openat")
		n := notif{pid: uint32(os.Getpid()), nr: int32(nr), arch: f.arch}
		cwd := unix.AT_FDCWD
		n.args = [6]uint64{uint64(cwd), uint64(uintptr(unsafe.Pointer(&buf[at]))), flags[rng.Intn(len(flags))]}
		if rng.Intn(2) == 0 {
			nr, _ = seccompbpf.Number(arch, "newfstatat")
			n.nr, n.args[2], n.args[3] = int32(nr), 0, []uint64{0, unix.AT_SYMLINK_NOFOLLOW}[rng.Intn(2)]
		}
		_, _ = os.Lstat(p) // the kernel has heard of it
		_, _ = os.Lstat(top + p)
		f.n = n
		if !f.passes() {
			handed++
			continue
		}
		if p == "" {
			continue
		}
		c := s.calls.find(n.arch, n.nr)
		fl := c.flagsOf(&n)
		nm := name{dir: unix.AT_FDCWD, path: append([]byte(p), 0), nofollow: c.nofollow(fl), look: c.look(fl)}
		v := s.look(&n, &nm, 0, sc)
		for v == cold { // somebody renames or mounts beside a walk with ".." in it
			v = s.look(&n, &nm, 0, sc)
		}
		passed[v]++
		switch v {
		case passes:
		case missing:
			w := walker{root: r, view: s.View, look: nm.look}
			if out, o := w.walk(p, nm.nofollow); out != nothing && out != inside {
				t.Fatalf("the front lets %q pass (flags %#x of %s), the walk says %d %+v", p, fl, c.name, out, o)
			}
		default:
			t.Fatalf("the front lets %q pass, the loop says %d", p, v)
		}
	}
	if passed[passes] < 1000 || passed[missing] < 1000 || handed < 1000 {
		t.Errorf("%d passed as the loop says, %d that are nowhere, %d handed over: the names are too much alike", passed[passes], passed[missing], handed)
	}
}
