package plan

import (
	"fmt"
	"strconv"
	"strings"
)

// Text describes p to a person, one fact a line, in the order in which it is carried out.
func (p *Plan) Text() string {
	var b strings.Builder
	line := func(format string, a ...any) { fmt.Fprintf(&b, format+"\n", a...) }
	line("session    %s", p.Session)
	line("namespaces %s", p.namespacesText())
	id := p.Identity
	line("identity   uid %d (outside %d) gid %d (outside %d)", id.InsideUID, id.OutsideUID, id.InsideGID, id.OutsideGID)
	for _, r := range id.SubUIDs {
		line("identity   subordinate uids %d-%d", r.First, r.First+r.Count-1)
	}
	for _, r := range id.SubGIDs {
		line("identity   subordinate gids %d-%d", r.First, r.First+r.Count-1)
	}
	if p.Hostname != "" {
		line("hostname   %s", p.Hostname.Quote())
	}
	if p.Gate != nil {
		for i := range p.Gate.Dirs {
			line("gate       %s", p.Gate.Dirs[i].Text())
		}
	}
	for i := range p.Mounts {
		line("mount      %s", MountText(&p.Mounts[i]))
	}
	if p.Moved != nil {
		line("moved      %s is at %s", p.Moved.Host.Quote(), p.Moved.Inside.Quote())
	}
	for _, l := range p.Limits {
		line("limit      %s soft=%d hard=%d", l.Name, l.Soft, l.Hard)
	}
	for _, c := range p.Controls {
		line("control    %s %s", c.File, c.Value)
	}
	if len(p.Delegated) > 0 {
		line("control    handed down: %s", strings.Join(p.Delegated, " "))
	}
	line("privileges no_new_privs, no capabilities%s", p.lockedText())
	p.Landlock.text(line)
	line("seccomp    %s, %d instructions, notify=%t", p.Seccomp.Rules, len(p.Seccomp.Program), p.Seccomp.Notify)
	line("stdio      %s %s %s", p.Stdio[0], p.Stdio[1], p.Stdio[2])
	p.Bubblewrap.text(line)
	p.bwrapText(line)
	line("directory  %s", p.Process.Dir.Quote())
	for _, e := range p.Process.Env {
		line("env        %s", e.Quote())
	}
	argv := make([]string, len(p.Process.Argv))
	for i, a := range p.Process.Argv {
		argv[i] = a.Quote()
	}
	if p.Process.Idle {
		line("exec       nothing: programs are started later")
		return b.String()
	}
	line("exec       %s [%s] tty=%t pid1=%t", p.Process.Path.Quote(), strings.Join(argv, " "), p.Process.TTY,
		p.Process.AsPID1)
	return b.String()
}

// text describes the rules; nil has none.
func (l *Landlock) text(line func(string, ...any)) {
	if l == nil {
		return
	}
	line("landlock   ABI %d, handled %#x, scoped %#x", l.ABI, l.HandledFS, l.Scoped)
	if l.HandledNet != 0 {
		line("landlock   handled %#x of the network", l.HandledNet)
	}
	for _, r := range l.Rules {
		line("landlock   %s access=%#x", r.Path.Quote(), r.Access)
	}
}

// NamespacesText names the new namespaces.
func NamespacesText(n Namespaces) string {
	s := "mount pid"
	for _, x := range []struct {
		on   bool
		name string
	}{{n.User, "user"}, {n.Net, "net"}, {n.IPC, "ipc"}, {n.UTS, "uts"}, {n.Cgroup, "cgroup"}, {n.Time, "time"}} {
		if x.on {
			s += " " + x.name
		}
	}
	if n.JoinNet {
		s += " (net made before)"
	}
	if n.Time {
		s += fmt.Sprintf(" (clock offset %ds)", n.TimeOffset)
	}
	return s
}

// Text describes one directory of the gate in one line.
func (d *GateDir) Text() string {
	s := d.Path.Quote()
	switch {
	case d.Place:
		return s + " mounted"
	case d.Ask:
		s += " asks"
	default:
		s += " closed"
	}
	if d.List {
		s += " listed"
	}
	for _, n := range d.Names {
		s += " " + string(n.Kind) + "=" + n.Name.Quote()
		if n.Target != "" {
			s += "->" + n.Target.Quote()
		}
	}
	return s
}

// MountText describes one operation in one line.
func MountText(m *Mount) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%-7s %s", m.Kind, Quote(m.Target))
	if m.Source != "" {
		fmt.Fprintf(&b, " from %s", Quote(m.Source))
	}
	for _, l := range m.Lower {
		fmt.Fprintf(&b, " lower=%s", Quote(l))
	}
	for _, h := range m.Hide {
		fmt.Fprintf(&b, " hide=%s", Quote(h))
	}
	for _, f := range m.Files {
		fmt.Fprintf(&b, " file=%s:%s", Quote(f.Name), strconv.QuoteToASCII(f.Text))
	}
	if m.Upper != "" {
		fmt.Fprintf(&b, " upper=%s work=%s", Quote(m.Upper), Quote(m.Work))
	}
	if m.Access != "" {
		fmt.Fprintf(&b, " %s", m.Access)
	}
	if m.Size != 0 {
		fmt.Fprintf(&b, " size=%d inodes=%d", m.Size, m.Inodes)
	}
	if m.Mode != 0 {
		fmt.Fprintf(&b, " mode=%#o", m.Mode)
	}
	for _, f := range []struct {
		on   bool
		name string
	}{{m.Device, "dev"}, {m.NoExec, "noexec"}, {m.NoSymFollow, "nosymfollow"}, {m.NoUUID, "nouuid"},
		{m.Optional, "optional"}} {
		if f.on {
			b.WriteString(" " + f.name)
		}
	}
	if m.Why != "" {
		b.WriteString("  # " + m.Why)
	}
	return b.String()
}

// Background says whether the program begins in the background of its terminal, because it is part of a pipeline: it
// gets keys when it asks for them.
func (p *Plan) Background() bool {
	return p.Process.TTY && !p.Process.AsPID1 && (p.Stdio[0] != Pty || p.Stdio[1] != Pty)
}
