package request

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/agentprofile"
	"sbx.example/sbx/broker/internal/guard"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/quoting"
)

// Agent is the profile of the agent, MCP server or tool that a run is for, as it holds here: rules and settings like
// those of files and options, weaker than any file's.
type Agent struct {
	*agentprofile.Profile
	Rules  []policy.Rule
	Guard  []guard.Referred   // what is guarded in what it writes: the first that names a place decides
	State  []string           // its own folders, which are made before it runs
	Layers []string           // folders in which the run has a layer of its own; made as well
	Apart  []string           // of these, those that hold a login that is shown: they are not mounted as a whole
	Login  []pathname.Pattern // what the agent's own programs alone may have
	Unmade []string           // login files in its folders that do not exist yet
	Hidden []policy.Hiding    // login files that nobody has said yes to
	Asks   []string           // these, as paths; nobody has said no either
	Unkept []string           // credentials that it takes and that the person does not keep
	Shown  []string           // secret files that the profile shows, as paths
}

// findAgent reads the profile that --agent names, or with agents.auto that of the program.
func (r *Request) findAgent(s Settings, src policy.Sources) (*agentprofile.Profile, error) {
	switch {
	case r.isServer(): // one that nobody grants anything is a server without grants
		server := r.serverOf(s)
		if server.Name = r.Server; !server.Has(r.Argv) {
			return nil, fmt.Errorf("mcp.%s (%s) is for the command %s, and this is another", r.Server, server.Origin,
				strings.Join(quoting.All(server.Command), " "))
		}
		return agentprofile.OfServer(server)
	case r.tool != "":
		return agentprofile.OfTool(s.Tools[r.tool])
	case r.Agent != "":
		return agentprofile.Load(r.Agent, src)
	case s.Agents.Auto && len(r.Argv) > 0:
		return agentprofile.Of(path.Base(r.Argv[0]), src)
	}
	return nil, nil
}

// withAgent merges the settings again with what the agent needs.
func (r *Request) withAgent(s *Settings, env []string, src policy.Sources, flags []policy.Setting) error {
	p, err := r.findAgent(*s, src)
	if err != nil {
		return &planner.Refusal{What: err.Error()}
	}
	if p == nil {
		return nil
	}
	a := &Agent{Profile: p}
	if err = a.files(s, r, env, src.Vars); err != nil {
		return &planner.Refusal{What: err.Error()}
	}
	own, err := a.settings(*s)
	if err != nil {
		return &planner.Refusal{What: err.Error()}
	}
	s.Layers.Policy = s.Layers.Policy.With(policy.ScopeDefault, a.Rules...)
	if s.Effective, err = policy.Merge(s.Layers, append(own, flags...)); err != nil {
		return &planner.Refusal{What: err.Error()}
	}
	s.Agent = a
	return nil
}

// settings are what the profile says beside rules. Hosts narrow nothing that is open.
func (a *Agent) settings(s Settings) (out []policy.Setting, err error) {
	add := func(key string, value any) {
		if err == nil {
			var x policy.Setting
			x, err = policy.Flag(key, a.Origin(), value, s.Vars)
			out = append(out, x)
		}
	}
	if reach, _ := s.Reach(false); reach != policy.AllHosts && len(a.Hosts) > 0 {
		add("network.hosts", a.Hosts)
	}
	if len(a.Env) > 0 {
		add("env.pass", a.Env)
	}
	if with := a.credentials(s); len(with) > 0 {
		add("network.with", with)
	}
	_, locked := s.Locked[nestedKey]
	if a.Profile.Nests(s.Vars.Home, settingsFile) && len(s.Origins[nestedKey]) == 0 && !locked {
		add(nestedKey, true)
	}
	return out, err
}

// credentials are those that the agent is granted, of what it takes: what the person keeps. None is without a network,
// and one of an endpoint of this run goes that way alone: elsewhere nothing would count what is used.
func (a *Agent) credentials(s Settings) (with []string) {
	for _, name := range a.With {
		_, kept := s.Credentials[name]
		switch {
		case !kept:
			a.Unkept = append(a.Unkept, name)
		case a.Section != "" || s.Network.Mode != "none" && !slices.ContainsFunc(s.Network.Endpoints, func(e string) bool {
			return s.Endpoints[e].Credential == name
		}):
			with = append(with, name)
		}
	}
	return with
}

// settingsFile reads a file of an agent's settings, which is small; nil if there is none.
func settingsFile(file string) []byte {
	const most = 1 << 20
	text, err := host.FS{}.Peek(file, 0, most)
	if err != nil {
		return nil
	}
	return text
}

// nestedKey lets programs make sandboxes of their own.
const nestedKey = "features.nested"

// Nests says whether that is on because the profile says so, and nobody else.
func (a *Agent) Nests(s Settings) bool {
	o := s.Origins[nestedKey]
	return a != nil && len(o) == 1 && o[0].File == a.Origin()
}

// files makes the rules about paths, and settles what becomes of the login.
func (a *Agent) files(s *Settings, r *Request, env []string, vars policy.Vars) error {
	for _, p := range a.Read {
		if err := a.allow(p, policy.Read, vars); err != nil {
			return err
		}
	}
	for _, p := range a.Reveal {
		if err := a.rule(pathname.Escape(p), policy.Read, policy.Reveal, vars); err != nil {
			return err
		}
		a.Shown = append(a.Shown, a.Rules[len(a.Rules)-1].Path().Place())
	}
	for _, p := range a.programFiles(r.Argv, env, vars) {
		if err := a.allow(p, policy.Read, policy.Vars{}); err != nil {
			return err
		}
	}
	written := slices.DeleteFunc(slices.Clone(a.Write), func(p string) bool {
		_, _, in := a.InFolder(p) // the folder is written as a whole, and guarded but for that
		return in
	})
	for _, dir := range a.Folder {
		written = append(written, dir+"/**")
	}
	for _, p := range written {
		if err := a.writable(p, vars); err != nil {
			return err
		}
		if pattern, err := pathname.ParsePattern(p, vars); err == nil {
			if dir, ok := pattern.Tree(); ok {
				a.State = append(a.State, dir)
			}
		}
	}
	for _, p := range a.Layer {
		pattern, err := pathname.ParsePattern(p, vars)
		if err != nil {
			return err
		}
		a.Layers = append(a.Layers, pattern.Place())
	}
	if err := a.guard(vars); err != nil {
		return err
	}
	if err := a.login(s, vars); err != nil {
		return err
	}
	return a.guardApart()
}

// IsApart says whether a folder is not mounted as a whole, because of the login in it.
func (a *Agent) IsApart(dir string) bool { return a != nil && slices.Contains(a.Apart, dir) }

// login settles what becomes of the agent's own login. One that exists is shown where somebody has said yes. Where none
// exists there is nothing to show, and what the agent makes is its own.
func (a *Agent) login(s *Settings, vars policy.Vars) error {
	said := slices.Contains(s.Agents.Login, a.Name)
	for _, p := range a.Profile.Login {
		pattern, err := pathname.ParsePattern(p, vars)
		if err != nil {
			return err
		}
		place := pattern.Place()
		exists := host.Exists(place)
		if !exists && slices.ContainsFunc(a.State, func(dir string) bool { return host.Within(place, dir) }) {
			a.Unmade = append(a.Unmade, place)
			continue
		}
		if !said && exists {
			if err := a.hide(p, vars); err != nil {
				return err
			}
			if !slices.Contains(s.Agents.HideLogin, a.Name) {
				a.Asks = append(a.Asks, place)
			}
			continue
		}
		if err := a.writable(p, vars); err != nil {
			return err
		}
		for _, dir := range a.State {
			if host.Within(place, dir) && place != dir && !slices.Contains(a.Apart, dir) {
				a.Apart = append(a.Apart, dir)
			}
		}
		for _, x := range append(pathname.Beside(p), p) {
			if pattern, err = pathname.ParsePattern(x, vars); err != nil {
				return err
			}
			a.Login = append(a.Login, pattern)
		}
	}
	return nil
}

// hide keeps a login out of sight, and keeps the agent from writing another one over it.
func (a *Agent) hide(p string, vars policy.Vars) error {
	for _, x := range append(pathname.Beside(p), p) {
		pattern, err := pathname.ParsePattern(x, vars)
		if err != nil {
			return err
		}
		a.Hidden = append(a.Hidden, policy.Hiding{Secret: policy.Secret{Kind: policy.KindPath, Pattern: x,
			Reason: "the login of " + a.Name + ", to which nobody has said yes"}, Rule: pattern})
	}
	return nil
}

func (a *Agent) allow(pattern string, access policy.Access, vars policy.Vars) error {
	return a.rule(pattern, access, policy.Allow, vars)
}

func (a *Agent) rule(pattern string, access policy.Access, d policy.Decision, vars policy.Vars) error {
	rule, err := policy.NewRule(policy.Rule{Kind: policy.KindPath, Pattern: pattern, Access: access,
		Decision: d, Origin: policy.Origin{File: a.Origin()}}, vars)
	if err != nil {
		return err
	}
	a.Rules = append(a.Rules, rule)
	return nil
}

// writable allows writing what a pattern names, what is made beside it, and making the directories that lead there.
func (a *Agent) writable(p string, vars policy.Vars) error {
	for _, x := range append(pathname.Beside(p), p) {
		if err := a.allow(x, policy.Write, vars); err != nil {
			return err
		}
	}
	pattern, err := pathname.ParsePattern(p, vars)
	if err != nil {
		return err
	}
	for dir := path.Dir(pattern.Place()); len(dir) > len(vars.Home) && !host.Exists(dir); dir = path.Dir(dir) {
		if err := a.allow(pathname.Escape(dir), policy.Write, policy.Vars{}); err != nil {
			return err
		}
	}
	return nil
}

// programFiles are patterns of the agent's own program where it is installed in the home: the file, the links that lead
// to it, and the packages that it is one of.
func (a *Agent) programFiles(argv, env []string, vars policy.Vars) (out []string) {
	if len(argv) == 0 || !slices.Contains(a.Programs, path.Base(argv[0])) {
		return nil
	}
	file := argv[0]
	for _, dir := range strings.Split(host.Lookup(env, "PATH"), ":") {
		if !strings.Contains(argv[0], "/") && strings.HasPrefix(dir, "/") && host.Exists(dir+"/"+argv[0]) {
			file = path.Join(dir, argv[0])
			break
		}
	}
	if !path.IsAbs(file) {
		return nil
	}
	canon, links, _, err := host.Resolve(host.FS{}, file)
	if err != nil {
		return nil
	}
	places := []string{file, canon}
	for _, l := range links {
		places = append(places, l.Path)
	}
	for _, p := range places {
		if vars.Home == "" || !host.Within(p, vars.Home) || vars.Project != "" && host.Within(p, vars.Project) {
			continue
		}
		if at := strings.Index(p, "/node_modules/"); at > len(vars.Home) {
			out = append(out, pathname.Escape(p[:at]+"/node_modules")+"/**")
		} else {
			out = append(out, pathname.Escape(p))
		}
	}
	return out
}

// Own says whether a program is one of the agent's: by its name, and because nothing inside could have written its
// file. It is no wall between programs of one user: one that may trace the agent, or gives it its libraries, reads what
// the agent reads.
func (a *Agent) Own(in *planner.Input) func(pid int, exe string) bool {
	names := slices.Concat(a.Programs, a.Runs)
	return func(pid int, exe string) bool {
		return slices.ContainsFunc(names, func(n string) bool { return isNamed(path.Base(exe), n) }) && fromHost(in, pid, exe)
	}
}

// MountPoint says whether a program of the agent's own wanted one of the mount points that its sandbox makes in a
// project.
func (a *Agent) MountPoint(in *planner.Input) func(p string, pid int, exe string) bool {
	own := a.Own(in)
	return func(p string, pid int, exe string) bool {
		rel, ok := strings.CutPrefix(p, in.Project+"/")
		return ok && slices.Contains(a.Placeholders, rel) && own(pid, exe)
	}
}

// Runs says whether a process runs a program that a rule names by its path, as fromHost can tell.
func Runs(in *planner.Input) func(pid int, exe, program string) bool {
	return func(pid int, exe, program string) bool { return exe == program && fromHost(in, pid, exe) }
}

// isNamed also takes the versions of an interpreter: python3.12 is python3.
func isNamed(base, name string) bool {
	rest, ok := strings.CutPrefix(base, name)
	return ok && strings.Trim(rest, "0123456789.") == ""
}

// MakeState makes the folders that the agent would make as its first act, so that they are mounted like those of an
// agent that has run before.
func (a *Agent) MakeState() {
	if a == nil {
		return
	}
	for _, dir := range slices.Concat(a.State, a.Layers) {
		_ = os.MkdirAll(dir, 0o700) // one that cannot be made is missing for the agent as well
	}
}

// Losses are what cannot be kept of the login from other programs.
func (a *Agent) Losses(static bool) (out []planner.Loss) {
	if a == nil || len(a.Login) == 0 || !slices.ContainsFunc(a.Login, func(p pathname.Pattern) bool {
		return host.Exists(p.Place())
	}) {
		return nil
	}
	l := planner.Loss{What: "the login of " + a.Name, Price: true}
	switch {
	case static:
		l.Why = "nobody tells programs apart without questions, so every program inside can read it"
	case len(a.Runs) > 0:
		l.Why = "the agent is run by " + strings.Join(a.Runs, " or ") + ", so whatever that runs inside can read it"
	default:
		return nil
	}
	return []planner.Loss{l}
}

// Unread are the start-up files of shells where an agent runs and nobody has said what becomes of them: it looks for
// them with each command, and nobody wants to be asked then.
func (s Settings) Unread() (out []string) {
	if s.Agent == nil || s.FS.ShellFiles != "ask" {
		return nil
	}
	for _, f := range ShellStartup() {
		out = append(out, strings.TrimSuffix(s.Vars.Home+f[1:], "/"))
	}
	return out
}

// Concealed is the list of what does not exist inside: without the login that the agent is shown, and with the one that
// it is not.
func (s Settings) Concealed() []policy.Hiding {
	all := s.Effective.Concealed()
	if s.Agent == nil {
		return all
	}
	out := append([]policy.Hiding{}, s.Agent.Hidden...)
	for _, h := range all {
		if h.Origin != (policy.Origin{}) || h.Kind == policy.KindSocket || !s.Agent.Lifts(h.Place()) {
			out = append(out, h)
		}
	}
	return out
}

// Lifts says whether a path is hidden no more: a login that the agent is shown, or one that it has still to make.
func (a *Agent) Lifts(p string) bool { return a.Shows(p) || a != nil && slices.Contains(a.Unmade, p) }

// Shows says whether a path is a login that the agent is shown.
func (a *Agent) Shows(p string) bool {
	return a != nil && p != "" && slices.ContainsFunc(a.Login, func(x pathname.Pattern) bool { return x.MatchTree(p) })
}
