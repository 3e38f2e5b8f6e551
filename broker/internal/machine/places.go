//go:build linux

package machine

import (
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/plan"
)

// mounted is one line of mountinfo (proc_pid_mountinfo(5)).
type mounted struct {
	at, kind        string
	readOnly, noExe bool
}

// mounts reads mountinfo. Of several at one place the last is what is seen.
func mounts(text string) (out []mounted) {
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) < 6 {
			continue
		}
		m := mounted{at: unescape(f[4])}
		for o := range strings.SplitSeq(f[5], ",") {
			m.readOnly = m.readOnly || o == "ro"
			m.noExe = m.noExe || o == "noexec"
		}
		for i, word := range f[6:] {
			if word == "-" && 6+i+1 < len(f) {
				m.kind = f[6+i+1]
				break
			}
		}
		out = append(slices.DeleteFunc(out, func(o mounted) bool { return o.at == m.at }), m)
	}
	return out
}

// unescape reads a path of mountinfo: a blank is \040.
func unescape(s string) string {
	var b strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '\\' && i+3 < len(s) {
			if n, err := strconv.ParseUint(s[i+1:i+4], 8, 8); err == nil {
				b.WriteByte(byte(n))
				i += 3
				continue
			}
		}
		b.WriteByte(s[i])
	}
	return b.String()
}

func within(p, dir string) bool {
	return p == dir || strings.HasPrefix(p, strings.TrimSuffix(dir, "/")+"/")
}

// temporary are the mounts that a guest has of its own: each writable tmpfs but what is in /dev, which it makes itself.
func temporary(all []mounted) (out []mounted) {
	for _, m := range all {
		own := m.at != "/dev/shm" && within(m.at, "/dev") || within(m.at, "/proc") || within(m.at, "/sys")
		if m.kind == "tmpfs" && !m.readOnly && !own && m.at != "/" {
			out = append(out, m)
		}
	}
	return out
}

// served are the mounts in a place that are none of the list, outermost alone.
func served(place string, all, list []mounted) (out []plan.Bytes) {
next:
	for _, m := range all {
		if m.at == place || !within(m.at, place) {
			continue
		}
		for _, other := range list {
			if other.at != place && within(other.at, place) && within(m.at, other.at) {
				continue next // of that one
			}
		}
		for _, s := range out {
			if within(m.at, string(s)) {
				continue next
			}
		}
		out = append(out, plan.Bytes(m.at))
	}
	return out
}

// places looks which writable places of its own the sandbox has, and what is in them so far.
func places() ([]Place, error) {
	text, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	all := mounts(string(text))
	list := temporary(all)
	var out []Place
	for _, m := range list {
		var fs unix.Statfs_t
		var st unix.Stat_t
		if err := unix.Statfs(m.at, &fs); err != nil {
			return nil, fmt.Errorf("looking at %s: %w", m.at, err)
		}
		if err := unix.Lstat(m.at, &st); err != nil {
			return nil, fmt.Errorf("looking at %s: %w", m.at, err)
		}
		p := Place{Path: plan.Bytes(m.at), Size: fs.Blocks * uint64(fs.Bsize), NoExec: m.noExe, Mode: st.Mode & 0o7777,
			Served: served(m.at, all, list)}
		p.Entries = entries(m.at, all)
		out = append(out, p)
	}
	return out, nil
}

// most is how much of a place is made anew.
const most = 4096

// entries are the directories, links and mount points in a place.
func entries(place string, all []mounted) (out []Entry) {
	point := map[string]bool{}
	for _, m := range all {
		point[m.at] = true
	}
	_ = filepath.WalkDir(place, func(p string, d os.DirEntry, err error) error {
		if err != nil || len(out) >= most {
			return nil
		}
		var st unix.Stat_t
		if p == place || unix.Lstat(p, &st) != nil {
			return nil
		}
		e := Entry{Path: plan.Bytes(path.Clean(p)), Mode: st.Mode}
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFLNK:
			to, err := os.Readlink(p)
			if err != nil {
				return nil
			}
			e.Target = plan.Bytes(to)
		case unix.S_IFDIR:
		case unix.S_IFREG:
			if !point[p] {
				return nil
			}
		default:
			return nil
		}
		out = append(out, e)
		if d.IsDir() && point[p] {
			return filepath.SkipDir
		}
		return nil
	})
	return out
}
