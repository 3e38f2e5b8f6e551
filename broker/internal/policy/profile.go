package policy

import (
	"cmp"
	"fmt"
	"sort"

	"sbx.example/sbx/broker/internal/policy/excerpt"
	"sbx.example/sbx/broker/internal/policy/nearest"
	"sbx.example/sbx/broker/internal/policy/pathname"
)

// Profile is a named base of what is readable, writable, hidden and asked about. Lists of a profile that extends
// another are added to its parent's; an empty list drops the parent's, except where entries forbid.
type Profile struct {
	Name      string
	Extends   string
	ReadOnly  []string
	Writable  []string
	Overlay   []string
	Tmpfs     []string
	Hidden    []string // patterns: with everything below, never asked about
	Secrets   []string // patterns, added to the built-in list
	Ask       []string // patterns: with everything below
	Network   bool
	Hosts     []string
	Caches    string // "" leaves it to fs.caches
	setByFile map[string]bool
}

// Root is the built-in profile that p goes back to.
func (p Profile) Root() string { return cmp.Or(p.Extends, p.Name) }

// The values of fs.caches.
const (
	CachesReadOnly = "ro"      // the host's, read-only
	CachesDropped  = "overlay" // a layer over the host's that is thrown away
	CachesKept     = "project" // a layer over the host's that the next run of the project finds
	CachesShared   = "rw"      // the host's own
)

// cachesWords are these from narrow to wide.
func cachesWords() []string { return []string{CachesReadOnly, CachesDropped, CachesKept, CachesShared} }

// HasCaches says whether the profile shows what tools keep in the home.
func (p Profile) HasCaches() bool { return p.Root() != "strict" }

// builtin returns the text of a shipped profile, with what this system keeps elsewhere; variables are expanded by the
// caller.
func builtin(name string) (Profile, bool) {
	p, ok := shipped(name)
	p.ReadOnly = append(p.ReadOnly, systemPlaces(name)...)
	return p, ok
}

func shipped(name string) (Profile, bool) {
	switch name {
	case "strict":
		return Profile{
			Name: "strict",
			ReadOnly: []string{"/usr", "?/lib", "?/lib32", "?/lib64", "?/libx32", "?/bin", "?/sbin", "?/etc/alternatives",
				"?/etc/ld.so.cache", "?/etc/ld.so.conf", "?/etc/ld.so.conf.d", "?/etc/nsswitch.conf", "?/etc/passwd", "?/etc/group",
				"?/etc/hosts", "?/etc/host.conf", "?/etc/resolv.conf", "?/etc/localtime", "?/etc/timezone", "?/etc/locale.alias",
				"?/etc/ssl/certs", "?/etc/ssl/openssl.cnf", "?/etc/ca-certificates", "?/etc/pki/tls/certs", "?/etc/pki/ca-trust",
				"?/etc/os-release",
				"?/etc/terminfo", "?/etc/profile", "?/etc/bash.bashrc", "?/etc/services", "?/etc/protocols", "?/etc/mime.types",
				"?/etc/inputrc"},
			Writable: []string{}, Overlay: []string{}, Tmpfs: []string{"/tmp"},
			Hidden: []string{"/home/**", "/root/**", "/var/**"},
		}, true
	case "moderate":
		return Profile{
			Name: "moderate",
			ReadOnly: []string{"/usr", "?/lib", "?/lib32", "?/lib64", "?/libx32", "?/bin", "?/sbin", "?/opt", "/etc",
				"?/nix/store",
				"?~/.cargo", "?~/.rustup", "?~/go", "?~/sdk", "?~/.local/bin", "?~/.local/lib", "?~/.local/pipx",
				"?~/.local/share/pipx",
				"?~/.local/share/uv", "?~/.local/share/mise", "?~/.local/share/fnm", "?~/.local/share/virtualenvs",
				"?~/.local/share/pnpm", "?~/.nvm",
				"?~/.volta", "?~/.fnm", "?~/.bun", "?~/.deno", "?~/.pyenv", "?~/.rye", "?~/.rbenv", "?~/.goenv", "?~/.nodenv",
				"?~/.asdf",
				"?~/.sdkman", "?~/.jenv", "?~/.ghcup", "?~/.cabal", "?~/.stack", "?~/.opam", "?~/.nimble", "?~/.dotnet",
				"?~/.nuget", "?~/.gem",
				"?~/.elan", "?~/.juliaup", "?~/.nix-profile", "?~/miniconda3", "?~/anaconda3", "?~/.conda/envs", "?~/.npm-global",
				"?~/.yarn",
				"?~/.foundry", "?~/.gitconfig", "?~/.config/git", "?~/.gitignore", "?~/.gitignore_global", "?~/.inputrc",
				"?~/.vimrc", "?~/.vim",
				"?~/.config/nvim", "?~/.local/share/nvim", "?~/.tmux.conf", "?~/.config/tmux", "?~/.editorconfig", "?~/.terminfo",
				"?~/.config/go",
				"?/var/lib/dpkg", "?/var/lib/apt", "?/var/cache/apt", "?/var/lib/rpm", "?/var/lib/pacman",
				"?/var/cache/fontconfig", "?/var/cache/man",
				"?/var/lib/ca-certificates", "?/var/lib/sgml-base", "?/var/lib/xml-core", "?/var/cache/debconf/templates.dat"},
			Writable: []string{"$PROJECT"}, Tmpfs: []string{"/tmp"},
			Overlay: []string{},
			Ask:     []string{"~/**"},
		}, true
	case "permissive":
		return Profile{
			Name: "permissive", ReadOnly: []string{"/"}, Writable: []string{"$PROJECT"}, Tmpfs: []string{},
			Overlay: []string{"?~/.local"}, Network: true,
		}, true
	}
	return Profile{}, false
}

// builtinProfiles lists the shipped profiles from narrow to wide.
func builtinProfiles() []string { return []string{"strict", "moderate", "permissive"} }

// profileKeys are the rows of a [profiles.NAME] table; each has the type of the fs key of the same name.
func profileKeys() []key {
	return []key{
		{name: "extends", typ: tName}, {name: "read_only", typ: tPaths}, {name: "writable", typ: tPaths},
		{name: "overlay", typ: tPaths}, {name: "tmpfs", typ: tPaths}, {name: "hidden", typ: tPatterns},
		{name: "secrets", typ: tPatterns}, {name: "ask", typ: tPatterns}, {name: "network", typ: tBool},
		{name: "hosts", typ: tHosts}, {name: "caches", typ: tEnum, words: cachesWords()},
	}
}

// at is where a key of the table is.
func (p *Profile) at(name string) any {
	switch name {
	case "extends":
		return &p.Extends
	case "network":
		return &p.Network
	case "caches":
		return &p.Caches
	}
	return p.field(name)
}

// field is where a list is; nil for what is none.
func (p *Profile) field(name string) *[]string {
	switch name {
	case "read_only":
		return &p.ReadOnly
	case "writable":
		return &p.Writable
	case "overlay":
		return &p.Overlay
	case "tmpfs":
		return &p.Tmpfs
	case "hidden":
		return &p.Hidden
	case "secrets":
		return &p.Secrets
	case "ask":
		return &p.Ask
	case "hosts":
		return &p.Hosts
	}
	return nil
}

func (p *Profile) put(name string, v any) {
	if p.setByFile == nil {
		p.setByFile = map[string]bool{}
	}
	p.setByFile[name] = true
	into(p.at)(name, v)
}

// resolve flattens a profile: its own lists on top of all it extends, Extends then naming the built-in one below.
func resolve(name string, own map[string]Profile, vars Vars) (Profile, error) {
	return resolveFrom(name, own, vars, nil)
}

func resolveFrom(name string, own map[string]Profile, vars Vars, seen []string) (Profile, error) {
	if p, ok := builtin(name); ok {
		return p, p.expand(vars)
	}
	p, ok := own[name]
	if !ok {
		return p, fmt.Errorf("choosing profile %s: there is none of that name; %s", excerpt.Quote(name), known(name, own))
	}
	for _, s := range seen {
		if s == name {
			return p, fmt.Errorf("choosing profile %s: it extends itself", excerpt.Quote(name))
		}
	}
	base := "moderate"
	if p.Extends != "" {
		base = p.Extends
	}
	parent, err := resolveFrom(base, own, vars, append(seen, name))
	if err != nil {
		return p, err
	}
	out := parent
	out.Name, out.Extends = name, parent.Root()
	for _, k := range profileKeys() {
		f, mine := out.field(k.name), p.field(k.name)
		switch {
		case f == nil || *mine == nil:
		case len(*mine) == 0 && k.typ != tPatterns:
			*f = []string{}
		default:
			*f = append(append([]string{}, *f...), *mine...)
		}
	}
	if p.setByFile["network"] {
		out.Network = p.Network
	}
	if p.Caches != "" {
		out.Caches = p.Caches
	}
	return out, nil
}

func known(name string, own map[string]Profile) string {
	names := builtinProfiles()
	for n := range own {
		names = append(names, n)
	}
	sort.Strings(names)
	if n := nearest.Name(name, names); n != "" {
		return "did you mean " + excerpt.Quote(n) + "?"
	}
	return "known are strict, moderate, permissive and your own [profiles.NAME]"
}

// expand replaces variables in a shipped profile. An entry whose variable has no value is left out if it is optional.
func (p *Profile) expand(vars Vars) error {
	vars.Narrow = false
	for _, k := range profileKeys() {
		f := p.field(k.name)
		if f == nil || *f == nil {
			continue
		}
		out := make([]string, 0, len(*f))
		for _, s := range *f {
			e, err := k.element(s, vars)
			if err != nil {
				if _, optional := pathname.SplitOptional(s); optional || k.name == "ask" {
					continue
				}
				return fmt.Errorf("reading built-in profile %s: %w", p.Name, err)
			}
			out = append(out, e)
		}
		*f = out
	}
	return nil
}
