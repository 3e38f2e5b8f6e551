//go:build linux

package input

import (
	"errors"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
)

// TestUnsuitable: a project is never the home directory, what contains it, or the whole machine.
func TestUnsuitable(t *testing.T) {
	for dir, want := range map[string]string{"/": "the whole machine", "/home/u": "the home directory",
		"/home": "contains the home directory", "/home/u/p": "", "/srv": "", "/home/user2": "", "/hom": ""} {
		got := unsuitable(dir, "/home/u")
		if (got == "") != (want == "") || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", dir, got, want)
		}
	}
	if got := unsuitable("/home/u", ""); got != "" {
		t.Errorf("without a home: %q", got)
	}
}

func TestOwnPlace(t *testing.T) {
	for dir, want := range map[string]bool{"/tmp": true, "/tmp/x": false, "/proc/self": true, "/procs": false,
		"/sys/fs": true, "/dev/shm": true, "/run": true, "/run/user/1000": false, "/device": false, "/": false} {
		if ownPlace(dir) != want {
			t.Errorf("%s: %v", dir, !want)
		}
	}
}

// TestHide: a pattern hides below the home that $HOME names and the one that the account has, and in the project; one
// that cannot be looked for is a loss and not forgotten.
func TestHide(t *testing.T) {
	home, account, project := t.TempDir(), t.TempDir(), t.TempDir()
	if err := errors.Join(os.Mkdir(home+"/one", 0o700), os.Mkdir(home+"/two", 0o700)); err != nil {
		t.Fatal(err)
	}
	for _, f := range []string{home + "/.key", home + "/two/in", account + "/.key", project + "/.env"} {
		if err := os.WriteFile(f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for pattern, want := range map[string][]string{"~/.key": {account + "/.key", home + "/.key"},
		"$PROJECT/.env": {project + "/.env"}, "~/*/in": {home + "/two/in"},
		"~/t*/i?": {home + "/two/in"}, "/etc/hostname": {"/etc/hostname"}} {
		in := &planner.Input{FS: host.FS{}, Project: project, Facts: host.Facts{Home: home, Account: account}}
		hide(in, pattern, true, "test")
		var got []string
		for _, h := range in.Hides {
			got = append(got, h.Path)
			if !h.Secret || h.Why != "test" {
				t.Errorf("%s: %+v", pattern, h)
			}
		}
		if strings.Join(got, " ") != strings.Join(want, " ") || len(in.Losses) > 0 {
			t.Errorf("%s: %q %v, want %q", pattern, got, in.Losses, want)
		}
	}
	in := &planner.Input{FS: host.FS{}, Facts: host.Facts{Home: home}}
	if hide(in, "/a/**/b", false, "test"); len(in.Hides) != 0 || len(in.Losses) != 1 {
		t.Errorf("%+v %+v", in.Hides, in.Losses)
	}
}

// TestRequestHides: a wildcard of --hide and --secret hides what it finds, a name with such a character itself, and a
// missing name for who makes it later. One that would hide nothing is refused.
func TestRequestHides(t *testing.T) {
	top := t.TempDir()
	for _, f := range []string{"a.key", "b.key", "[id].tsx", "i.tsx"} {
		if err := os.WriteFile(top+"/"+f, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for typed, want := range map[string]string{"*.key": "a.key b.key", "[id].tsx": "[id].tsx", "missing": "missing",
		"./?.tsx": "i.tsx", "*.pem": "", "*/x": ""} {
		in := &planner.Input{FS: host.FS{}, Facts: host.Facts{Cwd: top}}
		r := &Run{Request: &request.Request{Hide: []string{typed}}}
		err := r.requestHides(in)
		var got []string
		for _, h := range in.Hides {
			got = append(got, strings.TrimPrefix(path.Clean(h.Path), top+"/"))
		}
		if strings.Join(got, " ") != want || (err == nil) != (want != "") ||
			err != nil && !strings.Contains(err.Error(), "would hide nothing") {
			t.Errorf("%s: %q, %v", typed, got, err)
		}
	}
}

// TestBeginChecksTheName: a name that is no host name does not reach the set-up.
func TestBeginChecksTheName(t *testing.T) {
	for name, want := range map[string]bool{"": true, "box": true, strings.Repeat("a", 63): true,
		strings.Repeat("a", 64): false, "a/b": false, "a\nb": false, "a\x00b": false} {
		r := &Run{Request: &request.Request{Hostname: name}}
		if _, err := r.begin(request.Settings{}, host.Facts{}); (err == nil) != want {
			t.Errorf("%q: %v", name, err)
		}
	}
	s := request.Settings{}
	s.Sandbox.Hostname = "written"
	for typed, want := range map[string]string{"": "written", "typed": "typed"} {
		r := &Run{Request: &request.Request{Hostname: typed}}
		if in, err := r.begin(s, host.Facts{}); err != nil || in.Hostname != want {
			t.Errorf("%q: %v", typed, err)
		}
	}
}

// worktree makes a repository and a linked worktree of it.
func worktree(t *testing.T) (repository, tree string) {
	t.Helper()
	top := t.TempDir()
	repository, tree = top+"/main/.git", top+"/tree"
	for _, d := range []string{repository + "/worktrees/tree", tree} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for f, text := range map[string]string{repository + "/HEAD": "ref: refs/heads/main\n",
		repository + "/worktrees/tree/gitdir": tree + "/.git\n", repository + "/worktrees/tree/commondir": "../..\n",
		tree + "/.git": "gitdir: " + repository + "/worktrees/tree\n"} {
		if err := os.WriteFile(f, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return repository, tree
}

// TestGitDirOfWorktree: the repository of a linked worktree is granted, and no directory that a project merely names.
func TestGitDirOfWorktree(t *testing.T) {
	repository, tree := worktree(t)
	if got := gitDir(host.FS{}, tree); got != repository {
		t.Fatalf("%q, want %q", got, repository)
	}
	for name, spoil := range map[string]func(repository, tree string) error{
		"the repository does not point back": func(r, tree string) error {
			return os.WriteFile(r+"/worktrees/tree/gitdir", []byte("/elsewhere/.git\n"), 0o644)
		},
		"it names its own directory": func(_, tree string) error {
			return errors.Join(os.MkdirAll(tree+"/w", 0o755), os.WriteFile(tree+"/w/gitdir", []byte(tree+"/.git\n"), 0o644),
				os.WriteFile(tree+"/w/commondir", []byte("/etc\n"), 0o644),
				os.WriteFile(tree+"/.git", []byte("gitdir: "+tree+"/w\n"), 0o644))
		},
		"no repository": func(r, _ string) error { return os.Remove(r + "/HEAD") },
		"a link instead of the file": func(_, tree string) error {
			return errors.Join(os.Rename(tree+"/.git", tree+"/file"), os.Symlink("file", tree+"/.git"))
		},
		"no file where one belongs": func(r, _ string) error {
			return errors.Join(os.Remove(r+"/worktrees/tree/commondir"), os.Mkdir(r+"/worktrees/tree/commondir", 0o755))
		},
		"another word": func(_, tree string) error {
			return os.WriteFile(tree+"/.git", []byte("gitdir:"+repository), 0o644)
		},
	} {
		r, tree := worktree(t)
		if err := spoil(r, tree); err != nil {
			t.Fatal(err)
		}
		if got := gitDir(host.FS{}, tree); got != "" {
			t.Errorf("%s: %q is granted", name, got)
		}
	}
}

// TestMachines: a device that is not there, or may not be opened, is refused with what to do; the images are read.
func TestMachines(t *testing.T) {
	var s request.Settings
	s.Features = policy.Features{VM: true}
	in := &planner.Input{FS: host.FS{}, Facts: host.Facts{Home: "/home/u"}}
	r := &Run{Request: &request.Request{}, Env: []string{"XDG_DATA_HOME=/data"}}
	if err := r.machines(s, in); err != nil || in.KVM {
		t.Fatal(err)
	}
	for _, g := range in.Grants {
		if g.Mode != planner.Read || !g.NoExec || !g.Optional {
			t.Errorf("%+v", g)
		}
	}
	if len(in.Grants) == 0 || in.Grants[0].Path != "/data/libvirt/images" {
		t.Errorf("%+v", in.Grants)
	}
}

// windows is a host on which Windows runs this Linux.
type windows struct{ host.FS }

func (w windows) Lstat(p string) (host.Stat, error) {
	if p == "/usr/lib/wsl" {
		return host.Stat{Type: host.Dir}, nil
	}
	return w.FS.Lstat(p)
}

// TestPlaces: what is hidden where it exists is no secret, costs nothing where it does not exist, and is shown to who
// names it.
func TestPlaces(t *testing.T) {
	hidden := func(fs planner.FS, grants ...planner.Grant) (found []planner.Hide) {
		in := &planner.Input{FS: fs, Grants: grants}
		r := &Run{Request: &request.Request{}}
		if err := r.hides(request.Settings{}, in); err != nil {
			t.Fatal(err)
		}
		for _, h := range in.Hides {
			if strings.HasPrefix(h.Path, "/usr") {
				found = append(found, h)
			}
		}
		return found
	}
	if got := hidden(windows{}); len(got) != 1 || got[0].Path != "/usr/lib/wsl" || got[0].Secret ||
		!strings.Contains(got[0].Why, "Windows") {
		t.Errorf("where it exists: %+v", got)
	}
	if got := hidden(host.FS{}); len(got) > 0 {
		t.Errorf("where it does not exist: %+v", got)
	}
	if got := hidden(windows{}, planner.Grant{Path: "/usr/lib/wsl", Explicit: true}); len(got) > 0 {
		t.Errorf("named: %+v", got)
	}
	if got := hidden(windows{}, planner.Grant{Path: "/usr", Explicit: true}); len(got) != 1 {
		t.Errorf("in what is named: %+v", got)
	}
}

// TestProjectIsNoLink: a link that has taken the place of the project since that was found is not followed, whatever
// else happens to it while it is looked at.
func TestProjectIsNoLink(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.MkdirAll(top+"/project/sub", 0o755), os.MkdirAll(top+"/other/sub", 0o755),
		os.Symlink("other", top+"/link")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	find := func(fs planner.FS, dir string) error {
		s := request.Settings{}
		s.Vars.Project = dir
		r := &Run{Request: &request.Request{}}
		return r.project(s, &planner.Input{FS: fs, Facts: host.Facts{Cwd: dir}})
	}
	for dir, ok := range map[string]bool{"": true, top + "/project": true, top + "/project/sub": true, top + "/gone": true,
		top + "/link": false, top + "/link/sub": false} {
		if err := find(host.NewCache(nil), dir); (err == nil) != ok {
			t.Errorf("%q: %v", dir, err)
		}
	}
	if err := find(flickers{}, top+"/project"); err == nil {
		t.Error("what was a link for a moment is the project")
	}
}

// flickers has links where the host has directories: each has gone when it is read.
type flickers struct{ host.FS }

func (flickers) Lstat(p string) (host.Stat, error) {
	st, err := host.FS{}.Lstat(p)
	if path.Base(p) == "project" {
		st.Type = host.Link
	}
	return st, err
}

// TestCheckLinks: what settings name is not granted by way of a link in a place that a run can write, and what somebody
// names for this run not unless that grants no more. A link elsewhere is followed.
func TestCheckLinks(t *testing.T) {
	top, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{os.MkdirAll(top+"/project/sub", 0o755), os.MkdirAll(top+"/other", 0o755),
		os.Symlink("../other", top+"/project/out"), os.Symlink("sub", top+"/project/in"),
		os.Symlink("project", top+"/mine")} {
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		name         string
		settings, me bool
	}{{"/project/sub", true, true}, {"/project/out", false, false}, {"/project/in", false, true}, {"/mine", true, true},
		{"/mine/sub", true, true}, {"/mine/out", false, false}, {"/gone", true, true}, {"/project/out/gone", false, false}} {
		for _, mode := range []planner.Mode{planner.Read, planner.Write, planner.Overlay} {
			for _, asked := range []planner.Mode{planner.Write, planner.Overlay, planner.Read} { // an earlier run could write
				in := &planner.Input{FS: host.NewCache(nil), Project: top + "/project", Grants: []planner.Grant{
					{Path: top + "/project", Mode: asked}, {Path: top + c.name, Mode: mode, Why: "settings"}}}
				named := *in
				named.Grants = []planner.Grant{in.Grants[0], {Path: top + c.name, Mode: mode, Explicit: true, Why: "--ro"}}
				if err := checkLinks(in); err != nil || (len(in.Grants) == 2) != c.settings || c.settings == (len(in.Losses) == 1) {
					t.Errorf("%s, %s: %v, %+v, losses %+v", c.name, mode, err, in.Grants, in.Losses)
				}
				if err := checkLinks(&named); (err == nil) != c.me || len(named.Grants) != 2 {
					t.Errorf("%s, %s, named: %v, %+v", c.name, mode, err, named.Grants)
				}
			}
		}
	}
	ro := &planner.Input{FS: host.NewCache(nil), Grants: []planner.Grant{{Path: top + "/project", Mode: planner.Read},
		{Path: top + "/project/out", Mode: planner.Read}}}
	if err := checkLinks(ro); err != nil || len(ro.Grants) != 2 {
		t.Errorf("nobody inside could have made the link: %+v", ro.Losses)
	}
}
