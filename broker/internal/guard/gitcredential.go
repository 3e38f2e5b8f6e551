package guard

import (
	"slices"
	"strings"
)

// GitCredential is a setting of a repository that holds a password or token, and the command by which it goes
// elsewhere.
type GitCredential struct{ Key, Command string }

// GitCredentials finds them in a configuration: in addresses, in headers that are sent with requests, and in comments
// that have either. Who reads the file has them, and git inside has to read it.
func GitCredentials(config []byte) (out []GitCredential) {
	p, err := parse(config)
	if err != nil { // nor does git read it
		return nil
	}
	for _, c := range p.credentials() {
		out = append(out, c.GitCredential)
	}
	return out
}

// credentials are all of a configuration.
func (p parsed) credentials() (out []credential) {
	for _, e := range p.settings {
		if c := credentialIn(e); c.text != "" {
			out = append(out, c)
		}
	}
	for _, text := range p.comments {
		if strings.Contains(strings.ToLower(text), "authorization") ||
			slices.ContainsFunc(strings.FieldsFunc(text, betweenWords), isToken) ||
			slices.ContainsFunc(strings.Fields(text), hasPassword) {
			out = append(out, credential{GitCredential{"a comment", "git config --edit"}, text, "# " + hiddenCredential})
		}
	}
	return out
}

// betweenWords says whether a character is none of a token.
func betweenWords(c rune) bool { return strings.ContainsRune(" \t\"'=:;#@/,()<>[]", c) }

// credential is one that was found: the text that holds it, and what can stand there instead.
type credential struct {
	GitCredential
	text, shown string
}

// credentialIn is the one that a setting holds; its text is empty where there is none.
func credentialIn(e entry) credential {
	section, sub, name := e.parts()
	unset := "git config --unset-all " + e.key
	switch {
	case section == "http" && name == "extraheader" && strings.Contains(strings.ToLower(e.value), "authorization"):
		return credential{GitCredential{e.key, unset}, e.value, "X-Sbx: " + hiddenCredential}
	case hasPassword(e.value):
		if section == "remote" && name == "url" {
			scheme, rest, _ := strings.Cut(e.value, "://")
			host, place, _ := strings.Cut(rest, "/")
			unset = "git remote set-url " + sub + " " + scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + "/" + place
		}
		return credential{GitCredential{e.key, unset}, userinfo(e.value) + "@", hiddenCredential + "@"}
	case hasPassword(sub):
		return credential{GitCredential{section + "." + name, "git config --edit"}, userinfo(sub) + "@", hiddenCredential +
			"@"}
	}
	return credential{}
}

// hiddenCredential stands where a credential was.
const hiddenCredential = "hidden"

// WithoutCredentials is a configuration without what GitCredentials finds in it, and otherwise as it was. It fails
// where they are not written as they are read.
func WithoutCredentials(config []byte) ([]byte, bool) {
	before, err := parse(config)
	if err != nil {
		return nil, false
	}
	out := string(config)
	for _, c := range before.credentials() {
		out = strings.ReplaceAll(out, c.text, c.shown)
	}
	after, err := parse([]byte(out))
	if err != nil || len(after.settings) != len(before.settings) || len(GitCredentials([]byte(out))) > 0 {
		return nil, false
	}
	return []byte(out), true
}

// userinfo is what stands before the host in an address.
func userinfo(s string) string {
	_, rest, _ := strings.Cut(s, "://")
	rest, _, _ = strings.Cut(rest, "/")
	return rest[:max(strings.LastIndexByte(rest, '@'), 0)]
}

// hasPassword says whether an address has a password, or a name of a user that is a token.
func hasPassword(s string) bool {
	_, rest, ok := strings.Cut(s, "://")
	if !ok {
		return false
	}
	rest, _, _ = strings.Cut(rest, "/")
	i := strings.LastIndexByte(rest, '@')
	if i < 0 {
		return false
	}
	user, password, has := strings.Cut(rest[:i], ":")
	return isToken(user) || has && password != ""
}

// isToken says whether a word begins as the tokens of some services do.
func isToken(word string) bool {
	return slices.ContainsFunc([]string{"ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "ATCTT", "ATBB"},
		func(begin string) bool { return strings.HasPrefix(word, begin) })
}
