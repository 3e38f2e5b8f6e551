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
