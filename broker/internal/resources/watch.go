//go:build linux

package resources

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/inotify"
	"sbx.example/sbx/broker/plan"
)

// Witness notes which process was the largest when a group came to its memory limit: when it has been killed,
// nobody can tell any more.
type Witness struct {
	g    *Group
	fd   int
	f    *os.File
	mu   sync.Mutex
	seen string
}

// Watch begins to look. It costs nothing until the limit is reached: the kernel says when.
func (g *Group) Watch() (*Witness, error) {
	fd, err := unix.InotifyInit1(unix.IN_CLOEXEC | unix.IN_NONBLOCK)
	if err != nil {
		return nil, fmt.Errorf("watching control group: %w", err)
	}
	if _, err := unix.InotifyAddWatch(fd, g.Dir+"/memory.events", unix.IN_MODIFY); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("watching control group: %w", err)
	}
	w := &Witness{g: g, fd: fd, f: os.NewFile(uintptr(fd), "inotify")}
	go w.look()
	return w, nil
}

func (w *Witness) look() {
	var b [4096]byte
	for {
		if _, err := w.f.Read(b[:]); err != nil {
			return
		}
		if name := w.g.Largest("/"); name != "" {
			w.mu.Lock()
			w.seen = name
			w.mu.Unlock()
		}
	}
}

// Close ends the watch.
func (w *Witness) Close() {
	if w != nil {
		_ = inotify.Close(w.fd, w.f.Close)
	}
}

// Largest names the process of the group that has the most memory, as "node[31]" with its pid inside; root is where
// /proc is.
func (g *Group) Largest(root string) string {
	if g.inner != "" { // quickly, before they are gone: most are here
		if name := largest(root, pidsBelow(filepath.Join(g.inner, plan.CgroupLeaf), nil, 0)); name != "" {
			return name
		}
	}
	return largest(root, g.Pids())
}

func largest(root string, pids []int) string {
	most, name := int64(-1), ""
	for _, pid := range pids {
		if inside, called, rss := nameOf(root, pid); rss > most && inside != "1" {
			most, name = rss, called
		}
	}
	return name
}

// Name is a process of a sandbox as "node[31]", "" if it has gone.
func Name(root string, pid int) string {
	_, name, _ := nameOf(root, pid)
	return name
}

// nameOf reads the pid inside, the name with it, and the memory in KiB, -1 if that is not known.
func nameOf(root string, pid int) (inside, name string, rss int64) {
	rss = -1
	b, err := os.ReadFile(filepath.Join("/", root, "proc", strconv.Itoa(pid), "status"))
	if err != nil {
		return "", "", rss
	}
	var comm string
	for line := range strings.Lines(string(b)) {
		k, v, _ := strings.Cut(line, ":")
		f := strings.Fields(v)
		switch {
		case k == "Name":
			comm = strings.TrimSuffix(strings.TrimPrefix(v, "\t"), "\n")
		case k == "NSpid" && len(f) > 0:
			inside = f[len(f)-1]
		case (k == "VmRSS" || k == "VmSwap") && len(f) > 0:
			n, _ := strconv.ParseInt(f[0], 10, 64)
			rss += n
		}
	}
	return inside, plan.Bytes(comm).Quote() + "[" + inside + "]", rss
}

// Explain says which limits made themselves felt, one line each, and how to raise them. Where everything was gone
// before the witness could look, otherwise is who is named.
func (g *Group) Explain(u Usage, w *Witness, otherwise string) []string {
	var out []string
	if u.OOMKills > 0 {
		by := otherwise
		if w != nil {
			w.mu.Lock()
			if w.seen != "" {
				by = w.seen
			}
			w.mu.Unlock()
		}
		if by != "" {
			by = " by " + by
		}
		out = append(out, fmt.Sprintf(
			"memory limit %s reached%s, everything in the sandbox was ended; raise it with --memory", Bytes(u.MemoryMax), by))
	}
	if u.PidsHit > 0 {
		out = append(out, fmt.Sprintf("limit of %d processes reached (%d times); raise it with --pids", u.PidsMax, u.PidsHit))
	}
	var quota, period int64
	if n, _ := fmt.Sscan(g.text("cpu.max"), &quota, &period); n == 2 && period > 0 && u.ThrottledUsec >= 1e6 {
		out = append(out, fmt.Sprintf("processor limit of %d%% reached (held back for %.1f s); raise it with --cpu",
			100*quota/period, float64(u.ThrottledUsec)/1e6))
	}
	return out
}

// Bytes shows an amount of memory in the unit that fits.
func Bytes(n int64) string {
	for _, u := range [...]struct {
		shift int
		name  string
	}{{40, "T"}, {30, "G"}, {20, "M"}, {10, "K"}} {
		if n >= 1<<u.shift {
			if n%(1<<u.shift) == 0 {
				return fmt.Sprintf("%d%s", n>>u.shift, u.name)
			}
			return fmt.Sprintf("%.1f%s", float64(n)/float64(int64(1)<<u.shift), u.name)
		}
	}
	return strconv.FormatInt(n, 10)
}
