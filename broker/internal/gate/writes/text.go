//go:build linux

package writes

import (
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/names"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
)

// A file that says where git finds a repository (.git of a worktree or submodule, commondir), or how far a rebase is,
// must be harmless as a whole. Whoever writes one is given a file without a name; it gets the name, as a copy that
// nobody has open, once what it says is harmless. That is looked at whenever the session does something else that comes
// here: git does, before it reads what it wrote, but for one number (count).

// text is such a file.
type text struct {
	f    *os.File
	n    *name
	mode uint32
	pid  uint32 // who asked for it
	last string // what was put in place
	told string // what was not, and was said
	left int    // calls until it is forgotten
}

const (
	maxTexts = 16
	textLife = 256
	textSize = 4096
)

// openText gives the caller a file without a name to write.
func (j *job) openText(n *name, r ruling) bool {
	var st unix.Stat_t
	if j.flags&unix.O_EXCL != 0 && statAt(n.root.fd, nulled(n.rel), &st, unix.AT_SYMLINK_NOFOLLOW) == 0 {
		return j.answer(unix.EEXIST)
	}
	j.texts = slices.DeleteFunc(j.texts, func(t *text) bool { // a rebase writes its count again and again
		again := t.n.root == n.root && t.n.path() == n.path()
		if again {
			t.f.Close()
		}
		return again
	})
	if len(j.texts) >= maxTexts {
		return j.refuse(n, r, unix.EROFS)
	}
	dir, _ := n.split()
	mode := uint32(j.call.Arg(int(j.d.arg))) & 0o777
	j.takeMask()
	fd, e := openAt(n.root.fd, []byte(dir+"\x00"), unix.O_TMPFILE|unix.O_RDWR, mode)
	if e != 0 {
		return j.answer(e)
	}
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		unix.Close(fd)
		return j.answer(unix.EMFILE)
	}
	t := &text{f: os.NewFile(uintptr(dup), "text"), n: n, mode: mode &^ j.mask, pid: j.call.PID(), left: textLife}
	t.count()
	j.texts = append(j.texts, t)
	j.call.Hand(fd, j.flags&unix.O_CLOEXEC != 0, false)
	return true
}

// installTexts puts in place what has become harmless, and forgets what was written long ago.
func (k *Carrier) installTexts() {
	kept := k.texts[:0]
	for _, t := range k.texts {
		said, err := io.ReadAll(io.NewSectionReader(t.f, 0, textSize))
		switch {
		case err != nil || string(said) == t.last || string(said) == t.told:
		case k.place(t, said):
		case k.Refused != nil:
			t.told = string(said)
			k.Refused(Refusal{PID: t.pid, Op: "write", Path: t.n.onHost(), Why: t.n.root.judge.of(t.n).Why})
		}
		if t.left--; t.left > 0 {
			kept = append(kept, t)
		} else {
			t.f.Close()
		}
	}
	k.texts = kept
}

// place puts a text in place where it is harmless.
func (k *Carrier) place(t *text, said []byte) bool {
	alone := k.Session.Alone(true)
	if alone == nil {
		return false
	}
	defer alone()
	if !t.n.root.harmless(t.n, said, k.GitDir) {
		return false
	}
	t.install(said)
	return true
}

func (t *text) install(said []byte) {
	dir, base, e := t.n.parent()
	if e != 0 {
		return
	}
	defer t.n.closeParent(dir)
	if names.Install(dir, single(base), said, t.mode, 0) == nil {
		t.last = string(said)
	}
}

// count has the number of git am's next patch grow by one when it is opened to be written: git reads it back before
// anything else comes here. What is written to it then counts as any text does.
func (t *text) count() {
	if _, base := t.n.split(); guard.Fold(base) != "next" {
		return
	}
	fd, e := openAt(t.n.root.fd, nulled(t.n.rel), unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if e != 0 {
		return // the first one
	}
	defer unix.Close(fd)
	now, err := host.PeekAt(fd, 0, len("1000000\n"))
	if n, nerr := strconv.Atoi(strings.TrimSuffix(string(now), "\n")); err == nil && nerr == nil {
		t.install([]byte(strconv.Itoa(n+1) + "\n"))
	}
}

// harmless says whether a file whose contents count may hold text.
func (r *root) harmless(n *name, said []byte, gitDir string) bool {
	_, base := n.split()
	if ok, settled := guard.Says(base, said); settled {
		return ok
	}
	return names.MayLead(guard.Granted{Top: r.Granted, GitDir: gitDir}, n.onHost(), said, r.judge.session)
}
