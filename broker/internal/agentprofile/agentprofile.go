package agentprofile

import (
	"cmp"
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	"github.com/BurntSushi/toml"

	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/nearest"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/policy/tomlscan"
)

// Profile is what one agent, MCP server or tool needs. Paths are patterns as in rules, and name nothing in a project.
type Profile struct {
	Name, File string // File is "" for one that is built in
	Section    string // mcp or tool, of a setting [mcp.NAME] or [tool.NAME]; "": it is an agent's
	About      string
	Programs   []string // names of the agent's own programs: it is found by them, and they alone are shown its login
	Runs       []string // interpreters that run it: login files are shown to all that these run
	Read       []string
	Folder     []string // its own: what Write and Login do not name in them can be read only
	Write      []string
	Guard      []string // in what it writes: settings by which it runs something, also outside of a sandbox
	Layer      []string // each run has a layer of its own there: what it writes is gone afterwards
	Login      []string // its own credential files, and what holds them among other things
	Hosts      []string
	Env        []string // variables that are passed, by name
	With       []string // credentials of the person's that it is granted, where there are such
	Reveal     []string // secret files that it is shown, of a tool
	Nested     bool     // it makes sandboxes of its own, where one of these switches is on; none: always
	NestedIf   []string // "FILE KEY": a file of JSON, and a key of it
	// names in a project that it makes for those to mount on: removed at the end if they are new, empty and not tracked
	Placeholders []string
}

// Origin is how messages, the record and `sbx why` name a profile.
func (p *Profile) Origin() string {
	return cmp.Or(p.Section, "agent") + " " + p.Name
}

// OfServer is what the settings grant an MCP server, which is held to what a profile may say.
func OfServer(s policy.Server) (*Profile, error) { return granted("mcp", s) }

// OfTool is what the settings grant a tool, which may be shown secret files as well.
func OfTool(t policy.Tool) (*Profile, error) {
	p, err := granted("tool", t.Server)
	if err == nil {
		p.With, p.Reveal = t.Credential, t.Reveal
	}
	return p, err
}

// granted is the profile of what has no program of its own: grants of a table of the settings.
func granted(section string, s policy.Server) (*Profile, error) {
	p := &Profile{Name: s.Name, Section: section}
	fields := p.fields()
	for name, list := range map[string][]string{"read": s.Read, "write": s.Write, "hosts": s.Hosts, "env": s.Env} {
		for _, x := range list {
			if err := fields[name].check(x); err != nil {
				return nil, fmt.Errorf("%s: %s.%s.%s: %w", s.Origin, section, s.Name, name, err)
			}
		}
		*fields[name].list = list
	}
	return p, nil
}

//go:embed agents/*.toml
var builtIn embed.FS

// BuiltIn lists the names of the profiles that come with sbx.
func BuiltIn() []string {
	files, _ := builtIn.ReadDir("agents")
	out := make([]string, len(files))
	for i, f := range files {
		out[i], _ = strings.CutSuffix(f.Name(), ".toml")
	}
	return out
}

// Text is the file of a profile that is built in.
func Text(name string) ([]byte, bool) {
	text, err := builtIn.ReadFile("agents/" + name + ".toml")
	return text, err == nil
}

// field is one key of a profile: where it goes, and what an entry of it is.
type field struct {
	list  *[]string
	check func(string) error
}

func (p *Profile) fields() map[string]field {
	return map[string]field{
		"programs": {&p.Programs, checkProgram},
		"runs":     {&p.Runs, checkProgram},
		"read":     {&p.Read, checkPath},
		"folder":   {&p.Folder, checkPlain},
		"write":    {&p.Write, checkPath},
		"guard":    {&p.Guard, checkPath},
		"layer":    {&p.Layer, checkPlain},
		"login":    {&p.Login, checkPath},
		"hosts":    {&p.Hosts, checkHost},
		"env":      {&p.Env, checkVariable},
		"with":     {&p.With, ValidName},

		"placeholders": {&p.Placeholders, checkRelative},
		"nested_if":    {&p.NestedIf, checkSwitch},
	}
}

// Keys lists what a profile may say.
func Keys() []string {
	var out []string
	for name := range (&Profile{}).fields() {
		out = append(out, name)
	}
	out = append(out, "about", "nested", "version")
	slices.Sort(out)
	return out
}

// Most a list may have: a profile is read by people.
const maxEntries = 200

// Parse reads a profile. file is where it stands, "" for one that is built in.
func Parse(name, file string, text []byte) (*Profile, error) {
	p := &Profile{Name: name, File: file}
	from := cmp.Or(file, "agent "+name)
	stmts, err := tomlscan.Scan(text)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", from, err)
	}
	var tree map[string]any
	if _, err := toml.Decode(string(text), &tree); err != nil {
		return nil, fmt.Errorf("reading %s: %s", from, strings.Trim(excerpt.Quote(err.Error()), `"`))
	}
	fail := func(key, format string, a ...any) error {
		at := from
		for _, s := range stmts {
			if s.Key == key {
				at = fmt.Sprintf("%s:%d", from, s.Line)
				break
			}
		}
		return fmt.Errorf("reading %s: %s", at, fmt.Sprintf(format, a...))
	}
	fields := p.fields()
	for _, key := range slices.Sorted(maps.Keys(tree)) {
		v := tree[key]
		f, isList := fields[key]
		switch {
		case key == "version" && v != int64(1):
			return nil, fail(key, "version must be 1")
		case key == "version":
		case key == "about":
			s, ok := v.(string)
			if !ok || len(s) > 200 || strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r > '~' }) {
				return nil, fail(key, "about: want a line of at most 200 plain characters")
			}
			p.About = s
		case key == "nested":
			on, ok := v.(bool)
			if !ok {
				return nil, fail(key, "nested: want true or false")
			}
			p.Nested = on
		case isList:
			if err := f.fill(v); err != nil {
				return nil, fail(key, "%s: %v", key, err)
			}
		default:
			known := ""
			if n := nearest.Name(key, Keys()); n != "" {
				known = "; did you mean " + n + "?"
			}
			return nil, fail(key, "unknown key %s%s", excerpt.Quote(key), known)
		}
	}
	if key, err := p.checkFolders(); err != nil {
		return nil, fail(key, "%s: %v", key, err)
	}
	if len(p.Programs) == 0 && len(p.Login) > 0 {
		return nil, fail("login", "login: programs must say which programs it is shown to")
	}
	return p, nil
}

// checkFolders says which key has something wrong in a folder of the agent's.
func (p *Profile) checkFolders() (key string, err error) {
	for key, list := range map[string][]string{"write": p.Write, "login": p.Login} {
		for _, x := range list {
			if _, rest, in := p.InFolder(x); in && (strings.Contains(rest, "/") || !isPlain(rest)) {
				return key, fmt.Errorf("%s: in a folder, name what lies directly in it: NAME or NAME/**", excerpt.Quote(x))
			}
		}
	}
	for _, x := range p.Guard {
		_, rest, in := p.InFolder(x)
		if strings.Contains(strings.TrimSuffix(x, "/**"), "*") && !(in && isPlain(rest)) {
			return "guard", fmt.Errorf("%s: only what lies in a folder may have a star", excerpt.Quote(x))
		}
	}
	return "", nil
}

// InFolder says in which of the agent's folders a pattern is, and what it names there: a tree by its top.
func (p *Profile) InFolder(pattern string) (folder, rest string, ok bool) {
	for _, f := range p.Folder {
		if rest, ok = strings.CutPrefix(pattern, f+"/"); ok {
			return f, strings.TrimSuffix(rest, "/**"), true
		}
	}
	return "", "", false
}

// isPlain says whether a pattern means the same in every grammar: its only wildcards are stars in names.
func isPlain(s string) bool {
	return s != "" && strings.Trim(s, letters+"._-/*") == "" && !strings.Contains(s, "**")
}

func (f field) fill(v any) error {
	list, ok := v.([]any)
	if !ok || len(list) > maxEntries {
		return fmt.Errorf("want a list of at most %d strings", maxEntries)
	}
	for _, e := range list {
		s, ok := e.(string)
		if !ok {
			return fmt.Errorf("want a list of strings")
		}
		if err := f.check(s); err != nil {
			return err
		}
		*f.list = append(*f.list, s)
	}
	return nil
}

// ValidName says why name is no name of a profile.
func ValidName(name string) error {
	if name == "" || len(name) > 64 || strings.Trim(name, letters+"._-") != "" || strings.Trim(name, ".") == "" {
		return fmt.Errorf("%s is not a name of letters, digits, dots, hyphens and underscores", excerpt.Quote(name))
	}
	return nil
}

const letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"

func checkProgram(s string) error {
	if ValidName(strings.ReplaceAll(s, "+", "")) != nil || strings.Contains(s, "/") {
		return fmt.Errorf("%s is not the name of a program", excerpt.Quote(s))
	}
	return nil
}

func checkVariable(s string) error {
	if s == "" || len(s) > 256 || strings.Trim(s, letters+"_") != "" || strings.HasPrefix(s, "LD_") || s == "PATH" {
		return fmt.Errorf("%s is not the name of a variable that a profile may pass", excerpt.Quote(s))
	}
	return nil
}

func checkHost(s string) error {
	_, err := peer.ParsePattern(s)
	return err
}

// checkPath takes a pattern that is about a part of the system or of the home, never all of one.
func checkPath(s string) error {
	const home = "/home/x"
	vars := policy.Vars{Home: home, Project: home + "/project", TmpDir: "/tmp", XDGConfigHome: home + "/.config",
		XDGDataHome: home + "/.local/share", XDGStateHome: home + "/.local/state", XDGCacheHome: home + "/.cache"}
	if strings.HasPrefix(s, "$PROJECT") {
		return fmt.Errorf("%s: a project is shown anyway", excerpt.Quote(s))
	}
	p, err := pathname.ParsePattern(s, vars)
	if err != nil {
		return err
	}
	for _, whole := range [...]string{"/", home, home + "/.config", home + "/.local", home + "/.local/share",
		home + "/.local/state", home + "/.cache", home + "/.any"} {
		if p.MatchTree(whole) {
			return fmt.Errorf("%s is too wide: name the agent's own folders", excerpt.Quote(s))
		}
	}
	return nil
}

// checkPlain takes one place, without wildcards.
func checkPlain(s string) error {
	if strings.ContainsAny(s, `*?[\`) || strings.HasSuffix(s, "/") {
		return fmt.Errorf("%s is not one directory", excerpt.Quote(s))
	}
	return checkPath(s)
}

// checkRelative takes a path below a project.
func checkRelative(s string) error {
	if path.Clean("/"+s) != "/"+s || s == "" || strings.ContainsAny(s, "*?[\\") {
		return fmt.Errorf("%s is not a plain path below a project", excerpt.Quote(s))
	}
	return nil
}

// checkSwitch takes a file of the agent's settings and the key in it that switches its own sandbox on. A project has
// none: its files do not say what is open to them.
func checkSwitch(s string) error {
	file, key, ok := strings.Cut(s, " ")
	if !ok || key == "" || strings.ContainsAny(key, " \t") {
		return fmt.Errorf("%s is not a file and a key", excerpt.Quote(s))
	}
	rest, home := strings.CutPrefix(file, "~/")
	if home {
		file = "/" + rest
	}
	if !path.IsAbs(file) || path.Clean(file) != file {
		return fmt.Errorf("%s is not a plain path of the home or the system", excerpt.Quote(file))
	}
	return nil
}

// Nests says whether the agent makes sandboxes of its own here, by what read says that its settings are.
func (p *Profile) Nests(home string, read func(file string) []byte) bool {
	on := p.Nested && len(p.NestedIf) == 0
	for _, s := range p.NestedIf {
		file, key, _ := strings.Cut(s, " ")
		if rest, ok := strings.CutPrefix(file, "~/"); ok {
			file = path.Join(home, rest)
		}
		on = on || p.Nested && isOn(read(file), key)
	}
	return on
}

// isOn says whether a key of a JSON file is true. Its parts are joined by dots.
func isOn(text []byte, key string) bool {
	var at any
	if json.Unmarshal(text, &at) != nil {
		return false
	}
	for part := range strings.SplitSeq(key, ".") {
		table, _ := at.(map[string]any)
		at = table[part]
	}
	return at == true
}
