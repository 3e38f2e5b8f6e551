package plan

import (
	"fmt"
	"slices"
	"strings"
)

// Brief tells a person in about ten lines what Text tells in full; asks says whether the rest is asked about.
func (p *Plan) Brief(asks bool) string {
	var b strings.Builder
	line := func(what, text string) { fmt.Fprintf(&b, "%-11s %s\n", what, text) }
	line("runs", p.command())
	line("in", p.Process.Dir.Quote())
	if p.Moved != nil {
		line("project", p.Moved.Host.Quote()+" is at "+p.Moved.Inside.Quote())
	}
	line("writable", several(p.Writable(), "nothing"))
	var over, own, shown []string
	for i := range p.Mounts {
		switch m := &p.Mounts[i]; {
		case m.Kind == Overlay && m.Upper != "":
			over = append(over, Quote(m.Target))
		case m.Kind == Tmpfs && m.Why == "" && m.Target != "/":
			own = append(own, Quote(m.Target))
		case (m.Kind == Bind || m.Kind == Overlay) && m.Access == ReadOnly && !m.Device:
			shown = append(shown, Quote(m.Target))
		}
	}
	if p.InPlace != nil {
		own = append(own, p.InPlace.Tmp.Quote())
	}
	if len(over) > 0 {
		line("overlay", several(over, "")+": what is written stays in the session")
	}
	line("own", several(own, "nothing")+": empty at first, gone at the end")
	line("read-only", several(shown, "nothing"))
	line("hidden", several(p.hidden(), "nothing"))
	rest := "does not exist inside"
	if p.InPlace != nil {
		rest = "is refused"
	}
	if asks {
		rest = "is asked about at its first access"
	}
	line("else", rest)
	line("network", p.network())
	line("limits", several(p.bounds(), "none"))
	line("environment", fmt.Sprintf("%d variables", len(p.Process.Env)))
	return b.String()
}

// command is the program with as many of its words as fit a line.
func (p *Plan) command() string {
	if p.Process.Idle {
		return "nothing: programs are started later"
	}
	const room = 80
	text := p.Process.Path.Quote()
	for i, a := range p.Process.Argv[1:] {
		if len(text)+len(a) > room {
			return fmt.Sprintf("%s and %d more words", text, len(p.Process.Argv)-1-i)
		}
		text += " " + a.Quote()
	}
	return text
}

// LoginPlace is where folders of logins are inside, which are elsewhere on the host.
const LoginPlace = "/run/sbx/login/"

// EndpointPlace is where the sockets of endpoints are inside.
const EndpointPlace = "/run/sbx/endpoint/"

// Writable are the trees of the host's that the program may write, by the host's paths, once each and without those
// that lie in another.
func (p *Plan) Writable() (list []string) {
	for i := range p.Mounts {
		m := &p.Mounts[i]
		theirs := m.Source == p.OnHost(m.Target) || strings.HasPrefix(m.Target, LoginPlace)
		if (m.Kind == Bind || m.Kind == Fuse) && m.Access == ReadWrite && !m.Device && theirs && !p.isTmp(m) &&
			!slices.ContainsFunc(list, func(l string) bool { return strings.HasPrefix(Quote(m.Source)+"/", l+"/") }) {
			list = append(list, Quote(m.Source))
		}
	}
	return list
}

// hidden are the names that do not exist inside though the host may have them.
func (p *Plan) hidden() (list []string) {
	for i := range p.Mounts {
		m := &p.Mounts[i]
		for _, h := range m.Hide {
			list = append(list, Quote(m.Target+"/"+h))
		}
	}
	if p.Gate == nil {
		return list
	}
	for i := range p.Gate.Dirs {
		d := &p.Gate.Dirs[i]
		for _, n := range d.Names {
			if n.Kind == Absent {
				list = append(list, (Bytes(strings.TrimSuffix(string(d.Path), "/")) + "/" + n.Name).Quote())
			}
		}
	}
	return list
}

func (p *Plan) network() string {
	switch {
	case p.HostNetwork():
		return "the host's"
	case p.Namespaces.JoinNet:
		return "of its own, to what was allowed"
	}
	return "none"
}

// bounds are the limits that somebody may run into.
func (p *Plan) bounds() (list []string) {
	for _, c := range p.Controls {
		list = append(list, c.File+" "+c.Value)
	}
	for _, l := range p.Limits {
		if l.Name == "nproc" || l.Name == "as" || l.Name == "nofile" {
			list = append(list, fmt.Sprintf("%s %d", l.Name, l.Soft))
		}
	}
	return list
}

// several names a few of a list, if there are any.
func several(list []string, none string) string {
	if len(list) == 0 {
		return none
	}
	return Few(list, 6, " ")
}

// Few names the first of a list, and how many more there are.
func Few(list []string, most int, between string) string {
	if n := len(list) - most; n > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(list[:most], between), n)
	}
	return strings.Join(list, between)
}
