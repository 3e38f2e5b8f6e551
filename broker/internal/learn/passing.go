package learn

import (
	"path"
	"strconv"
	"strings"
)

// ComesBack cuts a path before the first name that will be another the next time: one with a random end, as mkstemp
// makes it, or with the number of the process, as it is here or as the process sees it. A home is the same one. whole
// says that there is no such name.
func ComesBack(p, home string, pid, inside int) (dir string, whole bool) {
	dir = "/"
	if rest, ok := strings.CutPrefix(p, home+"/"); ok && home != "" {
		dir, p = home, rest
	}
	for _, name := range strings.Split(strings.Trim(p, "/"), "/") {
		if passing(name, pid, inside) {
			return dir, false
		}
		dir = path.Join(dir, name)
	}
	return dir, true
}

// passing says whether a name looks made for this once.
func passing(name string, pid, inside int) bool {
	parts := strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune("._-~#", r) })
	temporary := false
	for _, p := range parts {
		switch strings.ToLower(p) {
		case "tmp", "temp", "lock", "new", "swp", "part":
			temporary = true
		}
	}
	for i, p := range parts {
		n, err := strconv.Atoi(p)
		switch {
		case err == nil && (n == pid && n > 1 || temporary && len(p) > 2 || len(p) > 8):
			return true
		case err == nil && n == inside && (temporary || n > 99): // processes of a sandbox count from 1, as versions do
			return true
		case (i > 0 || len(parts) == 1 || temporary) && random(p):
			return true
		}
		if rest, ok := strings.CutPrefix(p, "tmp"); ok && i == 0 && len(rest) >= 6 {
			return true
		}
	}
	return false
}

// random says whether a word looks drawn: letters of both cases and digits in turn, or many hexadecimal digits.
func random(p string) bool {
	const lower, upper, digit = 1, 2, 3
	runs, last, hexadecimal, digits := 0, 0, true, 0
	for _, c := range []byte(p) {
		kind := 0
		switch {
		case c >= 'a' && c <= 'z':
			kind = lower
		case c >= 'A' && c <= 'Z':
			kind = upper
		case c >= '0' && c <= '9':
			kind = digit
			digits++
		default:
			return false
		}
		hexadecimal = hexadecimal && (kind == digit || c >= 'a' && c <= 'f')
		if kind != last && !(last == upper && kind == lower) { // a word with a capital is one run
			runs++
		}
		last = kind
	}
	return len(p) >= 6 && len(p) < 3*runs || len(p) >= 12 && hexadecimal && digits > 0 && digits < len(p)
}

// Wide says whether a directory is too much to be allowed as a whole: a home, or what leads to one or to everything.
func Wide(dir, home string) bool {
	return strings.Count(dir, "/") < 2 || dir == home || strings.HasPrefix(home, dir+"/") || path.Dir(dir) == "/home"
}
