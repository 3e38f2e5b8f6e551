package host

import (
	"strconv"
	"strings"
)

// Mount is one line of /proc/self/mountinfo (proc(5)).
type Mount struct {
	Dev   string // major:minor
	Root  string // path inside its file system
	Point string // where it is mounted
	Type  string
}

// Mounts reads the mount table.
func Mounts() ([]Mount, error) {
	b, err := ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	return ParseMounts(string(b)), nil
}

// ParseMounts reads the text of mountinfo; lines it cannot read are left out.
func ParseMounts(text string) []Mount {
	var out []Mount
	for line := range strings.SplitSeq(text, "\n") {
		f := strings.Fields(line)
		if len(f) < 7 {
			continue
		}
		m := Mount{Dev: f[2], Root: unescape(f[3]), Point: unescape(f[4])}
		for i := 6; i+1 < len(f); i++ {
			if f[i] == "-" {
				m.Type = f[i+1]
				break
			}
		}
		out = append(out, m)
	}
	return out
}

// unescape undoes the octal escapes of space, tab, newline and backslash.
func unescape(s string) string {
	if !strings.Contains(s, `\`) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if v, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(v))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

// Within says whether p is dir or lies below it, by components. Both are absolute and clean.
func Within(p, dir string) bool {
	return p == dir || dir == "/" || len(p) > len(dir) && p[len(dir)] == '/' && p[:len(dir)] == dir
}

func tail(p, dir string) string {
	if dir == "/" {
		return p
	}
	return p[len(dir):]
}

// Aliases returns the other places at which the file p can be reached because its file system, or
// part of it, is mounted more than once.
func Aliases(mounts []Mount, p string) []string {
	var home *Mount
	for i := range mounts {
		m := &mounts[i]
		if Within(p, m.Point) && (home == nil || len(m.Point) >= len(home.Point)) {
			home = m
		}
	}
	if home == nil {
		return nil
	}
	inside := strings.TrimSuffix(home.Root, "/") + tail(p, home.Point)
	if inside == "" {
		inside = "/"
	}
	var out []string
	for i := range mounts {
		m := &mounts[i]
		if m.Dev != home.Dev || m.Point == home.Point || !Within(inside, m.Root) {
			continue
		}
		if alias := strings.TrimSuffix(m.Point, "/") + tail(inside, m.Root); alias != p {
			out = append(out, strings.TrimSuffix(alias, "/"))
		}
	}
	return out
}

// Below returns the mount points strictly below dir.
func Below(mounts []Mount, dir string) []string {
	var out []string
	for i := range mounts {
		if p := mounts[i].Point; p != dir && Within(p, dir) {
			out = append(out, p)
		}
	}
	return out
}

// Holding is the mount that p lies on; of several at one point the last, which covers the others.
func Holding(mounts []Mount, p string) (m Mount) {
	for i := range mounts {
		if x := mounts[i].Point; len(x) >= len(m.Point) && Within(p, x) {
			m = mounts[i]
		}
	}
	return m
}
