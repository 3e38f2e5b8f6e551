package planner

import (
	"errors"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/plan"
)

// closedFS is a file system in which some files and directories cannot be read, for a reason.
type closedFS struct {
	valuesFS
	closed map[string]error
}

func (fs closedFS) err(p string, itself bool) error {
	for at, err := range fs.closed {
		if at == p && itself || at != p && host.Within(p, at) {
			return &os.PathError{Op: "open", Path: p, Err: err}
		}
	}
	return nil
}

func (fs closedFS) Lstat(p string) (host.Stat, error) {
	if err := fs.err(p, false); err != nil {
		return host.Stat{}, err
	}
	return fs.valuesFS.Lstat(p)
}

func (fs closedFS) ReadDir(p string) ([]host.Entry, error) {
	if err := fs.err(p, true); err != nil {
		return nil, err
	}
	return fs.valuesFS.ReadDir(p)
}

func (fs closedFS) Peek(p string, off int64, n int) ([]byte, error) {
	if err := fs.err(p, true); err != nil {
		return nil, err
	}
	return fs.valuesFS.Peek(p, off, n)
}

func (fs closedFS) Access(p string, mode uint32) bool {
	return fs.err(p, mode&(unix.R_OK|unix.X_OK) != 0) == nil && fs.valuesFS.Access(p, mode)
}

// unreadProject is a project with a repository in it, of which a hook lies in tools, and another in sub.
func unreadProject() valuesFS {
	const p = "/home/u/project"
	return machine(p+"/.git/HEAD", p+"/.git/config : [core]\n\thooksPath = tools\n", p+"/.git/hooks/x.sample",
		p+"/.git/info/exclude", p+"/tools/pre-commit", p+"/open/f", p+"/conf/.env", p+"/nested/.git/HEAD",
		p+"/nested/.git/config : [core]\n\thooksPath = tools\n[include]\n\tpath = ../more\n", p+"/nested/more : [a]\n",
		p+"/linked/.git : gitdir: ../.git/modules/m\n", p+"/.git/modules/m/HEAD", p+"/.git/modules/m/commondir : ../..\n")
}

// planned refers and builds, in a mode.
func planned(fs FS, mode Mode, uid uint32) (*plan.Plan, []Loss, *Input, error) {
	in := judging(request(valuesFS{}))
	in.FS, in.Facts.UID = fs, uid
	in.Grants = join(grants(mode, "--x", "/home/u/project"), grants(Read, "profile moderate", system...))
	if err := in.Refer(nil); err != nil {
		return nil, nil, nil, err
	}
	p, losses, err := Build(in)
	return p, losses, &in, err
}

// TestGitThatCannotBeRead: what git acts upon and cannot be read now may be when the program has put its rights back:
// nothing is run as if it were not there. What nobody inside can open is none of its settings.
func TestGitThatCannotBeRead(t *testing.T) {
	t.Parallel()
	const p = "/home/u/project"
	for _, at := range []string{"/.git", "/.git/config", "/.git/hooks", "/.git/info", "/nested/.git",
		"/nested/.git/config", "/nested/more", "/linked/.git", "/.git/modules", "/.git/modules/m/commondir"} {
		for _, why := range []error{syscall.EACCES, syscall.EIO, syscall.EAGAIN, syscall.ELOOP} {
			_, _, _, err := planned(closedFS{unreadProject(), map[string]error{p + at: why}}, Write, 1000)
			fix := "mend or remove what is there, or what leads there"
			if why == syscall.EACCES { // rights mend nothing else
				fix = "chmod u+rX " + p + at
			}
			var refused *Refusal
			if !errors.As(err, &refused) || !strings.Contains(refused.What, "which cannot be read") ||
				!strings.HasSuffix(refused.Hint, ": "+fix) {
				t.Errorf("%s, %v: %v", at, why, err)
			}
		}
		_, _, _, err := planned(closedFS{unreadProject(), map[string]error{p + at: syscall.EACCES}}, Write, 7)
		if err != nil {
			t.Errorf("%s, somebody else's: %v", at, err)
		}
	}
	for _, mode := range []Mode{Read, Overlay} { // a credential in it would be seen
		if _, _, _, err := planned(closedFS{unreadProject(), map[string]error{p + "/.git/config": syscall.EACCES}}, mode,
			1000); err == nil {
			t.Errorf("%v: planned", mode)
		}
	}
	big := unreadProject()
	big.texts[p+"/.git/config"] = strings.Repeat("#\n", MaxConfigSize/2) + big.texts[p+"/.git/config"]
	if _, _, _, err := planned(big, Write, 1000); !errors.Is(err, syscall.EFBIG) {
		t.Errorf("more than is read: %v", err)
	}
	if _, _, in, err := planned(unreadProject(), Write, 1000); err != nil || !slices.ContainsFunc(in.Referred,
		func(r guard.Referred) bool { return r.Path == p+"/tools" }) {
		t.Errorf("control: %v", err)
	}
}

// TestWhatCannotBeGrantedIsNotLookedThrough: what is wrong with the place is said, not what could not be read in it.
func TestWhatCannotBeGrantedIsNotLookedThrough(t *testing.T) {
	t.Parallel()
	for top, want := range map[string]string{"/proc": "provided by the sandbox itself", "/": "cannot be writable",
		"/srv/p": "which cannot be read"} {
		fs := closedFS{machine("/proc/7/.git/HEAD", "/srv/p/.git/HEAD"),
			map[string]error{"/proc/7/.git": syscall.EACCES, "/srv/p/.git": syscall.EACCES}}
		in := judging(request(valuesFS{}))
		in.FS, in.Facts.UID = fs, 1000
		in.Grants = grants(Write, "--rw", top)
		err := in.Refer(nil)
		if err == nil {
			_, _, err = Build(in)
		}
		var refused *Refusal
		if !errors.As(err, &refused) || !strings.Contains(refused.What, want) {
			t.Errorf("%s: %v, want %q", top, err, want)
		}
	}
}

// TestTreeThatCannotBeLookedThrough: such a directory does not exist inside, in any mode, and that is said. The run
// goes on, but not for a tree that is one itself.
func TestTreeThatCannotBeLookedThrough(t *testing.T) {
	t.Parallel()
	const p = "/home/u/project"
	for _, mode := range []Mode{Read, Write, Overlay} {
		for _, at := range []string{"/conf", "/nested"} {
			for _, uid := range []uint32{1000, 7} {
				closed := map[string]error{p + at: syscall.EACCES}
				_, losses, in, err := planned(closedFS{unreadProject(), closed}, mode, uid)
				if err != nil {
					t.Fatalf("%v, %s: %v", mode, at, err)
				}
				said := slices.ContainsFunc(losses, func(l Loss) bool {
					return l.Price && l.What == p+at && strings.Contains(l.Why, "does not exist inside")
				})
				hidden, _, err := Hidden(*in)
				if own := uid == 1000; err != nil || said != own || slices.Contains(hidden, p+at) != own {
					t.Errorf("%v, %s, uid %d: %v, said %v, hidden %q", mode, at, uid, err, said, hidden)
				}
			}
		}
		_, _, _, err := planned(closedFS{unreadProject(), map[string]error{p: syscall.EACCES}}, mode, 1000)
		if err == nil {
			t.Errorf("%v: planned with a tree that cannot be looked through", mode)
		}
		if _, losses, _, err := planned(unreadProject(), mode, 1000); err != nil || slices.ContainsFunc(losses,
			func(l Loss) bool { return strings.Contains(l.Why, "does not exist inside") }) {
			t.Errorf("%v, control: %v, %v", mode, err, losses)
		}
	}
}

// TestTreeThatIsTooDeep: a program can leave a tree that is deeper than any rule reaches. What lies there does not
// exist inside, and the next run goes on.
func TestTreeThatIsTooDeep(t *testing.T) {
	t.Parallel()
	const p = "/home/u/project"
	deep := p + strings.Repeat("/d", 400)
	for _, mode := range []Mode{Read, Write, Overlay} {
		_, losses, in, err := planned(machine(p+"/f", deep+"/.env"), mode, 1000)
		if err != nil || !slices.ContainsFunc(losses, func(l Loss) bool {
			return l.Price && strings.HasPrefix(l.What, p+"/d") && strings.Contains(l.Why, "does not exist inside")
		}) {
			t.Errorf("%v: %v, %v", mode, err, losses)
		}
		hidden, _, err := Hidden(*in)
		if err != nil || !slices.ContainsFunc(hidden, func(at string) bool { return host.Within(deep, at) }) {
			t.Errorf("%v: hidden %q, %v", mode, hidden, err)
		}
		control := p + strings.Repeat("/d", searchedLevels-5) + "/.env"
		if _, losses, _, err := planned(machine(p+"/f", control), mode, 1000); err != nil || slices.ContainsFunc(losses,
			func(l Loss) bool { return strings.Contains(l.Why, "does not exist inside") }) {
			t.Errorf("%v, control: %v, %v", mode, err, losses)
		}
	}
}
