package cli

import (
	"fmt"
	"path"
	"strings"

	"sbx/broker/internal/host"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/planner"
	"sbx/seccompbpf"
	"sbx/shared/plan"
)

// input turns the request and the facts into what planner.Build takes.
func (t *term) input(r *request, facts host.Facts) (*planner.Input, error) {
	in := &planner.Input{Argv: r.argv, Facts: facts, FS: host.NewCache(), Hostname: r.hostname, AsPID1: r.asPID1, Profile: profileName(r)}
	var prof *planner.Profile
	for _, p := range planner.Profiles() {
		if p.Name == in.Profile {
			prof = &p
		}
	}
	if prof == nil {
		return nil, &planner.Refusal{What: "unknown profile " + quote(in.Profile), Hint: "strict, moderate and permissive are built in"}
	}
	if err := t.project(r, in, prof); err != nil {
		return nil, err
	}
	t.profileGrants(in, prof)
	in.Hides = planner.ExpandSecrets(in.FS, facts.Home, planner.Secrets())
	if err := t.requestGrants(r, in); err != nil {
		return nil, err
	}
	if err := t.caches(r, in, prof); err != nil {
		return nil, err
	}
	var err error
	if in.TmpSize, err = parseSize(r.tmpSize, 1<<30); err != nil {
		return nil, fmt.Errorf("--tmp-size: %w", err)
	}
	if !contains(r.off, "rlimit") {
		in.Limits = limits()
	}
	in.Env = environment(t.env, r, facts)
	if contains(r.off, "env") {
		in.Env = t.env
	}
	in.ShareNet, in.ShareIPC, in.NoLandlock = contains(r.off, "netns"), contains(r.off, "ipcns"), contains(r.off, "landlock")
	if contains(r.off, "secrets") {
		in.Hides = nil
	}
	if contains(r.off, "guard") {
		in.Project = ""
	}
	if contains(r.off, "readonly") {
		for i := range in.Grants {
			if in.Grants[i].Mode == planner.Read {
				in.Grants[i].Mode = planner.Write
			}
		}
	}
	in.TTY = launch.HasTerminal(t.std)
	if in.Stdio, err = launch.Classify(t.std, in.TTY); err != nil {
		return nil, err
	}
	in.Seccomp, err = filter(r)
	return in, err
}

// project finds the directory that the program works in.
func (t *term) project(r *request, in *planner.Input, prof *planner.Profile) error {
	dir := in.Facts.Cwd
	explicit := r.workdir != ""
	if explicit {
		p, err := expandPath(r.workdir, in.Facts.Home, in.Facts.Cwd, "")
		if err != nil {
			return err
		}
		canon, _, st, err := host.Resolve(in.FS, p)
		if err != nil || st.Type != host.Dir {
			return &planner.Refusal{What: "--workdir " + quote(r.workdir) + " is not a directory", Err: err, Hint: "name a directory that exists"}
		}
		dir = canon
	}
	if dir == "" {
		return &planner.Refusal{What: "the working directory does not exist any more or cannot be read", Hint: "cd into a directory, or pass --workdir DIR"}
	}
	in.Dir = dir
	if prof.Project == planner.None {
		return nil
	}
	if unsuitable := t.unsuitable(dir, in.Facts.Home); unsuitable != "" && prof.Project == planner.Write {
		return &planner.Refusal{What: "the project directory would be " + unsuitable, Hint: "cd into a project, or pass --workdir DIR"}
	}
	if ownPlace(dir) {
		return nil
	}
	in.Project = dir
	mode := prof.Project
	if r.ephemeral && mode == planner.Write {
		mode = planner.Overlay
	}
	in.Grants = append(in.Grants, planner.Grant{Path: dir, Mode: mode, Why: "project"})
	return nil
}

// unsuitable says why dir cannot be made writable as a whole, or "".
func (t *term) unsuitable(dir, home string) string {
	switch {
	case dir == "/":
		return "/, the whole machine"
	case dir == home:
		return "the home directory " + plan.Bytes(home).Quote()
	case home != "" && strings.HasPrefix(home, dir+"/"):
		return plan.Bytes(dir).Quote() + ", which contains the home directory"
	}
	return ""
}

// ownPlace says whether dir is one that the sandbox has of its own: /tmp is there, but not the host's.
func ownPlace(dir string) bool {
	for _, p := range []string{"/tmp", "/var/tmp", "/run", "/dev", "/proc", "/sys", "/dev/shm"} {
		if dir == p {
			return true
		}
	}
	return strings.HasPrefix(dir, "/proc/") || strings.HasPrefix(dir, "/sys/") || strings.HasPrefix(dir, "/dev/")
}

func (t *term) profileGrants(in *planner.Input, prof *planner.Profile) {
	for _, p := range prof.Read {
		if strings.HasPrefix(p, "~/") {
			if in.Facts.Home == "" {
				continue
			}
			p = in.Facts.Home + p[1:]
		}
		in.Grants = append(in.Grants, planner.Grant{Path: p, Mode: planner.Read, Optional: true, Why: "profile " + prof.Name})
	}
}

func (t *term) requestGrants(r *request, in *planner.Input) error {
	home, cwd := in.Facts.Home, in.Facts.Cwd
	for _, o := range r.paths {
		name, optional := strings.CutSuffix(o.path, "?")
		p, err := expandPath(name, home, cwd, in.Project)
		if err != nil {
			return fmt.Errorf("%s: %w", o.flag, err)
		}
		if o.mode == planner.Write {
			if canon, _, _, err := host.Resolve(in.FS, p); err == nil && t.unsuitable(canon, home) != "" && canon != "/" {
				return &planner.Refusal{What: fmt.Sprintf("%s %s is %s", o.flag, quote(o.path), t.unsuitable(canon, home)), Hint: "name the directories below it that the program should write"}
			}
		}
		in.Grants = append(in.Grants, planner.Grant{Path: p, Mode: o.mode, Optional: optional, Explicit: true, Why: o.flag})
	}
	for _, h := range r.hide {
		p, err := expandPath(h, home, cwd, in.Project)
		if err != nil {
			return fmt.Errorf("--hide: %w", err)
		}
		in.Hides = append(in.Hides, planner.Hide{Path: p, Why: "--hide"})
	}
	for _, h := range r.secret {
		p, err := expandPath(h, home, cwd, in.Project)
		if err != nil {
			return fmt.Errorf("--secret: %w", err)
		}
		in.Hides = append(in.Hides, planner.Hide{Path: p, Secret: true, Why: "--secret"})
	}
	return nil
}

// caches adds the places where tools keep what they can make again.
func (t *term) caches(r *request, in *planner.Input, prof *planner.Profile) error {
	if !prof.Caches || in.Facts.Home == "" {
		return nil
	}
	mode := planner.Overlay
	switch r.caches {
	case "rw":
		mode = planner.Write
	case "ro":
		mode = planner.Read
	}
	for _, c := range planner.Caches() {
		p, set := "", false
		if c.Var != "" {
			p = host.Lookup(t.env, c.Var)
			set = path.IsAbs(p)
		}
		if !set {
			if c.Path == "" {
				continue
			}
			p = in.Facts.Home + c.Path[1:]
		}
		if set && (t.unsuitable(path.Clean(p), in.Facts.Home) != "" || ownPlace(path.Clean(p))) {
			continue
		}
		if _, err := in.FS.Lstat(p); err != nil && c.Var != "XDG_CACHE_HOME" && !set {
			continue
		}
		in.Grants = append(in.Grants, planner.Grant{Path: p, Mode: mode, Optional: true, Why: "cache"})
	}
	return nil
}

// filter compiles the system-call filter for this machine.
func filter(r *request) (plan.Seccomp, error) {
	if contains(r.off, "seccomp") {
		return plan.Seccomp{Rules: "off", Program: []plan.Insn{{Code: 6, K: uint32(seccompbpf.Allow)}}}, nil
	}
	prog, err := seccompbpf.Compile(seccompbpf.Default(arch, seccompbpf.Toggles{Debug: !r.noDebug}))
	if err != nil {
		return plan.Seccomp{}, fmt.Errorf("compiling the system-call filter: %w", err)
	}
	s := plan.Seccomp{Rules: "default", Program: make([]plan.Insn, len(prog))}
	for i, in := range prog {
		s.Program[i] = plan.Insn(in)
	}
	return s, nil
}
