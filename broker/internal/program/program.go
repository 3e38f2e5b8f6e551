// Package program finds, checks and starts every program that sbx runs outside of a sandbox: it is the only room that
// does (selftest's TestWhoStartsPrograms lists the few exceptions). A program comes from a fixed directory, or from the
// file that the user's or the organisation's configuration names, and nobody but root, or for a named file the user,
// could have put it there. It also says what a running program is called (Of, Name). It must never search PATH for
// something to run: a project decides what that finds (.venv/bin, node_modules/.bin). Called by network, idmap, launch,
// prompt, learn, gate/notify, live and cli.
package program

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
)

// Dirs are where programs are looked for, in this order. The last two are where NixOS and Guix keep the system's own.
func Dirs() [10]string {
	return [...]string{"/usr/bin", "/usr/sbin", "/bin", "/sbin", "/usr/local/bin", "/usr/local/sbin",
		"/usr/libexec", "/usr/lib", "/run/wrappers/bin", "/run/current-system/sw/bin"}
}

// Path is the PATH that programs outside get.
const Path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"

// Program is a file that was checked. Only this package makes one.
type Program struct {
	name  string // as it calls itself
	found string // as it was asked for
	file  string // where it is, links resolved
	mode  uint32
}

// File is where the program is, without links.
func (p Program) File() string { return p.file }

// String is the program as people know it.
func (p Program) String() string { return p.found }

// Setuid says whether the file is set-user-id.
func (p Program) Setuid() bool { return p.mode&unix.S_ISUID != 0 }

// Source says what beside Dirs is relied on.
type Source struct {
	Named    []string // files that configuration names: sandbox.programs
	Writable []string // what sandboxes write: nothing at or below it is relied on
	Path     string   // the caller's PATH, only to say what was not used
}

// ErrMissing is wrapped by errors about a program that is nowhere.
var ErrMissing = errors.New("is not installed")

// True is a program of the system's that does nothing, by its whole path: a PATH may lead to another one of its name.
func True() string {
	const name = "true"
	p, err := Source{}.Find(name)
	if err != nil {
		return name
	}
	return p.String()
}

// Find returns the program called name: the named one, else the first of a fixed directory. What stands in its place
// and cannot be relied on is an error that says why.
func (s Source) Find(name string) (Program, error) {
	for _, file := range s.Named {
		if path.Base(file) == name {
			return s.named(name, file)
		}
	}
	var failed error
	for _, dir := range Dirs() {
		file := path.Join(dir, name)
		if !runs(file) {
			continue
		}
		p, err := Roots(file)
		if err == nil {
			return p, nil
		}
		failed = cmp.Or(failed, err)
	}
	if failed != nil {
		return Program{}, fmt.Errorf("%s is not used: %w", name, failed)
	}
	return Program{}, fmt.Errorf("%s %w%s", name, ErrMissing, s.passedOver(name))
}

// Companion returns the first of files that exists: a program that was installed together with sbx, whose own file is
// self. It is root's or belongs to whom sbx belongs, and lies where sandboxes write only if sbx itself does.
func (s Source) Companion(self string, files ...string) (Program, error) {
	var st unix.Stat_t
	if err := unix.Stat(self, &st); err != nil {
		return Program{}, fmt.Errorf("looking at %s: %w", self, err)
	}
	for _, file := range files {
		if !runs(file) {
			continue
		}
		p, err := check(file, st.Uid)
		if err == nil && Within(p.file, s.Writable) && !Within(self, s.Writable) {
			err = fmt.Errorf("%s lies where sandboxes write", p.file)
		}
		if err != nil {
			return Program{}, fmt.Errorf("%s is not used: %w", file, err)
		}
		return p, nil
	}
	return Program{}, fmt.Errorf("%s %w", path.Base(files[0]), ErrMissing)
}

// Own returns a program that was installed together with sbx: beside it, or in the library folder of the same prefix.
func (s Source) Own(name string) (Program, error) {
	self, err := os.Executable()
	if err != nil {
		return Program{}, fmt.Errorf("finding sbx itself: %w", err)
	}
	if real, err := filepath.EvalSymlinks(self); err == nil {
		self = real
	}
	dir := path.Dir(self)
	return s.Companion(self, path.Join(dir, name), path.Join(dir, "../lib/sbx", name),
		path.Join(dir, "../libexec/sbx", name))
}

// At returns the program at a place that the user has named: it is root's or his, and not where sandboxes write.
func (s Source) At(file string) (Program, error) {
	p, err := check(file, uint32(os.Getuid()))
	if err == nil && Within(p.file, s.Writable) {
		return Program{}, fmt.Errorf("%s lies where sandboxes write", p.file)
	}
	return p, err
}

// named checks a file of the configuration's.
func (s Source) named(name, file string) (Program, error) {
	p, err := s.At(file)
	if err != nil {
		return Program{}, fmt.Errorf("%s of sandbox.programs is not used: %w", file, err)
	}
	p.name = name
	return p, nil
}

// passedOver says which file of that name PATH leads to, and what makes it one that is used.
func (s Source) passedOver(name string) string {
	for dir := range strings.SplitSeq(s.Path, ":") {
		file := path.Join(dir, name)
		if path.IsAbs(dir) && runs(file) {
			return fmt.Sprintf(" where sbx looks (%s, in your PATH, could be a project's: if it is yours, programs = [%[1]q] "+
				"below [sandbox] in ~/.config/sbx/config.toml says so)", file)
		}
	}
	return ""
}

// runs says whether there is a file that could be executed.
func runs(file string) bool {
	st, err := os.Stat(file)
	return err == nil && st.Mode().IsRegular() && st.Mode()&0o111 != 0
}

// Roots returns the program at a fixed place if it and all that leads there is root's alone.
func Roots(file string) (Program, error) { return check(file, 0) }

// Self is sbx itself.
func Self() Program { return Program{name: "sbx", found: "/proc/self/exe", file: "/proc/self/exe"} }

// check looks at the path to a program, as walk does.
func check(file string, owner uint32) (Program, error) {
	at, mode, err := walk(file, owner)
	switch {
	case err != nil:
		return Program{}, err
	case mode&unix.S_IFMT != unix.S_IFREG || mode&0o111 == 0:
		return Program{}, fmt.Errorf("%s is not a program", file)
	}
	return Program{name: path.Base(file), found: file, file: at, mode: mode}, nil
}

// walk follows a path by hand to where it leads, and looks at everything on the way: directories, links and the file
// must be root's or owner's, and nobody else may change them. So what was looked at is what is started later.
func walk(file string, owner uint32) (at string, mode uint32, err error) {
	if !path.IsAbs(file) {
		return "", 0, fmt.Errorf("%s is not an absolute path", file)
	}
	at, rest, links := "/", strings.Split(file, "/"), 0
	for {
		var st unix.Stat_t
		if err := unix.Lstat(at, &st); err != nil {
			return "", 0, fmt.Errorf("looking at %s: %w", at, err)
		}
		kind := st.Mode & unix.S_IFMT
		if st.Uid != owner && !host.OfRoot(st.Uid) {
			return "", 0, fmt.Errorf("%s belongs to uid %d", at, st.Uid)
		}
		// In a sticky directory others can make names, but neither move nor remove what is there.
		if kind != unix.S_IFLNK && st.Mode&0o022 != 0 && (kind != unix.S_IFDIR || st.Mode&unix.S_ISVTX == 0) {
			return "", 0, fmt.Errorf("%s can be written by others (mode %04o)", at, st.Mode&0o7777)
		}
		for len(rest) > 0 && (rest[0] == "" || rest[0] == ".") {
			rest = rest[1:]
		}
		switch {
		case kind == unix.S_IFLNK:
			to, err := os.Readlink(at)
			if links++; err != nil || links > 40 {
				return "", 0, fmt.Errorf("following the link %s: %w", at, errors.Join(err, unix.ELOOP))
			}
			rest = append(strings.Split(to, "/"), rest...)
			if at = path.Dir(at); path.IsAbs(to) {
				at = "/"
			}
		case kind == unix.S_IFDIR && len(rest) > 0:
			at, rest = path.Join(at, rest[0]), rest[1:]
		case len(rest) == 0:
			return at, uint32(st.Mode), nil
		default:
			return "", 0, fmt.Errorf("%s is not a program: %s is no directory", file, at)
		}
	}
}

// Start starts the program. argv does not have its name.
func (p Program) Start(args []string, attr *os.ProcAttr) (*os.Process, error) {
	return os.StartProcess(p.file, append([]string{p.name}, args...), attr)
}

// Fork is Start for a caller that waits for the pid itself.
func (p Program) Fork(args []string, attr *syscall.ProcAttr) (pid int, err error) {
	return syscall.ForkExec(p.file, append([]string{p.name}, args...), attr)
}

// Command is the program with nothing of the caller's environment, in /.
func (p Program) Command(args ...string) *exec.Cmd {
	return &exec.Cmd{Path: p.file, Args: append([]string{p.name}, args...), Env: []string{Path}, Dir: "/"}
}

// Shell is sh with a command of the user's own, in the directory that sbx was called in. env is what it gets: see
// Environment.
func Shell(ctx context.Context, command string, env []string) (*exec.Cmd, error) {
	sh, err := Roots("/bin/sh")
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, sh.file, "-c", command)
	cmd.Args[0], cmd.Env = sh.name, env
	return cmd, nil
}
