package guard

import "strings"

// GitCredential is a setting of a repository that holds a password or token, and the command by which it goes elsewhere.
type GitCredential struct{ Key, Command string }

// GitCredentials finds them in a configuration: in addresses, and in headers that are sent with requests. Who reads the file has them, and git inside has
// to read it.
func GitCredentials(config []byte) (out []GitCredential) {
	p, err := parse(config)
	if err != nil { // nor does git read it
		return nil
	}
	for _, e := range p.settings {
		section, sub, name := e.parts()
		switch {
		case section == "http" && name == "extraheader" && strings.Contains(strings.ToLower(e.value), "authorization"):
			out = append(out, GitCredential{e.key, "git config --unset-all " + e.key})
		case hasPassword(e.value):
			c := GitCredential{Key: e.key, Command: "git config --unset-all " + e.key}
			if section == "remote" && name == "url" {
				scheme, rest, _ := strings.Cut(e.value, "://")
				host, place, _ := strings.Cut(rest, "/")
				c.Command = "git remote set-url " + sub + " " + scheme + "://" + host[strings.LastIndexByte(host, '@')+1:] + "/" + place
			}
			out = append(out, c)
		case hasPassword(sub):
			out = append(out, GitCredential{section + "." + name, "git config --edit"})
		}
	}
	return out
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
	for _, e := range before.settings {
		section, sub, name := e.parts()
		switch {
		case section == "http" && name == "extraheader" && strings.Contains(strings.ToLower(e.value), "authorization"):
			out = strings.ReplaceAll(out, e.value, "X-Sbx: "+hiddenCredential)
		case hasPassword(e.value):
			out = strings.ReplaceAll(out, userinfo(e.value)+"@", hiddenCredential+"@")
		case hasPassword(sub):
			out = strings.ReplaceAll(out, userinfo(sub)+"@", hiddenCredential+"@")
		}
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
	for _, p := range [...]string{"ghp_", "gho_", "ghs_", "ghu_", "github_pat_", "glpat-", "ATCTT", "ATBB"} {
		if strings.HasPrefix(user, p) {
			return true
		}
	}
	return has && password != ""
}
