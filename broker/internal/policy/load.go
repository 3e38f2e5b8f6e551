package policy

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/nearest"
	"sbx.example/sbx/broker/internal/policy/ownfile"
	"sbx.example/sbx/broker/internal/policy/trust"
)

// Sources says where files may be. An empty directory means that the scope has none.
type Sources struct {
	OrgDir     string // /etc/sbx
	OrgUID     int    // owner of OrgDir's files: 0 but in tests
	UserDir    string // $XDG_CONFIG_HOME/sbx
	ProjectDir string // project root; its files are in .sbx
	TrustDir   string // $XDG_STATE_HOME/sbx
	UID        int
	Vars       Vars
}

// Layer is one config file as read: its settings in order of their keys.
type Layer struct {
	Scope       Scope
	File        string
	Settings    []Setting
	Profiles    map[string]Profile
	Servers     map[string]Server
	Credentials map[string]Credential
	Endpoints   map[string]Endpoint
	Tools       map[string]Tool
	Final       []string // keys or sections the org has locked
	FinalAt     []Origin // where each of them stands
}

// Notice is something a human should be told once: a value that was ignored, and why.
type Notice struct {
	Kind   string // see the Notice constants
	Key    string
	Origin Origin
	What   string
}

// Kinds of notice.
const (
	NoticeWidening = "widening-ignored"
	NoticeLocked   = "locked-by-org"
	NoticeForeign  = "foreign-file-ignored"
	NoticeWideHost = "wide-host-pattern"
	NoticeChanged  = "changed-since-trusted"
)

func (n Notice) String() string {
	if n.Key == "" {
		return fmt.Sprintf("%s: %s", n.Origin, n.What)
	}
	return fmt.Sprintf("%s: %s: %s", n.Origin, n.Key, n.What)
}

// Layers is everything that was read, before it is merged.
type Layers struct {
	Org, Project, User *Layer
	Trusted            bool       // the project's files are the very bytes the user has pinned
	Pins               trust.Pins // what `sbx policy trust` would pin now
	Pinned             [2][]byte  // the bytes that Pins are of: config.toml and policy.toml of the project
	Policy             Store
	Notices            []Notice
	Vars               Vars
}

// Load reads all files once. Any file that exists and cannot be relied upon is an error, except a project's file of
// another user, which is left out and reported.
func Load(s Sources) (Layers, error) {
	l := Layers{Vars: s.Vars}
	l.Vars.Narrow = false
	org, err := s.readOrg()
	if err != nil {
		return l, err
	}
	user, err := s.readUser()
	if err != nil {
		return l, err
	}
	project, err := s.readProject(&l)
	if err != nil {
		return l, err
	}
	for i, f := range project {
		if f != nil {
			l.Pinned[i] = f.data
		}
	}
	l.Pins = trust.PinsOf(l.Pinned)
	if s.ProjectDir != "" && s.TrustDir != "" && (project[0] != nil || project[1] != nil) {
		t, err := trust.Load(s.TrustDir, s.UID)
		if err != nil {
			return l, err
		}
		l.Trusted = t.Trusted(s.ProjectDir, l.Pins)
		if _, once := t.Pinned(s.ProjectDir); once && !l.Trusted {
			l.Notices = append(l.Notices, Notice{Kind: NoticeChanged, Origin: Origin{ScopeProject, filepath.Join(s.ProjectDir,
				".sbx"), 0},
				What: "it is not what you trusted any more, so it can only narrow; `sbx policy trust` shows what changed"})
		}
	}
	narrow := l.Vars
	narrow.Narrow = true
	for _, step := range []struct {
		files [2]*source
		layer **Layer
		vars  Vars
	}{{org, &l.Org, l.Vars}, {project, &l.Project, narrow}, {user, &l.User, l.Vars}} {
		if step.files[0] != nil {
			if *step.layer, err = parseConfig(step.files[0], step.vars); err != nil {
				return l, err
			}
		}
		if step.files[1] != nil {
			rules, err := parsePolicy(step.files[1], step.vars)
			if err != nil {
				return l, err
			}
			l.Policy.add(step.files[1].scope, rules)
		}
	}
	l.Policy.ProjectTrusted = l.Trusted
	l.Notices = append(l.Notices, l.Policy.notices()...)
	return l, nil
}

// AskFor says whether the organisation's or the user's file switches one of some keys on, be they files that can be
// relied upon or not: it is for keys that take away. Where nobody does, nothing more has to be read, and in a user
// namespace in which files seem to be nobody's those who ask for nothing are not refused.
func (s Sources) AskFor(keys ...string) (bool, error) {
	s.Vars.Project = "/" // of which nothing is read
	for _, f := range [...]struct {
		dir   string
		scope Scope
	}{{s.OrgDir, ScopeOrg}, {s.UserDir, ScopeUser}} {
		if f.dir == "" {
			continue
		}
		path := filepath.Join(f.dir, fileNames()[0])
		data, err := os.ReadFile(path)
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return false, fmt.Errorf("loading %s: %w", path, err)
		}
		l, err := ParseConfig(data, path, f.scope, s.Vars)
		if err != nil {
			return false, err
		}
		for _, x := range l.Settings {
			if slices.Contains(keys, x.Key) && x.Value == true {
				return true, nil
			}
		}
	}
	return false, nil
}

// WithTrust returns the layers as they would be if the project's files were pinned, or not: to show the difference.
func (l Layers) WithTrust(trusted bool) Layers {
	l.Trusted, l.Policy.ProjectTrusted = trusted, trusted
	return l
}

// WithProject returns the layers with other project files, trusted: what was pinned before.
func (l Layers) WithProject(files [2][]byte, dir string) (Layers, error) {
	var err error
	l.Project = nil
	paths := [2]string{}
	for i, name := range fileNames() {
		paths[i] = filepath.Join(dir, ".sbx", name)
	}
	if files[0] != nil {
		if l.Project, err = ParseConfig(files[0], paths[0], ScopeProject, l.Vars); err != nil {
			return l, err
		}
	}
	rules, err := ParseRules(files[1], paths[1], ScopeProject, l.Vars)
	if err != nil {
		return l, err
	}
	l.Policy = l.Policy.Replace(ScopeProject, rules)
	return l.WithTrust(true), nil
}

func fileNames() [2]string { return [2]string{"config.toml", "policy.toml"} }

func (s Sources) readOrg() (out [2]*source, err error) {
	if s.OrgDir == "" {
		return out, nil
	}
	out, err = readBoth(ScopeOrg, s.OrgDir, s.OrgUID, ownfile.Org)
	if err != nil {
		return out, err
	}
	// An administrator who relies on the file can have its absence noticed.
	if out[0] == nil {
		if _, err := os.Lstat(filepath.Join(s.OrgDir, "required")); err == nil {
			return out, fmt.Errorf("loading org file %s: it is missing, and %s says that it is required",
				filepath.Join(s.OrgDir, "config.toml"), filepath.Join(s.OrgDir, "required"))
		}
	}
	return out, nil
}

func (s Sources) readUser() (out [2]*source, err error) {
	if s.UserDir == "" {
		return out, nil
	}
	return readBoth(ScopeUser, s.UserDir, s.UID, ownfile.User)
}

// readBoth reads the files of a directory that are trusted as they are, as open finds them.
func readBoth(scope Scope, dir string, uid int, open func(dir, name string, uid int) (*os.File, error)) (out [2]*source,
	err error) {
	for i, name := range fileNames() {
		out[i], err = readSource(scope, filepath.Join(dir, name), func() (*os.File, error) { return open(dir, name, uid) })
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

func (s Sources) readProject(l *Layers) (out [2]*source, err error) {
	if s.ProjectDir == "" {
		return out, nil
	}
	for i, name := range fileNames() {
		rel := ".sbx/" + name
		path := filepath.Join(s.ProjectDir, rel)
		if absent(s.ProjectDir, rel) {
			continue
		}
		out[i], err = readTimed(ScopeProject, path, func() (*os.File, error) {
			return ownfile.Project(s.ProjectDir, rel, s.UID)
		})
		if errors.Is(err, ownfile.ErrForeign) {
			l.Notices = append(l.Notices, Notice{Kind: NoticeForeign, Origin: Origin{ScopeProject, path, 0}, What: "ignored: " +
				ownfile.ErrForeign.Error()})
			continue
		}
		if err != nil {
			return out, err
		}
	}
	return out, nil
}

// parseConfig turns a config.toml into typed settings.
func parseConfig(src *source, vars Vars) (*Layer, error) {
	d, err := parse(src)
	if err != nil {
		return nil, err
	}
	l := &Layer{Scope: src.scope, File: src.path}
	p := configParser{document: d, layer: l, rows: keyTable(), vars: vars}
	for _, name := range keysOf(d.tree) {
		if err := p.top(name, d.tree[name]); err != nil {
			return nil, err
		}
	}
	return l, nil
}

type configParser struct {
	*document
	layer *Layer
	rows  []key
	vars  Vars
}

func (p *configParser) top(name string, v any) error {
	switch name {
	case "version":
		if v != int64(1) {
			line, _ := p.lineOf(name)
			return p.errAt(line, "version must be 1")
		}
		return nil
	case "final":
		return p.final(v)
	case "profiles":
		return p.profiles(v)
	case "mcp":
		return p.servers(v)
	case "credential":
		return p.credentials(v)
	case "endpoint":
		return p.endpoints(v)
	case "tool":
		return p.tools(v)
	case "store":
		return p.stores(v)
	}
	sections := []string{"version", "final", "profiles", "mcp", "credential", "endpoint", "tool", "store"}
	for _, k := range p.rows {
		section, _, _ := strings.Cut(k.name, ".")
		if section == name {
			return p.section(name, v)
		}
		if section != sections[len(sections)-1] {
			sections = append(sections, section)
		}
	}
	line, _ := p.lineOf(name)
	if hit := p.misplaced(name); hit != "" {
		return p.errAt(line, "unknown key %s; did you mean %s?", excerpt.Quote(name), hit)
	}
	return p.unknown(line, name, sections)
}

// misplaced finds a key that only lacks its section.
func (p *configParser) misplaced(name string) string {
	end := "." + name
	for _, k := range p.rows {
		if strings.HasSuffix(k.name, end) {
			return k.name
		}
	}
	return ""
}

func (p *configParser) unknown(line int, name string, known []string) error {
	if n := nearest.Name(name, known); n != "" {
		return p.errAt(line, "unknown key %s; did you mean %s?", excerpt.Quote(name), n)
	}
	return p.errAt(line, "unknown key %s", excerpt.Quote(name))
}

func (p *configParser) section(section string, v any) error {
	line, _ := p.lineOf(section)
	m, ok := v.(map[string]any)
	if !ok {
		return p.errAt(line, "%s must be a table: [%s]", section, section)
	}
	for _, name := range keysOf(m) {
		full := section + "." + name
		k := findKey(p.rows, full)
		line, elems := p.lineOf(full)
		if k == nil {
			var known []string
			for _, r := range p.rows {
				if s, n, _ := strings.Cut(r.name, "."); s == section {
					known = append(known, n)
				}
			}
			return p.unknown(line, full, prefixed(section, known))
		}
		val, err := k.convert(m[name], p.vars)
		if err != nil {
			return p.valueErr(full, line, elems, err)
		}
		set := Setting{Key: full, Value: val, Origin: p.origin(line)}
		for _, e := range elems {
			set.Elems = append(set.Elems, p.origin(e))
		}
		p.layer.Settings = append(p.layer.Settings, set)
	}
	return nil
}

func prefixed(section string, names []string) []string {
	for i, n := range names {
		names[i] = section + "." + n
	}
	return names
}

func (p *configParser) valueErr(name string, line int, elems []int, err error) error {
	var e *elemError
	if errors.As(err, &e) && e.index < len(elems) {
		line = elems[e.index]
	}
	return p.errAt(line, "%s: %v", name, err)
}

// final is the org's list of locked keys and sections.
func (p *configParser) final(v any) error {
	line, elems := p.lineOf("final")
	if p.src.scope != ScopeOrg {
		return p.errAt(line, "final: only the org file may lock keys")
	}
	list, ok := v.([]any)
	if !ok {
		return p.errAt(line, "final: want a list of keys or sections, not %s", TypeName(v))
	}
	for i, e := range list {
		name, _ := e.(string)
		if len(lockedBy(p.rows, name)) == 0 {
			if i < len(elems) {
				line = elems[i]
			}
			return p.unknown(line, fmt.Sprint(e), Keys())
		}
		at := line
		if i < len(elems) {
			at = elems[i]
		}
		p.layer.Final, p.layer.FinalAt = append(p.layer.Final, name), append(p.layer.FinalAt, p.origin(at))
	}
	return nil
}

// lockedBy lists the keys a name in final stands for.
func lockedBy(rows []key, name string) []string {
	var out []string
	for _, k := range rows {
		if k.name == name || strings.HasPrefix(k.name, name+".") && name != "" {
			out = append(out, k.name)
		}
	}
	return out
}

// maxProfiles keeps the search for lines cheap.
const maxProfiles = 64

func (p *configParser) profiles(v any) error {
	p.layer.Profiles = map[string]Profile{}
	return p.tables("profiles", maxProfiles, v, func(name, full string, line int, table map[string]any) error {
		if _, taken := builtin(name); taken {
			return p.errAt(line, "profile %s is built in; choose another name and let it extend that one", name)
		}
		prof := Profile{Name: name}
		if err := p.named(full, table, profileKeys(), prof.put); err != nil {
			return err
		}
		p.layer.Profiles[name] = prof
		return nil
	})
}
