package doors

import (
	"net"
	"path"
	"strconv"
	"strings"
	"time"

	"sbx/broker/internal/host"
	"sbx/broker/internal/option"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/quoting"
	"sbx/broker/internal/request"
)

// Sockets grants the sockets that the request names. The default view has none of the host's.
func (d *Doors) Sockets() error {
	r, s, in := d.Request, d.Settings, d.In
	type grant struct{ flag, path string }
	var list []grant
	for _, p := range s.Features.Sockets {
		list = append(list, grant{flag: "--socket", path: p})
	}
	runtime := request.Absolute(d.Env, "XDG_RUNTIME_DIR", "/run/user/"+strconv.Itoa(int(in.Facts.UID)))
	if s.Features.SSHAgent {
		p := host.Lookup(d.Env, "SSH_AUTH_SOCK")
		if p == "" {
			return &planner.Refusal{What: "--ssh-agent: SSH_AUTH_SOCK is not set, so there is no agent",
				Hint: "start one with ssh-agent, or leave the option out"}
		}
		canon, err := d.socket("--ssh-agent", p)
		if err != nil {
			return err
		}
		in.Grants = append(in.Grants, planner.Grant{Path: sshAgentInside, Source: sshAgentRelay, Mode: planner.Write,
			Explicit: true, Socket: true, Why: "--ssh-agent"})
		in.Env = append(in.Env, "SSH_AUTH_SOCK="+sshAgentInside)
		d.add(Door{name: strings.Join(append([]string{"ssh-agent"}, r.SSHKeys...), " "), path: sshAgentInside,
			why: s.Origin("features.ssh_agent"), file: sshAgentRelay, of: "the SSH agent", serve: d.sshRelay(canon)})
	}
	if s.Features.GPGAgent {
		if err := d.gpgAgent(); err != nil {
			return err
		}
	}
	if s.Features.Wayland {
		if err := d.wayland(runtime); err != nil {
			return err
		}
	}
	if s.Features.X11 {
		n, ok := strings.CutPrefix(path.Base(s.Features.X11Server), "X")
		if !ok || n == "" || strings.Trim(n, "0123456789") != "" {
			return &planner.Refusal{What: "--x11: a program that can talk to the X server can read every key and window of " +
				"every other",
				Hint: "start a nested server such as Xephyr or Xvfb and name its socket, /tmp/.X11-unix/X7, as " +
					"features.x11_server, or use --wayland"}
		}
		server, err := d.socket("--x11", s.Features.X11Server)
		if err != nil {
			return err
		}
		inside := "/tmp/.X11-unix/X" + n
		in.Grants = append(in.Grants, planner.Grant{Path: inside, Source: "x11", Mode: planner.Write, Explicit: true,
			Socket: true, Why: "--x11"})
		in.Env = append(in.Env, "DISPLAY=:"+n)
		d.add(Door{name: "x11", path: inside, why: s.Origin("features.x11_server"), file: "x11", of: "the X server",
			serve: func(l *net.UnixListener, _ Session, _ Refuser) { lead(l, server) }})
	}
	if s.Features.DBus {
		spawn, err := d.busRelay(request.Programs(d.Env, s, in))
		if err != nil {
			return err
		}
		in.Grants = append(in.Grants, planner.Grant{Path: busInside, Source: busRelay, Mode: planner.Write, Explicit: true,
			Socket: true, Why: "--dbus"})
		in.Env = append(in.Env, "DBUS_SESSION_BUS_ADDRESS=unix:path="+busInside)
		d.add(Door{name: strings.Join(append([]string{"dbus"}, r.BusNames...), " "), path: busInside,
			why: s.Origin("features.dbus"), file: busRelay, spawn: spawn})
	}
	for _, g := range list {
		p, err := d.socket(g.flag, g.path)
		if err != nil {
			return err
		}
		in.Grants = append(in.Grants, planner.Grant{Path: p, Mode: planner.Write, Explicit: true, Socket: true, Why: g.flag})
		if name := strings.TrimPrefix(g.flag, "--"); name == "socket" {
			d.add(Door{name: "socket " + quoting.Quote(p), path: p, why: s.Origin("features.sockets")})
		} else {
			d.add(Door{name: name, path: p, why: s.Origin("features." + strings.ReplaceAll(name, "-", "_"))})
		}
	}
	return nil
}

// orgOpens says whether the organisation's policy allows this very socket by its name, without a wildcard.
func orgOpens(s request.Settings, canon string) bool {
	r, ok := s.Layers.Policy.Match(policy.Query{Kind: policy.KindSocket, Path: canon, Access: policy.Connect,
		Now: time.Now()})
	return ok && r.Decision == policy.Allow && r.Origin.Scope == policy.ScopeOrg &&
		r.Path().String() == policy.EscapePath(canon)
}

// socket checks one: it must be a socket, and none through which the whole host can be had.
func (d *Doors) socket(flag, p string) (string, error) {
	s, in := d.Settings, d.In
	p, err := option.ExpandPath(p, in.Facts.Home, in.Facts.Cwd, in.Project)
	if err != nil {
		return "", option.Wrong(flag+": "+err.Error(), "")
	}
	canon, _, st, err := host.Resolve(in.FS, p)
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
	if base := path.Base(canon); !opened && (strings.HasPrefix(base, "docker") && strings.HasSuffix(base, ".sock") ||
		strings.HasPrefix(base, "podman") && strings.HasSuffix(base, ".sock") || base == "containerd.sock") {
		return "", &planner.Refusal{What: flag + " " + quoting.Quote(p) +
			" is refused: control of a container engine is control of the host",
			Hint: "nothing inside a sandbox may talk to it; rootless podman works inside with --containers"}
	}
	if err != nil {
		return "", &planner.Refusal{What: flag + " " + quoting.Quote(p), Err: err, Hint: "name a socket that exists"}
	}
	if st.Type != host.Socket {
		return "", &planner.Refusal{What: flag + " " + quoting.Quote(p) + " is not a socket",
			Hint: "files and directories are granted with --ro and --rw"}
	}
	return canon, nil
}
