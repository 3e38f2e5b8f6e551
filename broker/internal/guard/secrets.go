package guard

import (
	"bytes"
	"path"
	"slices"
	"strings"
	"sync"
)

// Secret is a name under which people keep credentials in a project.
type Secret struct {
	Pattern string // a name, *SUFFIX or PREFIX*
	Dir     bool   // what lies in a directory of that name is meant as well
	// Holds says whether contents are a credential, for names that say nothing by themselves. Nil: the name says it.
	Holds func(head []byte) bool
	Why   string
	Most  int64 // a larger file holds none; 0: of any size
}

// HeadSize is how much of a file its contents are judged by. What a text holds beyond that nobody has seen.
const HeadSize = 1 << 20

// Secrets is the table of the names that do not exist inside, with the reason of each. What holds a credential only
// sometimes is judged by its contents.
func Secrets() []Secret {
	return []Secret{
		{".env*", true, nil, "environment files hold tokens", 0},
		{"*.env", false, nil, "environment files hold tokens", 0},
		{"id_rsa", false, nil, "a private key", 0},
		{"id_dsa", false, nil, "a private key", 0},
		{"id_ecdsa", false, nil, "a private key", 0},
		{"id_ed25519", false, nil, "a private key", 0},
		{"id_ecdsa_sk", false, nil, "a private key", 0},
		{"id_ed25519_sk", false, nil, "a private key", 0},
		{"*.ppk", false, nil, "a private key", 0},
		{"*.p12", false, nil, "a key store", 0},
		{"*.pfx", false, nil, "a key store", 0},
		{"*.jks", false, nil, "a key store", 0},
		{"*.keystore", false, nil, "a key store", 0},
		{"*.kdbx", false, nil, "a password database", 0},
		{"master.key", false, nil, "decrypts an application's credentials", 0},
		{"*.tfstate", false, nil, "Terraform's state has every secret in clear text", 0},
		{"*.tfstate.backup", false, nil, "Terraform's state has every secret in clear text", 0},
		{".git-credentials", false, nil, "passwords in clear text", 0},
		{".pgpass", false, nil, "database passwords", 0},
		{".vault-token", false, nil, "a token", 0},
		{".vault_pass*", false, nil, "decrypts an inventory's secrets", 0},
		{".vault-pass*", false, nil, "decrypts an inventory's secrets", 0},
		{".dev.vars*", false, nil, "environment files hold tokens", 0},
		{".htpasswd", false, nil, "password hashes", 0},
		{"*.pem", false, HoldsPrivateKey, "a private key", 0},
		{"id_*", false, HoldsPrivateKey, "a private key", 0},
		{"ssh_host_*", false, HoldsPrivateKey, "a private key", 0},
		{"credentials", false, holdsCloudPassword, "a cloud account's key", 0},
		{"credentials.toml", false, holdsPassword, "a registry token", 0},
		{"*.key", false, holdsKey, "a private key", 0},
		{"*.asc", false, HoldsPrivateKey, "a private key", 0},
		{"*.ovpn", false, HoldsPrivateKey, "a private key", 0},
		{".npmrc", false, holdsNpmToken, "a registry token", 0},
		{".yarnrc", false, holdsNpmToken, "a registry token", 0},
		{".yarnrc.yml", false, holdsYarnToken, "a registry token", 0},
		{".dockercfg", false, holdsCloudKey, "registry passwords", 0},
		{".s3cfg", false, holdsCloudPassword, "a cloud account's key", 0},
		{".boto", false, holdsCloudPassword, "a cloud account's key", 0},
		{".pypirc", false, holdsPassword, "an index password", 0},
		{".my.cnf", false, holdsPassword, "a database password", 0},
		{".netrc", false, holdsNetrc, "passwords in clear text", 0},
		{"_netrc", false, holdsNetrc, "passwords in clear text", 0},
		{"kubeconfig", false, holdsKubeToken, "cluster credentials", 0},
		{"*.kubeconfig", false, holdsKubeToken, "cluster credentials", 0},
		{"*.json", false, holdsCloudKey, "a cloud account's key", 16 << 10},
	}
}

// public are names that look like those of secrets and are made to be shown: templates, and what tools keep their
// settings in.
func public() []string {
	return []string{"*.pub", "*.example", "*.sample", "*.template", "*.tmpl", "*.dist", "*.defaults", "*.schema", ".envrc",
		"example.env", "sample.env", "template.env", "package.json", "package-lock.json", "tsconfig.json", "composer.json"}
}

// Dependency says whether a directory of this name holds what a package registry or a tool put there: its keys and
// certificates are everybody's.
func Dependency(name string) bool {
	return slices.Contains(dependencies(), name)
}

// Dependencies are the names of such directories.
func Dependencies() []string { return dependencies() }

func dependencies() []string {
	return []string{"node_modules", "bower_components", "site-packages", "dist-packages", "vendor", "third_party",
		".venv", "venv", ".tox", ".nox", "__pycache__"}
}

// secretIndex finds a row of the table by the last part of a name.
type secretIndex struct {
	exact, suffix map[string]*Secret // suffix: by what follows the star
	prefix        []*Secret
	public        []string
	copies        map[*Secret]*Secret
}

var indexSecrets = sync.OnceValue(func() *secretIndex {
	x := &secretIndex{exact: map[string]*Secret{}, suffix: map[string]*Secret{}, public: public(),
		copies: map[*Secret]*Secret{}}
	table := Secrets()
	for i := range table {
		if holds := table[i].Holds; holds != nil {
			table[i].Holds = func(head []byte) bool { return holds(head) || unseen(head) }
		}
		x.copies[&table[i]] = ofCopy(&table[i])
		switch s := &table[i]; {
		case strings.HasPrefix(s.Pattern, "*"):
			x.suffix[s.Pattern[1:]] = s
		case strings.HasSuffix(s.Pattern, "*"):
			x.prefix = append(x.prefix, s)
		default:
			x.exact[s.Pattern] = s
		}
	}
	return x
})

// SecretOf is the row that a file of this base name falls under, or nil; of a directory, those that mean what lies in
// it. The name is compared as a file system that folds letter case would.
func SecretOf(name string, dir bool) *Secret {
	x := indexSecrets()
	name = Fold(name)
	if s := x.of(name); s != nil || dir {
		if dir && (s == nil || !s.Dir) || !dir && x.shown(name) {
			return nil
		}
		return s
	}
	for _, of := range copied(name) {
		if s := x.of(of); s != nil && !x.shown(of) {
			return x.copies[s]
		}
	}
	return nil
}

func (x *secretIndex) of(name string) *Secret {
	if s := x.exact[name]; s != nil {
		return s
	}
	return x.match(name)
}

func (x *secretIndex) shown(name string) bool {
	return slices.ContainsFunc(x.public, func(p string) bool { ok, _ := path.Match(p, name); return ok })
}

// copied are the names of the files that one of this name may be the copy of: editors leave what they edit beside it,
// and people what was there before.
func copied(name string) []string {
	n := len(name)
	switch {
	case n > 2 && name[0] == '#' && name[n-1] == '#':
		return []string{name[1 : n-1]}
	case n > 5 && name[0] == '.' && name[n-4:n-1] == ".sw", n > 5 && name[0] == '.' && strings.HasSuffix(name, ".un~"):
		return []string{name[1 : n-4], name[:n-4]} // vim puts no second dot before one
	case n > 1 && name[n-1] == '~':
		return []string{strings.TrimSuffix(strings.TrimRight(name[:n-1], "0123456789"), ".~"), name[:n-1]}
	}
	for _, end := range [...]string{".bak", ".backup", ".orig", ".old", ".save", ".tmp"} {
		if of, ok := strings.CutSuffix(name, end); ok {
			return []string{of}
		}
	}
	return nil
}

// ofCopy is the row for the copies of what falls under another. An editor's swap file has the lines, each with a zero
// byte at its end, among others, and the last ones first.
func ofCopy(s *Secret) *Secret {
	c := *s
	c.Dir, c.Most = false, 2*s.Most
	if s.Holds != nil {
		c.Holds = func(head []byte) bool {
			text := bytes.ReplaceAll(head, []byte{0}, []byte{'\n'})
			return s.Holds(head) || s.Holds(text) || s.Holds(append([]byte("{\n"), text...))
		}
	}
	return &c
}

// match tries the rows with a star: those that look at contents after the others. A suffix begins at a dot.
func (x *secretIndex) match(name string) *Secret {
	if s := x.prefixed(name, false); s != nil {
		return s
	}
	for i := range len(name) {
		if name[i] == '.' {
			if s := x.suffix[name[i:]]; s != nil {
				return s
			}
		}
	}
	return x.prefixed(name, true)
}

func (x *secretIndex) prefixed(name string, looks bool) *Secret {
	for _, s := range x.prefix {
		if (s.Holds != nil) == looks && strings.HasPrefix(name, s.Pattern[:len(s.Pattern)-1]) {
			return s
		}
	}
	return nil
}

// Candidate is what a path tells about a file or directory that may hold secrets.
type Candidate struct {
	*Secret // nil: it is none
	// the directory, relative to the tree, whose name says that all below it is meant; "" if the name itself says so
	Keeper string
	In     string // the directory of dependencies, or of git's own, that it lies in, where nothing is hidden; "" for none
}

// SecretAt judges a path relative to the tree that is shown, by its own name and by those of the directories above.
func SecretAt(rel string, dir bool) (c Candidate) {
	for at := 0; ; {
		i := strings.IndexByte(rel[at:], '/')
		if i < 0 {
			if own := SecretOf(rel[at:], dir); own != nil {
				c.Secret, c.Keeper = own, ""
			}
			return c
		}
		name := rel[at : at+i]
		at += i + 1
		if Dependency(name) || Fold(name) == ".git" { // branches may have any name
			return Candidate{In: rel[:at-1]}
		}
		if d := SecretOf(name, true); d != nil {
			c.Secret, c.Keeper = d, rel[:at-1]
		}
	}
}
