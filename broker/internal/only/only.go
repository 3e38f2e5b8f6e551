// Package only finds what has to be executable so that some named programs run and nothing else does: their
// interpreters, loaders and libraries. It reads files and runs none of them; it must never count a directory
// as a library's without having looked for programs in it. cli asks it for `sbx run --only`.
package only

import (
	"bufio"
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// Set is what is executable; everything else is not. Paths are canonical.
type Set struct {
	Programs []string // files that may be executed
	Trees    []string // directories of programs that belong to a named one (git-core): all in them may be executed
	Mapped   []string // files and directories that may be mapped for execution: libraries, modules
	Masked   []string // programs inside those directories, which may not be
}

// Resolve finds the set for some programs, given as absolute paths.
func Resolve(names []string) (Set, error) {
	r := &resolver{seen: map[string]bool{}, dirs: libraryDirs()}
	for _, n := range names {
		if err := r.program(n, 0); err != nil {
			return Set{}, err
		}
	}
	r.modules()
	if err := r.mask(); err != nil {
		return Set{}, err
	}
	for _, l := range []*[]string{&r.set.Programs, &r.set.Trees, &r.set.Mapped, &r.set.Masked} {
		slices.Sort(*l)
		*l = slices.Compact(*l)
	}
	r.set.Mapped = outermost(r.set.Mapped)
	return r.set, nil
}

type resolver struct {
	set  Set
	seen map[string]bool
	dirs []string // where libraries are searched
}

// program adds an executable file and what it cannot start without.
func (r *resolver) program(name string, depth int) error {
	if depth > 5 { // the kernel's own bound is lower, see BINPRM_MAX_RECURSION
		return fmt.Errorf("%s: interpreters of interpreters without end", name)
	}
	p, err := filepath.EvalSymlinks(name)
	if err != nil {
		return fmt.Errorf("finding %s: %w", name, err)
	}
	if r.seen[p] {
		return nil
	}
	r.seen[p] = true
	st, err := os.Stat(p)
	if err != nil {
		return err
	}
	if !st.Mode().IsRegular() || st.Mode()&0o111 == 0 {
		return fmt.Errorf("%s is not an executable file", p)
	}
	r.set.Programs = append(r.set.Programs, p)
	r.private(p)
	r.private(name) // /usr/bin/python3 → /usr/lib/python3
	interpreter, err := script(p)
	if err != nil {
		return err
	}
	if interpreter != "" {
		return r.program(interpreter, depth+1)
	}
	return r.object(p, depth)
}

// object adds what an ELF file needs: its loader and its libraries.
func (r *resolver) object(p string, depth int) error {
	f, err := elf.Open(p)
	if err != nil {
		var bad *elf.FormatError
		if errors.As(err, &bad) || errors.Is(err, io.EOF) {
			return nil // of another format: the kernel will say what it thinks of it
		}
		return err
	}
	defer f.Close()
	for _, prog := range f.Progs {
		if prog.Type == elf.PT_INTERP {
			b, err := io.ReadAll(io.LimitReader(prog.Open(), 4096))
			if err != nil {
				return err
			}
			// The loader is executed by the kernel with the program, so it has to be executable itself.
			if err := r.program(strings.TrimRight(string(b), "\x00"), depth+1); err != nil {
				return err
			}
		}
	}
	search := append(runPaths(f, p), r.dirs...)
	libs, _ := f.ImportedLibraries() // a static program has none
	for _, l := range libs {
		if err := r.library(l, search, f.Class, f.Machine); err != nil {
			return err
		}
	}
	return nil
}

// runPaths are the directories that a file names itself.
func runPaths(f *elf.File, p string) []string {
	var out []string
	for _, tag := range []elf.DynTag{elf.DT_RPATH, elf.DT_RUNPATH} {
		list, _ := f.DynString(tag)
		for _, l := range list {
			for _, d := range strings.Split(l, ":") {
				d = strings.NewReplacer("$ORIGIN", path.Dir(p), "${ORIGIN}", path.Dir(p)).Replace(d)
				if path.IsAbs(d) {
					out = append(out, path.Clean(d))
				}
			}
		}
	}
	return out
}

// library adds the first file of that name which fits. One that is not found is the loader's to complain about.
func (r *resolver) library(name string, search []string, class elf.Class, machine elf.Machine) error {
	for _, d := range search {
		p, err := filepath.EvalSymlinks(path.Join(d, name))
		if err != nil {
			continue
		}
		f, err := elf.Open(p)
		if err != nil {
			continue
		}
		fits := f.Class == class && f.Machine == machine
		f.Close()
		if !fits {
			continue
		}
		if !r.seen[p] {
			r.seen[p] = true
			r.set.Mapped = append(r.set.Mapped, p)
			return r.object(p, 1)
		}
		return nil
	}
	return nil
}

// private adds the directories that bear a program's name: its own programs, which it runs, and its modules.
func (r *resolver) private(p string) {
	base := path.Base(p)
	if len(base) < 2 {
		return
	}
	prefix := path.Dir(path.Dir(p)) // /usr of /usr/bin/git
	for _, d := range []string{"lib/" + base + "-core", "libexec/" + base, "libexec/" + base + "-core"} {
		if d, err := filepath.EvalSymlinks(path.Join(prefix, d)); err == nil && isDir(d) {
			r.set.Trees = append(r.set.Trees, d)
		}
	}
	if d, err := filepath.EvalSymlinks(path.Join(prefix, "lib", base)); err == nil && isDir(d) {
		r.set.Mapped = append(r.set.Mapped, d)
	}
}

// modules adds the directories from which libraries of the system are loaded at run time (name service, locales,
// modules of interpreters). They are known by holding a library that is needed anyway.
func (r *resolver) modules() {
	for _, p := range slices.Clone(r.set.Mapped) {
		if d := path.Dir(p); slices.Contains(r.dirs, d) && !isDir(p) {
			r.set.Mapped = append(r.set.Mapped, d)
		}
	}
}

// mask finds the programs inside the mapped directories: a loader could start them without executing them.
func (r *resolver) mask() error {
	for _, d := range outermost(r.set.Mapped) {
		if !isDir(d) {
			continue
		}
		err := filepath.WalkDir(d, func(p string, e fs.DirEntry, err error) error {
			if err != nil {
				if e != nil && e.IsDir() {
					return fs.SkipDir
				}
				return nil
			}
			if e.Type().IsRegular() && !r.seen[p] && isProgram(p) {
				r.set.Masked = append(r.set.Masked, p)
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	if len(r.set.Masked) > maxMasked {
		return fmt.Errorf("%d programs lie among the libraries (the first is %s)", len(r.set.Masked), r.set.Masked[0])
	}
	return nil
}

// maxMasked is how many mounts are spent on programs among libraries.
const maxMasked = 400

// isProgram says whether a loader can start the file: an ELF executable, or a shared object with an interpreter.
func isProgram(p string) bool {
	f, err := os.Open(p)
	if err != nil {
		return false // what cannot be read cannot be mapped either
	}
	defer f.Close()
	var head [4]byte
	if _, err := io.ReadFull(f, head[:]); err != nil || string(head[:]) != elf.ELFMAG {
		return false
	}
	e, err := elf.NewFile(f)
	if err != nil {
		return true // odd: not a library for sure
	}
	if e.Type == elf.ET_REL {
		return false
	}
	if e.Type != elf.ET_DYN {
		return true
	}
	// libc and a few others print their version when they are run; they stay libraries.
	name, _ := e.DynString(elf.DT_SONAME)
	return len(name) == 0 && slices.ContainsFunc(e.Progs, func(p *elf.Prog) bool { return p.Type == elf.PT_INTERP })
}

// script returns the interpreter of a #! file, "" for others.
func script(p string) (string, error) {
	f, err := os.Open(p)
	if errors.Is(err, fs.ErrPermission) {
		return "", nil // executable but not readable: no script can be that
	}
	if err != nil {
		return "", err
	}
	defer f.Close()
	head := make([]byte, 256) // BINPRM_BUF_SIZE
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", err
	}
	line, ok := bytes.CutPrefix(head[:n], []byte("#!"))
	if !ok {
		return "", nil
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	words := strings.Fields(string(line))
	if len(words) == 0 || !path.IsAbs(words[0]) {
		return "", fmt.Errorf("%s names no interpreter", p)
	}
	return words[0], nil
}

// libraryDirs are the directories that the loader searches, as /etc/ld.so.conf has them, and its own.
func libraryDirs() []string {
	out := confDirs("/etc/ld.so.conf", 0)
	out = append(out, "/lib64", "/usr/lib64", "/lib", "/usr/lib")
	var canon []string
	for _, d := range out {
		if c, err := filepath.EvalSymlinks(d); err == nil && !slices.Contains(canon, c) {
			canon = append(canon, c)
		}
	}
	return canon
}

func confDirs(file string, depth int) []string {
	f, err := os.Open(file)
	if err != nil || depth > 4 {
		return nil
	}
	defer f.Close()
	var out []string
	for lines := bufio.NewScanner(f); lines.Scan(); {
		line, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(line)
		switch {
		case len(words) == 2 && words[0] == "include":
			pattern := words[1]
			if !path.IsAbs(pattern) {
				pattern = path.Join(path.Dir(file), pattern)
			}
			files, _ := filepath.Glob(pattern)
			for _, f := range files {
				out = append(out, confDirs(f, depth+1)...)
			}
		case len(words) == 1 && path.IsAbs(words[0]):
			out = append(out, words[0])
		}
	}
	return out
}

func isDir(p string) bool {
	st, err := os.Stat(p)
	return err == nil && st.IsDir()
}

// outermost leaves out what lies below another path of the list.
func outermost(list []string) []string {
	list = slices.Sorted(slices.Values(list))
	var out []string
	for _, p := range slices.Compact(list) {
		if !slices.ContainsFunc(out, func(o string) bool { return strings.HasPrefix(p, o+"/") }) {
			out = append(out, p)
		}
	}
	return out
}
