package toolconf

import (
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"
)

// header begins a copy.
const header = "# shown by sbx: settings that hold no password or token; see docs/caches.md\n"

// kind is what a key may hold.
type kind int

const (
	word  kind = iota // a switch, a number, a short name
	link              // an address, a host with its port, or a place
	file              // a place
	names             // names, or patterns of them
)

// maxValue bounds one value, and maxWord one that is a single word.
const (
	maxValue = 4096
	maxWord  = 64
)

// shown is a value as it may be seen, and whether it may be.
func (k kind) shown(v string) (string, bool) {
	if len(v) > maxValue || !printable(v) {
		return "", false
	}
	switch k {
	case word:
		return v, len(v) <= maxWord && !opaque(v) && !strings.ContainsAny(v, "@:/ \\=")
	case link:
		if strings.Contains(v, "://") {
			return address(v)
		}
		return v, place(v) || hostPort(v) || v == "false" || v == "null"
	case file:
		return v, place(v) && !strings.ContainsAny(v, "#;") // what somebody has meant for a comment
	case names:
		return v, v != "" && strings.Trim(strings.ToLower(v), nameChars+"*:,|[]/!") == "" && !strings.Contains(v, "//") &&
			!slices.ContainsFunc(strings.FieldsFunc(v, func(r rune) bool { return strings.ContainsRune("*:,|[]/!", r) }), opaque)
	}
	return "", false
}

const nameChars = "abcdefghijklmnopqrstuvwxyz0123456789.-_"

// plainName says whether a value is one name.
func plainName(v string) bool {
	return v != "" && len(v) <= maxWord && strings.Trim(strings.ToLower(v), nameChars+"~") == ""
}

// hostPort says whether a value is the name of a host and a port.
func hostPort(v string) bool {
	host, port, ok := strings.Cut(v, ":")
	return ok && plainName(host) && !opaque(host) && port != "" && len(port) <= 5 && strings.Trim(port, "0123456789") == ""
}

func printable(v string) bool {
	return utf8.ValidString(v) && !strings.ContainsFunc(v, func(r rune) bool { return r < ' ' || r == 0x7f })
}

// place says whether a value is a path.
func place(v string) bool {
	for _, p := range [...]string{"/", "~/", "./", "../", "${HOME}/", "$HOME/", "${user.home}/"} {
		if strings.HasPrefix(v, p) {
			return !strings.Contains(v, "@")
		}
	}
	return false
}

// address is one without the user's name and password. What may hold a token in another place is not shown: a query, a
// long word of letters and digits in its path.
func address(v string) (string, bool) {
	scheme, rest, _ := strings.Cut(v, "://")
	u, err := url.Parse(v)
	if err != nil || u.Host == "" && u.Scheme != "file" || u.Opaque != "" || strings.ContainsAny(v, "?#\\\"' ") {
		return "", false
	}
	authority, path, slash := strings.Cut(rest, "/")
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	if strings.Contains(path, "@") && strings.Contains(path, ":") || strings.Contains(path, "%") {
		return "", false
	}
	for _, segment := range append(strings.Split(path, "/"), strings.Split(authority, ".")...) {
		if opaque(segment) {
			return "", false
		}
	}
	if slash {
		path = "/" + path
	}
	return scheme + "://" + authority + path, true
}

// opaque says whether a word may be a token: sixteen letters and digits or more in a row with both among them, or the
// form of a UUID.
func opaque(s string) bool {
	if len(s) == 36 && strings.Count(s, "-") == 4 && strings.Trim(strings.ToLower(s), "0123456789abcdef-") == "" {
		return true
	}
	for _, part := range strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune("-_.~+", r) }) {
		if len(part) >= 16 && strings.ContainsAny(part, "0123456789") && strings.ContainsAny(strings.ToLower(part),
			"abcdefghijklmnopqrstuvwxyz") {
			return true
		}
	}
	return false
}

// lines are those of a text that somebody has written.
func lines(text []byte) ([]string, bool) {
	if !utf8.Valid(text) || strings.ContainsAny(string(text), "\x00\v\f\u0085\u2028\u2029") {
		return nil, false
	}
	return strings.Split(strings.ReplaceAll(strings.TrimPrefix(string(text), "\ufeff"), "\r\n", "\n"), "\n"), true
}
