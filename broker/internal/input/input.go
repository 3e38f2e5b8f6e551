package input

import (
	"cmp"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/changes"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// Run is one attempt to run something, as far as the planner's input follows from it.
type Run struct {
	*request.Request
	Argv   []string // the program: what was typed, or a shell
	Mode   string   // that of the settings
	Engine string   // of a dynamic session, see gate
	Idle   bool     // there is no program
	Helper bool     // another program builds the sandbox, which is Bubblewrap where that is not nil
	// InPlace: Landlock and the filter alone hold; Asks: though somebody wanted to be asked
	InPlace, Asks bool
	VM            bool // the program runs in a virtual machine
	Bubblewrap    *planner.Bubblewrap

	Env  []string
	Std  [3]*os.File
	Warn func(string)
}

// begin notes what follows from the request without a look at the host.
func (r *Run) begin(s request.Settings, facts host.Facts) (*planner.Input, error) {
	in := &planner.Input{Argv: r.Argv, Facts: facts, FS: host.NewCache(facts.Foreign),
		AsPID1: r.AsPID1, InPlace: r.InPlace,
		Hostname: cmp.Or(r.Hostname, s.Sandbox.Hostname),
		Idle:     r.Idle,
		Grants:   make([]planner.Grant, 0, 64), Hides: make([]planner.Hide, 0, 128),
		TimeOffset: int64(r.TimeOffset.Seconds()), MapRoot: !s.Sandbox.NonRootUser, NoSymFollow: s.FS.NoSymFollow,
		NoLoopback: !s.Network.Loopback, LinkableBeside: r.LinkableBeside()}
	if len(in.Hostname) > 63 || strings.ContainsAny(in.Hostname, "/\n\x00") {
		return nil, option.Wrong("--hostname "+quoting.Quote(in.Hostname)+
			" is not a host name of at most 63 characters", "")
	}
	return in, nil
}

// environment sets what CMD has for variables, and says which it does not get. PATH among them decides what a server's
// command is.
func (r *Run) environment(s request.Settings, in *planner.Input, facts host.Facts) error {
	in.Env = request.Environment(r.Env, r.Request, s, facts)
	for _, name := range r.Request.Unset(r.Env) {
		r.Warn(request.NotSet(name))
	}
	for _, name := range r.Request.Withheld(r.Env, s.Env) {
		r.Warn(request.NotPassed(name))
	}
	return r.CheckServer(s, in)
}

// view collects which files are shown and which are not.
func (r *Run) view(s request.Settings, in *planner.Input) error {
	if err := r.project(s, in); err != nil {
		return err
	}
	if err := r.places(s, in); err != nil {
		return err
	}
	without, err := r.keepClosed(s, in)
	if err != nil {
		return err
	}
	in.Gate = servesRoot(r.Engine)
	if err := r.carryRules(s, in, without, r.Mode != "dynamic"); err != nil {
		return err
	}
	r.shells(s, in)
	own(s.Vars, in)
	secretsOfSbx(s.Vars, in)
	r.hideRuntime(in)
	if r.OnlyReads() {
		readProject(in)
	}
	return nil
}

// places collects what profile, settings and options show and hide.
func (r *Run) places(s request.Settings, in *planner.Input) error {
	if err := r.grants(s, in); err != nil {
		return err
	}
	if err := r.hides(s, in); err != nil {
		return err
	}
	if err := checkLinks(in); err != nil {
		return err
	}
	r.caches(s, in)
	hideNow(in)
	return nil
}

// hideNow leaves out what files and profiles show of what an option of this run hides: another option alone does that,
// or the choice of the project. In what those show every entry counts, as it may make less of a place. What is empty
// shows nothing.
func hideNow(in *planner.Input) {
	var hides []string
	for _, h := range in.Hides {
		if byOption(h) {
			hides = append(hides, path.Clean(h.Path))
		}
	}
	if len(hides) == 0 {
		return
	}
	chosen := []string{in.Project, in.GitDir}
	for _, g := range in.Grants {
		if g.Explicit {
			chosen = append(chosen, path.Clean(g.Path), host.LeadsTo(in.FS, g.Path))
		}
	}
	gone := func(p string) bool {
		return slices.ContainsFunc(hides, func(top string) bool {
			return host.Within(p, top) && !slices.ContainsFunc(chosen, func(c string) bool {
				return c != top && host.Within(p, c) && host.Within(c, top)
			})
		})
	}
	in.Grants = slices.DeleteFunc(in.Grants, func(g planner.Grant) bool {
		holds := in.Project != "" && host.Within(in.Project, g.Path)
		return !g.Explicit && !g.Own && !holds && g.Mode != planner.Scratch &&
			(gone(path.Clean(g.Path)) || gone(host.LeadsTo(in.FS, g.Path)))
	})
}

// readProject takes away what may be written of the project, whoever has granted it.
func readProject(in *planner.Input) {
	for i := range in.Grants {
		g := &in.Grants[i]
		canon, _, _, err := host.Resolve(in.FS, g.Path)
		if g.Mode == planner.Write && (err != nil || host.Within(canon, in.Project) || canon == in.GitDir) {
			g.Mode = planner.Read
		}
	}
}

// Shown is the part of the planner's input that says what is hidden and what is guarded of trees that are read and
// written, for whoever mounts them by himself.
func (r *Run) Shown(s request.Settings, facts host.Facts, read, write []string) (*planner.Input, error) {
	in, err := r.begin(s, facts)
	if err != nil {
		return nil, err
	}
	for _, p := range slices.Concat(read, write, []string{r.ProjectRoot(facts)}) {
		facts.Foreign.Name(p)
	}
	for _, p := range read {
		g := planner.Grant{Path: p, Mode: planner.Read, Optional: true, Explicit: true}
		if ofSystem(p) && !host.Within(p, facts.Home) && !host.Within(facts.Home, p) {
			g.Explicit, g.Why = false, planner.ProfileWhy
		}
		in.Grants = append(in.Grants, g)
	}
	for _, p := range write {
		in.Grants = append(in.Grants, planner.Grant{Path: p, Mode: planner.Write, Optional: true, Explicit: true})
	}
	if in.Project = r.ProjectRoot(facts); unsuitable(in.Project, facts.Home) != "" {
		in.Project = "" // somebody works in none
	}
	holds := func(p string) bool { return in.Project != "" && host.Within(in.Project, p) }
	if slices.ContainsFunc(read, holds) && !slices.ContainsFunc(write, holds) { // searched also where all of / is shown
		in.Grants = append(in.Grants, planner.Grant{Path: in.Project, Mode: planner.Read, Optional: true, Explicit: true})
	}
	in.GitDir = gitDir(in.FS, in.Project)
	if err = r.hides(s, in); err != nil {
		return nil, err
	}
	if err = r.carryRules(s, in, in, true); err != nil {
		return nil, err
	}
	own(s.Vars, in)
	secretsOfSbx(s.Vars, in)
	r.hideRuntime(in)
	return in, in.Refer(r.Env)
}

// ofSystem says whether p is where packages keep their own, which is not searched for names of secrets.
func ofSystem(p string) bool {
	return p == "/" || slices.ContainsFunc([]string{"/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/etc",
		"/opt", "/nix", "/snap", "/boot", "/var/lib", "/var/cache"},
		func(top string) bool { return host.Within(p, top) })
}

// unsuitable says why dir cannot be made writable as a whole, or "".
func unsuitable(dir, home string) string {
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

// grants collects what the profile, the files and the command line show, in this order.
func (r *Run) grants(s request.Settings, in *planner.Input) error {
	p, base := s.Profile, planner.ProfileWhy+s.Profile.Name
	add := func(list []string, mode planner.Mode, why string, optional bool) error {
		for _, e := range list {
			name, opt := pathname.SplitOptional(e)
			if ownPlace(name) {
				continue // the sandbox has these anyway
			}
			g := planner.Grant{Path: name, Mode: mode, Optional: opt || optional, Why: why}
			if mode == planner.Write && name == in.Project {
				if why := unsuitable(name, in.Facts.Home); why != "" {
					return &planner.Refusal{What: "the project directory would be " + why,
						Hint: "cd into a project, or pass --workdir DIR"}
				}
				if r.Ephemeral {
					g.Mode, g.Why = planner.Overlay, "--ephemeral"
				}
			}
			if why != base {
				in.Facts.Foreign.Name(name)
			}
			if why := s.LeadsInto(g, in.FS); why != "" {
				in.Losses = append(in.Losses, planner.Loss{What: quoting.Quote(name) + " (" + g.Why + ")", Why: why})
				continue
			}
			in.Grants = append(in.Grants, g)
		}
		return nil
	}
	orProfile := func(own, prof []string, key string) ([]string, string) {
		if own != nil {
			return own, s.Origin(key)
		}
		return prof, base
	}
	writable, wfrom := orProfile(s.FS.Writable, p.Writable, "fs.writable")
	overlay, ofrom := orProfile(s.FS.Overlay, p.Overlay, "fs.overlay")
	tmpfs, tfrom := orProfile(s.FS.Tmpfs, p.Tmpfs, "fs.tmpfs")
	for _, x := range []struct {
		list []string
		mode planner.Mode
		why  string
		opt  bool
	}{{p.ReadOnly, planner.Read, base, true}, {s.FS.ReadOnly, planner.Read, s.Origin("fs.read_only"), false},
		{overlay, planner.Overlay, ofrom, false}, {tmpfs, planner.Scratch, tfrom, false}, {writable, planner.Write, wfrom,
			false}} {
		if err := add(x.list, x.mode, x.why, x.opt); err != nil {
			return err
		}
	}
	if dir := gitDir(in.FS, in.Project); dir != "" {
		in.GitDir = dir
		g := planner.Grant{Path: dir, Mode: planner.Write, Why: changes.Repository}
		if r.Ephemeral {
			g.Mode = planner.Overlay
		}
		in.Grants = append(in.Grants, g)
	}
	if err := r.requestGrants(in); err != nil {
		return err
	}
	r.warnKeep(in)
	return nil
}

func (r *Run) warnKeep(in *planner.Input) {
	if r.Keep && !slices.ContainsFunc(in.Grants, func(g planner.Grant) bool { return g.Mode == planner.Overlay }) {
		r.Warn(keepsNothing)
	}
}

const keepsNothing = "--keep: no changes are held back here, so there are none to look at or to apply afterwards: " +
	"--ephemeral holds back those to the project"

func (r *Run) requestGrants(in *planner.Input) error {
	home, cwd := in.Facts.Home, in.Facts.Cwd
	for _, o := range r.Paths {
		p, optional, err := o.Expand(home, cwd, in.Project)
		if err != nil {
			return fmt.Errorf("%s: %w", o.Flag, err)
		}
		in.Facts.Foreign.Name(p)
		if o.Mode == planner.Write {
			if canon, _, _, err := host.Resolve(in.FS, p); err == nil && canon != "/" {
				if why := unsuitable(canon, home); why != "" {
					return &planner.Refusal{What: fmt.Sprintf("%s %s is %s", o.Flag, quoting.Quote(o.Path), why),
						Hint: "name the directories below it that the program should write"}
				}
			}
		}
		optional = optional || o.Make && r.DryRun // which makes nothing
		in.Grants = append(in.Grants, planner.Grant{Path: p, Mode: o.Mode, Optional: optional, Explicit: true, Why: o.Flag})
	}
	return nil
}

// hides collects what does not exist inside, whatever is granted around it.
func (r *Run) hides(s request.Settings, in *planner.Input) error {
	if in.Facts.Home != "" {
		_, _ = in.FS.ReadDir(in.Facts.Home) // most secrets do not exist: one listing says so for all
	}
	if in.Facts.Account != "" {
		_, _ = in.FS.ReadDir(in.Facts.Account)
	}
	for _, x := range policy.Secrets() {
		if x.Kind != policy.KindSocket {
			hide(in, x.Pattern, true, x.Reason)
		}
	}
	for _, x := range policy.Places() { // below /usr a name that is not there would have it shown part by part
		named := func(g planner.Grant) bool { return g.Explicit && path.Clean(g.Path) == x.Pattern }
		if _, err := in.FS.Lstat(x.Pattern); err == nil && !slices.ContainsFunc(in.Grants, named) {
			hide(in, x.Pattern, false, x.Reason)
		}
	}
	r.agentPlaces(s, in)
	for _, x := range []struct {
		list   []string
		secret bool
		why    string
	}{{s.Profile.Secrets, true, "profile " + s.Profile.Name}, {s.FS.Secrets, true, s.Origin("fs.secrets")},
		{s.Profile.Hidden, false, "profile " + s.Profile.Name}, {s.FS.Hidden, false, s.Origin("fs.hidden")}} {
		for _, h := range x.list {
			hide(in, h, x.secret, x.why)
		}
	}
	for _, c := range s.Sources() { // also of those that the run may not use
		in.Hides = append(in.Hides, planner.Hide{Path: c.FromFile, Secret: true, Why: c.SourceReason()})
	}
	return r.requestHides(in)
}

// requestHides collects what options hide: a path, or what a wildcard finds where nothing has that very name.
func (r *Run) requestHides(in *planner.Input) error {
	for _, l := range []struct {
		list   []string
		secret bool
		flag   string
	}{{r.Hide, false, "--hide"}, {r.Secret, true, "--secret"}} {
		for _, h := range l.list {
			p, err := option.ExpandPath(h, in.Facts.Home, in.Facts.Cwd, in.Project)
			if err != nil {
				return fmt.Errorf("%s: %w", l.flag, err)
			}
			list, ok := []planner.Hide{{Path: p, Secret: l.secret, Why: l.flag}}, true
			if _, err := in.FS.Lstat(path.Clean(p)); err != nil {
				list, ok = request.ExpandHide(in.FS, p, l.secret, l.flag)
			}
			if !ok || len(list) == 0 {
				return &planner.Refusal{What: l.flag + " " + quoting.Quote(h) + " would hide nothing",
					Hint: "a wildcard finds what is there when the run begins, and ** stands in the last part of a path"}
			}
			in.Hides = append(in.Hides, list...)
		}
	}
	return nil
}

// hide adds what a pattern of a profile or a file hides.
func hide(in *planner.Input, pattern string, secret bool, why string) {
	p := pattern
	switch {
	case strings.HasPrefix(p, "~/") || p == "~":
		if in.Facts.Account != "" { // whatever $HOME says, the keys lie there too
			hide(in, in.Facts.Account+p[1:], secret, why)
		}
		if in.Facts.Home == "" {
			return
		}
		p = in.Facts.Home + p[1:]
	case strings.HasPrefix(p, "$PROJECT"):
		p = in.Project + p[len("$PROJECT"):]
	}
	if list, ok := request.ExpandHide(in.FS, p, secret, why); ok {
		in.Hides = append(in.Hides, list...)
	} else {
		in.Losses = append(in.Losses, planner.Loss{What: "hiding " + quoting.Quote(pattern),
			Why: request.Unexpanded})
	}
}

// Assign gives the input its session.
func Assign(in *planner.Input, sid, dir string) {
	in.Session, in.SessionDir = sid, dir
	if in.Hostname == "" {
		in.Hostname = "sbx-" + sid
	}
	if i := slices.Index(in.Env, request.NoSID); i >= 0 {
		in.Env[i] += sid
	}
}
