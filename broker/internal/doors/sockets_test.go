//go:build linux

package doors

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
)

// hostWith makes a directory with sockets of those names, a file and a directory.
func hostWith(t *testing.T, names ...string) string {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		l, err := net.Listen("unix", filepath.Join(dir, n))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { l.Close() })
	}
	if err := os.WriteFile(dir+"/file", nil, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

func doorsAt(dir string, env ...string) *Doors {
	return &Doors{Request: &request.Request{}, Env: env, In: &planner.Input{FS: host.FS{},
		Facts: host.Facts{UID: 1000, Home: dir, Cwd: dir}}}
}

// refusal is the text and the hint of a refusal.
func refusal(err error) string {
	var r *planner.Refusal
	if errors.As(err, &r) {
		return r.Error() + " | " + r.Hint
	}
	if err == nil {
		return "nothing"
	}
	return "not a refusal: " + err.Error()
}

// TestSocketIsChecked: only a socket is granted, by the name that it really has, and none by which the host can be had.
func TestSocketIsChecked(t *testing.T) {
	dir := hostWith(t, "app.sock", "docker.sock", "podman.sock", "containerd.sock", "docker.socket")
	for link, to := range map[string]string{"link": "app.sock", "harmless": "docker.sock"} {
		if err := os.Symlink(to, filepath.Join(dir, link)); err != nil {
			t.Fatal(err)
		}
	}
	d := doorsAt(dir)
	for name, want := range map[string]string{"app.sock": "app.sock", "link": "app.sock",
		"docker.socket": "docker.socket"} {
		if p, err := d.socket("--socket", dir+"/"+name); err != nil || p != dir+"/"+want {
			t.Errorf("%s: %q %v", name, p, err)
		}
	}
	const engine = "control of a container engine is control of the host"
	for name, want := range map[string]string{"docker.sock": engine, "podman.sock": engine, "containerd.sock": engine,
		"harmless": engine, "file": "is not a socket", "missing": "name a socket that exists"} {
		if _, err := d.socket("--socket", dir+"/"+name); !strings.Contains(refusal(err), want) {
			t.Errorf("%s: %s, want %q", name, refusal(err), want)
		}
	}
	for _, p := range []string{"/run/docker.sock", "/var/run/docker.sock"} { // there or not
		if _, err := d.socket("--socket", p); err == nil || strings.Contains(refusal(err), "name a socket that exists") {
			t.Errorf("%s: %s", p, refusal(err))
		}
	}
}

// TestAgentsAreGrantedBehindFilters: inside there is the filter's socket, and the variable names it.
func TestAgentsAreGrantedBehindFilters(t *testing.T) {
	dir := hostWith(t, "agent", "wayland-7", "X7")
	d := doorsAt(dir, "SSH_AUTH_SOCK="+dir+"/agent", "WAYLAND_DISPLAY=wayland-7", "XDG_RUNTIME_DIR="+dir)
	d.Settings.Features = policy.Features{SSHAgent: true, Wayland: true, X11: true, X11Server: dir + "/X7"}
	if err := d.Sockets(); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"SSH_AUTH_SOCK=" + sshAgentInside, "WAYLAND_DISPLAY=" + waylandInside, "DISPLAY=:7"} {
		name, value, _ := strings.Cut(want, "=")
		if got := host.Lookup(d.In.Env, name); got != value {
			t.Errorf("%s is %q, want %q", name, got, value)
		}
	}
	if len(d.In.Grants) != 3 {
		t.Errorf("%d grants", len(d.In.Grants))
	}
	for _, g := range d.In.Grants {
		if strings.HasPrefix(g.Path, dir) || g.Source == "" || !g.Socket {
			t.Errorf("the host's own socket is granted: %+v", g)
		}
	}
	if got := strings.Join(d.Names(), " "); got != "ssh-agent wayland x11" {
		t.Errorf("told of %q", got)
	}
}

// TestWhatIsMissingIsNamed: an option that cannot be had is refused with what to do, and grants nothing.
func TestWhatIsMissingIsNamed(t *testing.T) {
	dir := hostWith(t)
	for want, f := range map[string]policy.Features{
		"SSH_AUTH_SOCK is not set":            {SSHAgent: true},
		"WAYLAND_DISPLAY is not set":          {Wayland: true},
		"DBUS_SESSION_BUS_ADDRESS is not set": {DBus: true},
		"no restricted socket of an agent":    {GPGAgent: true},
		"can read every key and window":       {X11: true, X11Server: "/tmp/.X11-unix/display"},
	} {
		d := doorsAt(dir)
		d.Settings.Features = f
		if err := d.Sockets(); !strings.Contains(refusal(err), want) || len(d.In.Grants) > 0 {
			t.Errorf("%s: %s, %d grants", want, refusal(err), len(d.In.Grants))
		}
	}
}

// TestSocketsOfPrograms: no door leads to a socket in whose place programs inside can put another, nor through one of
// their links.
func TestSocketsOfPrograms(t *testing.T) {
	dir := hostWith(t, "agent", "wayland-7", "X7", "S.gpg-agent.extra")
	theirs := t.TempDir()
	if err := os.Symlink(dir, theirs+"/link"); err != nil {
		t.Fatal(err)
	}
	grant := []planner.Grant{{Path: theirs, Mode: planner.Write}}
	for name, f := range map[string]policy.Features{
		"ssh": {SSHAgent: true}, "gpg": {GPGAgent: true}, "wayland": {Wayland: true}, "x11": {X11: true}, "socket": {},
	} {
		for at, want := range map[string]string{dir: "nothing", theirs + "/link": "programs in the sandbox write"} {
			for _, writable := range [][]planner.Grant{nil, grant} {
				d := doorsAt(dir, "SSH_AUTH_SOCK="+at+"/agent", "WAYLAND_DISPLAY="+at+"/wayland-7", "GNUPGHOME="+at)
				d.In.Grants = writable
				if d.Settings.Features = f; f.X11 {
					d.Settings.Features.X11Server = at + "/X7"
				} else if name == "socket" {
					d.Settings.Features.Sockets = []string{at + "/agent"}
				}
				want := want
				if writable == nil {
					want = "nothing"
				}
				if err := d.Sockets(); !strings.Contains(refusal(err), want) {
					t.Errorf("%s at %s with %d grants: %s, want %q", name, at, len(writable), refusal(err), want)
				}
			}
		}
		d := doorsAt(dir, "SSH_AUTH_SOCK="+dir+"/agent", "WAYLAND_DISPLAY="+dir+"/wayland-7", "GNUPGHOME="+dir)
		d.In.Project, d.Settings.Features = dir, f
		d.Settings.Features.X11Server, d.Settings.Features.Sockets = dir+"/X7", []string{dir + "/agent"}
		if err := d.Sockets(); !strings.Contains(refusal(err), "programs in the sandbox write") {
			t.Errorf("%s in the project: %s", name, refusal(err))
		}
	}
}

// TestBusOfPrograms: nor is a bus whose socket programs could have put there.
func TestBusOfPrograms(t *testing.T) {
	dir := hostWith(t, "bus")
	for at, want := range map[string]string{"path=" + dir + "/b%75s,guid=0": "programs in the sandbox write",
		"abstract=x;unix:path=" + dir + "/bus": "programs in the sandbox write", "path=" + dir + "/none": "no such file"} {
		d := doorsAt(dir, "DBUS_SESSION_BUS_ADDRESS=unix:"+at)
		d.Settings.Features.DBus = true
		for range 2 {
			if err := d.Sockets(); strings.Contains(refusal(err), want) != (d.In.Project == dir || want == "no such file") {
				t.Errorf("%s, the project is %q: %s", at, d.In.Project, refusal(err))
			}
			d.In.Project = dir
		}
	}
}

// TestOwnDisplay: the server of the person's own session is refused, however it is named, and another one is not.
func TestOwnDisplay(t *testing.T) {
	dir := hostWith(t, "X7")
	if err := os.Symlink(dir+"/X7", dir+"/X8"); err != nil {
		t.Fatal(err)
	}
	const own = "of your own"
	for display, want := range map[string]string{":7": own, ":7.0": own, "unix:7": own, "localhost:7.0": own, ":07": own,
		"box/unix:7": own, "unix/:7": own, "box:7.0": own, "[::1]:7": own, "/tmp/.X11-unix/X7": own,
		"unix:/tmp/.X11-unix/X7": own, ":70": "nothing", ":0": "nothing", "": "nothing", "localhost:10.7": "nothing",
		"unix:8": "nothing"} {
		for _, name := range []string{"/X7", "/X8"} {
			if name == "/X8" && display == "unix:8" {
				want = own // the link's own number
			}
			d := doorsAt(dir, "DISPLAY="+display)
			d.Settings.Features = policy.Features{X11: true, X11Server: dir + name}
			if err := d.Sockets(); !strings.Contains(refusal(err), want) {
				t.Errorf("DISPLAY=%s, %s: %s, want %q", display, name, refusal(err), want)
			}
		}
	}
}

func TestX11Display(t *testing.T) {
	for socket, want := range map[string]string{"/tmp/.X11-unix/X7": "7", "/tmp/.X11-unix/X12": "12", "/tmp/X": "",
		"/tmp/.X11-unix/X0/../Xy": "", "": "", "/tmp/.X11-unix/7": "", "/tmp/X7 ": "", "/tmp/X-1": ""} {
		if n, ok := x11Display(socket); ok != (want != "") || ok && n != want {
			t.Errorf("%q: %q %v", socket, n, ok)
		}
	}
}

// TestGnuPGSocket: the restricted socket is looked for where GnuPG puts it, and nowhere else.
func TestGnuPGSocket(t *testing.T) {
	d := doorsAt("/home/u")
	if got := strings.Join(d.gpgSockets(d.In.Facts), " "); got != "/run/user/1000/gnupg/S.gpg-agent.extra "+
		"/home/u/.gnupg/S.gpg-agent.extra" {
		t.Errorf("%q", got)
	}
	d = doorsAt("/home/u", "GNUPGHOME=/home/u/.gnupg/")
	if got := d.gpgSockets(d.In.Facts); got[0] != "/run/user/1000/gnupg/S.gpg-agent.extra" {
		t.Errorf("%q", got)
	}
	d = doorsAt("/home/u", "GNUPGHOME=/srv/keys")
	// what gpgconf --list-dirs says for this home
	if got := d.gpgSockets(d.In.Facts); !strings.HasPrefix(got[0], "/run/user/1000/gnupg/d.") || len(got[0]) !=
		len("/run/user/1000/gnupg/d./S.gpg-agent.extra")+24 || got[1] != "/srv/keys/S.gpg-agent.extra" {
		t.Errorf("%q", got)
	}
}
