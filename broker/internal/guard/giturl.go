package guard

import (
	"path"
	"strconv"
	"strings"
)

// isURL says whether fetching from and pushing to the address starts no program but git's own and ssh, with nothing
// in their arguments that is more than a name. That are http, https, git and ssh with plain characters, and
// repositories of this machine that elsewhere vouches for.
func isURL(s string, elsewhere func(string) bool) bool {
	if strings.Contains(s, "::") { // helper::address
		return false
	}
	if p := strings.TrimPrefix(s, "file://"); p != s || strings.HasPrefix(s, "/") {
		clean := path.Clean(p)
		return elsewhere != nil && path.IsAbs(p) && clean == strings.TrimSuffix(p, "/") && isPath(p) && elsewhere(clean)
	}
	scheme, rest, has := strings.Cut(s, "://")
	if !has {
		host, p, scp := strings.Cut(s, ":") // user@host:path
		return scp && isHost(host, false) && isPlace(p)
	}
	host, p, _ := strings.Cut(rest, "/")
	switch scheme {
	case "http", "https", "git", "ssh":
		return isHost(host, true) && isPlace(p)
	}
	return false
}

// isHost is for [user[:password]@]host[:port]. A host is not an option, and what ssh's configuration may make a
// command line of it stays one word.
func isHost(s string, port bool) bool {
	if i := strings.LastIndexByte(s, '@'); i >= 0 {
		user, password, has := strings.Cut(s[:i], ":")
		if user == "" || user[0] == '-' || !plainly(user, "-._+") || has && (!port || !plainly(password, "-._~+")) {
			return false
		}
		s = s[i+1:]
	}
	if host, number, has := strings.Cut(s, ":"); has {
		if n, err := strconv.ParseUint(number, 10, 16); !port || err != nil || n == 0 {
			return false
		}
		s = host
	}
	return s != "" && s[0] != '-' && s[0] != '.' && plainly(s, "-._")
}

// isPlace is for the path at a host. What is escaped in it are no control characters: they end lines in what is
// said to credential helpers.
func isPlace(s string) bool {
	for i := 0; i < len(s); i++ {
		if s[i] != '%' {
			continue
		}
		if i+2 >= len(s) {
			return false
		}
		if n, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err != nil || n < 0x20 || n == 0x7f {
			return false
		}
	}
	return s == "" || s[0] != '-' && plainly(s, "-._~/+@%=,:")
}

// isPath is for a path of this machine.
func isPath(s string) bool { return plainly(s, "-._~/+@=,: ") }

// plainly says whether s has only ASCII letters, digits and these.
func plainly(s, others string) bool {
	for i := 0; i < len(s); i++ {
		if c := s[i]; !isAlpha(c) && (c < '0' || c > '9') && strings.IndexByte(others, c) < 0 {
			return false
		}
	}
	return true
}
