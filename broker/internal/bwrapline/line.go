package bwrapline

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/plan"
)

// Host is what has to be known of the host.
type Host struct {
	Setuid bool                   // bubblewrap is set-user-id: it refuses --size then
	Exists func(path string) bool // follows links
}

// Loss is something of a plan for which bubblewrap has no word.
type Loss struct{ What, Why, Fix string }

// Options are bubblewrap's options for the namespaces and mounts of p, without a program. What is not about those
// process 1 does inside: the environment, limits, Landlock, the filter, the terminal. The error is about a mount that a
// plan for this backend does not have.
func Options(p *plan.Plan, h Host) ([]plan.Bytes, []Loss, error) {
	w := &writer{host: h, mounts: p.Mounts}
	w.add("--die-with-parent", "--unshare-pid", "--unshare-uts", "--hostname", string(p.Hostname))
	for _, n := range [...]struct {
		on   bool
		word string
	}{{p.Namespaces.IPC, "--unshare-ipc"}, {p.Namespaces.Net, "--unshare-net"},
		{p.Namespaces.Cgroup, "--unshare-cgroup-try"}} { // -try: kernels without control groups
		if n.on {
			w.add(n.word)
		}
	}
	for i := range p.Mounts {
		if err := w.mount(i); err != nil {
			return nil, nil, fmt.Errorf("mount %d (%s %s): %w", i, p.Mounts[i].Kind, plan.Quote(p.Mounts[i].Target), err)
		}
	}
	return w.words, w.losses(), nil
}

// Alone is a whole command line that can be typed: it runs the program of p with what bubblewrap alone does, by the
// words that Options has returned.
func Alone(p *plan.Plan, bwrap string, options []plan.Bytes) []string {
	line := append([]string{bwrap}, plan.StringsOf(options)...)
	line = append(line, "--new-session", "--clearenv")
	for _, e := range p.Process.Env {
		name, value, _ := strings.Cut(string(e), "=")
		line = append(line, "--setenv", name, value)
	}
	line = append(line, "--chdir", string(p.Process.Dir), "--", string(p.Process.Path))
	return append(line, plan.StringsOf(p.Process.Argv)[1:]...)
}

// writer writes the words in the order of the mounts.
type writer struct {
	host   Host
	mounts []plan.Mount
	words  []plan.Bytes

	dev                 bool // there is a /dev
	sizes, flags, nodes bool // what was left out
}

func (w *writer) add(words ...string) { w.words = append(w.words, plan.BytesOf(words)...) }

func (w *writer) mount(i int) error {
	m := &w.mounts[i]
	w.flags = w.flags || m.NoExec || m.NoSymFollow
	if m.Target == "/dev" || strings.HasPrefix(m.Target, "/dev/") {
		if !w.dev {
			w.dev = true
			w.add("--dev", "/dev")
		}
		if hasDev(m) {
			return nil
		}
	}
	switch m.Kind {
	case plan.Tmpfs:
		w.tmpfs(m, i == 0)
	case plan.Dir:
		if m.Mode != 0o755 {
			w.add("--perms", octal(m.Mode))
		}
		w.add("--dir", m.Target)
	case plan.File:
		if !w.mountedLater(i) {
			return fmt.Errorf("there are no words for an empty file")
		}
	case plan.Symlink:
		w.add("--symlink", m.Source, m.Target)
	case plan.Bind:
		w.add(bindWord(m), m.Source, m.Target)
	case plan.Proc:
		w.add("--proc", m.Target)
	case plan.Mqueue:
		w.add("--mqueue", m.Target)
	case plan.Protect, plan.Judged:
		return w.protect(i)
	case plan.Mask: // a device: on a mount with nodev it could not even be opened
		if !m.Optional || w.host.Exists(m.Target) {
			w.add("--dev-bind", "/dev/null", m.Target)
		}
	case plan.Remount:
		w.remount(m)
	default:
		return fmt.Errorf("there are no words for it")
	}
	return nil
}

// hasDev says whether --dev makes what m does.
func hasDev(m *plan.Mount) bool {
	name := strings.TrimPrefix(m.Target, "/dev/")
	switch m.Kind {
	case plan.Dir:
		return name == "/dev" || name == "pts" || name == "shm"
	case plan.Devpts:
		return name == "pts"
	case plan.Symlink:
		return name == "ptmx" || name == "fd" || name == "stdin" || name == "stdout" || name == "stderr"
	case plan.File:
		return isUsual(name)
	case plan.Bind:
		return m.Device && m.Source == m.Target && isUsual(name)
	}
	return false
}

// isUsual says whether --dev has a device of that name.
func isUsual(name string) bool {
	switch name {
	case "null", "zero", "full", "random", "urandom", "tty":
		return true
	}
	return false
}

func octal(mode uint32) string { return fmt.Sprintf("%04o", mode) }

func (w *writer) tmpfs(m *plan.Mount, root bool) {
	if root { // it has one of its own
		return
	}
	w.nodes = w.nodes || m.Inodes > 0 && m.Access != plan.ReadOnly
	if m.Mode != 0o755 {
		w.add("--perms", octal(m.Mode))
	}
	switch {
	case m.Size > 0 && !w.host.Setuid:
		w.add("--size", strconv.FormatInt(m.Size, 10))
	case m.Size > 0 && m.Access != plan.ReadOnly:
		w.sizes = true
	}
	w.add("--tmpfs", m.Target)
	if m.Access == plan.ReadOnly {
		w.add("--remount-ro", m.Target)
	}
}

func bindWord(m *plan.Mount) string {
	word := "--bind"
	switch {
	case m.Device:
		word = "--dev-bind"
	case m.Access == plan.ReadOnly:
		word = "--ro-bind"
	}
	if m.Optional {
		word += "-try"
	}
	return word
}

// mountedLater says whether something is mounted on the file of operation i. bubblewrap makes the places that it mounts
// on.
func (w *writer) mountedLater(i int) bool {
	for _, m := range w.mounts[i+1:] {
		if m.Target == w.mounts[i].Target && (m.Kind == plan.Bind || m.Kind == plan.Mask) {
			return true
		}
	}
	return false
}

// protect shows what operation i covers by its own name once more. Below /proc that is the host's, which says the same:
// what is covered there is about the kernel, or about the namespaces of who asks.
func (w *writer) protect(i int) error {
	m := &w.mounts[i]
	above := w.above(i)
	again := *m
	switch {
	case above != nil && above.Kind == plan.Proc:
		again.Source = m.Target
	case above != nil && above.Kind == plan.Bind:
		again.Source = path.Join(above.Source, strings.TrimPrefix(m.Target, above.Target))
	default:
		return fmt.Errorf("it covers no tree of the host's")
	}
	w.add(bindWord(&again), again.Source, again.Target)
	return nil
}

// above is the deepest mount at or above the target of operation i.
func (w *writer) above(i int) *plan.Mount {
	var deepest *plan.Mount
	target := w.mounts[i].Target
	for j := range w.mounts[:i] {
		m := &w.mounts[j]
		switch m.Kind {
		case plan.Dir, plan.File, plan.Symlink, plan.Protect, plan.Judged, plan.Remount:
			continue
		}
		within := m.Target == target || m.Target == "/" || strings.HasPrefix(target, m.Target+"/")
		if within && (deepest == nil || len(m.Target) >= len(deepest.Target)) {
			deepest = m
		}
	}
	return deepest
}

// remount makes the mount at a place read-only. /dev is one of its own, other than in the plan.
func (w *writer) remount(m *plan.Mount) {
	if m.Target == "/" && w.dev {
		w.add("--remount-ro", "/dev")
	}
	w.add("--remount-ro", m.Target)
}

// losses are what was left out.
func (w *writer) losses() []Loss {
	var out []Loss
	if w.sizes {
		out = append(out, Loss{What: "sizes of /tmp and other places in memory",
			Why: "a set-user-id bwrap refuses --size, so each may take half of the memory",
			Fix: "--memory, where a control group can be had (sbx doctor)"})
	}
	if w.nodes {
		out = append(out, Loss{What: "number of files in /tmp and other places in memory",
			Why: "bwrap has no option for it"})
	}
	if w.flags {
		out = append(out, Loss{What: "noexec and nosymfollow of mounts",
			Why: "bwrap has no option for them, so /run, /dev/shm and caches of what is fetched can hold programs that run"})
	}
	return out
}
