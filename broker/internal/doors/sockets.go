//go:build linux

package doors

import (
	"path"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/relay"
	"sbx.example/sbx/broker/internal/request"
)

// Sockets grants the sockets that the request names. The default view has none of the host's.
func (d *Doors) Sockets() error {
	f := d.Settings.Features
	for _, x := range [...]struct {
		wanted bool
		grant  func() error
	}{{f.SSHAgent, d.sshAgent}, {f.GPGAgent, d.gpgAgent}, {f.Wayland, d.wayland}, {f.X11, d.x11}, {f.DBus, d.dbus}} {
		if !x.wanted {
			continue
		}
		if err := x.grant(); err != nil {
			return err
		}
	}
	for _, p := range f.Sockets {
		canon, err := d.socket("--socket", p)
		if err != nil {
			return err
		}
		d.In.Grants = append(d.In.Grants, planner.Grant{Path: canon, Mode: planner.Write, Explicit: true, Socket: true,
			Why: "--socket"})
		d.add(Door{name: "socket " + quoting.Quote(canon), path: canon, why: d.Settings.Origin("features.sockets")})
	}
	return nil
}

// relayed grants the socket of a filter: x.file in the session's folder, which is x.path inside.
func (d *Doors) relayed(flag string, x Door) {
	d.In.Grants = append(d.In.Grants, planner.Grant{Path: x.path, Source: x.file, Mode: planner.Write, Explicit: true,
		Socket: true, Why: flag})
	d.add(x)
}

const x11Relay = "x11" // in the session's folder

// x11 grants the socket of a nested X server.
func (d *Doors) x11() error {
	s := d.Settings
	n, ok := x11Display(s.Features.X11Server)
	if !ok {
		return &planner.Refusal{What: "--x11: a program that can talk to the X server can read every key and window of " +
			"every other",
			Hint: "start a nested server such as Xephyr or Xvfb and name its socket, /tmp/.X11-unix/X7, as " +
				"features.x11_server, or use --wayland"}
	}
	if err := d.ownServer(s.Features.X11Server); err != nil {
		return err
	}
	canon, server, err := d.hold("--x11", s.Features.X11Server)
	if err == nil {
		err = d.ownServer(canon) // it may have been named by a link
	}
	if err != nil {
		return err
	}
	inside := "/tmp/.X11-unix/X" + n
	d.In.Env = append(d.In.Env, "DISPLAY=:"+n)
	d.relayed("--x11", Door{name: "x11", path: inside, why: s.Origin("features.x11_server"), file: x11Relay,
		of: "the X server", serve: d.lead(server, x11Relay, inside)})
	return nil
}

// ownServer refuses the socket of the server of the person's own session. A display of the same number is taken for it,
// on whatever host: that may be this one, by any of its names.
func (d *Doors) ownServer(socket string) error {
	own := host.Lookup(d.Env, "DISPLAY")
	n, _ := x11Display(socket)
	display, _, _ := strings.Cut(strings.TrimPrefix(path.Base(own[strings.LastIndex(own, ":")+1:]), "X"), ".")
	a, err := strconv.Atoi(display)
	if b, berr := strconv.Atoi(n); err != nil || berr != nil || a != b {
		return nil
	}
	return &planner.Refusal{What: "--x11: " + quoting.Quote(socket) + " is the server of your own session, DISPLAY=" +
		quoting.Shell(own) + ": a program inside could read every key and window",
		Hint: "name the socket of a nested server such as Xephyr or Xvfb as features.x11_server, with a number of its own, " +
			"or use --wayland"}
}

// x11Display is the display's number in the name of an X server's socket.
func x11Display(socket string) (number string, ok bool) {
	number, ok = strings.CutPrefix(path.Base(socket), "X")
	return number, ok && number != "" && strings.Trim(number, "0123456789") == ""
}

// orgOpens says whether the organisation's policy allows this very socket by its name, without a wildcard.
func orgOpens(s request.Settings, canon string) bool {
	r, ok := s.Layers.Policy.Match(policy.Query{Kind: policy.KindSocket, Path: canon, Access: policy.Connect,
		Now: time.Now()})
	return ok && r.Decision == policy.Allow && r.Origin.Scope == policy.ScopeOrg &&
		r.Path().String() == pathname.Escape(canon)
}

// socket is where one really is, through which the whole host cannot be had.
func (d *Doors) socket(flag, p string) (canon string, err error) {
	s, in := d.Settings, d.In
	p, err = option.ExpandPath(p, in.Facts.Home, in.Facts.Cwd, in.Project)
	if err != nil {
		return "", option.Wrong(flag+": "+err.Error(), "")
	}
	canon, _, _, _ = host.Resolve(in.FS, p)
	if canon == "" {
		canon = path.Clean(p)
	}
	opened := orgOpens(s, canon)
	for _, c := range [...]string{path.Clean(p), canon} {
		if h := policy.HiddenBy(s.Concealed(), policy.KindSocket, c); h != nil && h.OrgOnly && !opened {
			return "", &planner.Refusal{What: flag + " " + quoting.Quote(p) + " is refused: " + h.Reason,
				Hint: "nothing inside a sandbox may talk to it; run the tool that needs it outside"}
		}
	}
	if !opened && ofContainerEngine(path.Base(canon)) {
		return "", &planner.Refusal{What: flag + " " + quoting.Quote(p) +
			" is refused: control of a container engine is control of the host",
			Hint: "nothing inside a sandbox may talk to it; rootless podman works inside with --containers"}
	}
	return d.find(flag, p)
}

// find is where a socket really is. It lies where no program in a sandbox could have put another, or a link to one.
func (d *Doors) find(flag, p string) (string, error) {
	canon, links, st, err := host.Resolve(d.In.FS, p)
	if err != nil {
		return "", &planner.Refusal{What: flag + " " + quoting.Quote(p), Err: err, Hint: "name a socket that exists"}
	}
	if st.Type != host.Socket {
		return "", &planner.Refusal{What: flag + " " + quoting.Quote(p) + " is not a socket",
			Hint: "files and directories are granted with --ro and --rw"}
	}
	writable := request.Programs(d.Env, d.Settings, d.In).Writable
	for _, at := range append([]host.LinkAt{{Path: canon}}, links...) {
		if program.Within(at.Path, writable) {
			return "", &planner.Refusal{What: flag + " " + quoting.Quote(p) + ": " + quoting.Quote(at.Path) +
				" lies where programs in the sandbox write: they can have it lead to any socket of yours",
				Hint: "have it in your runtime directory, or in another place that is not shown writable"}
		}
	}
	return canon, nil
}

// hold opens a socket of the host's to which a filter connects.
func (d *Doors) hold(flag, p string) (canon string, _ *relay.Upstream, err error) {
	if canon, err = d.socket(flag, p); err != nil {
		return "", nil, err
	}
	to, err := held(flag, canon)
	return canon, to, err
}

func held(flag, canon string) (*relay.Upstream, error) {
	to, err := relay.Hold(canon)
	if err != nil {
		return nil, &planner.Refusal{What: flag, Err: err}
	}
	return to, nil
}

// ofContainerEngine says whether a socket of this name is usually that of a container engine.
func ofContainerEngine(base string) bool {
	name, ok := strings.CutSuffix(base, ".sock")
	return ok && (strings.HasPrefix(name, "docker") || strings.HasPrefix(name, "podman") || name == "containerd")
}
