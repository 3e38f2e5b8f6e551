//go:build linux

package checks

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// lab is a home directory with canaries, made for one run and removed after it.
type lab struct {
	root    string
	own     bool // root was made here and is removed at the end
	tag     string
	port    string
	shmKey  int
	shmID   int
	master  *os.File
	tty     string
	probe   string
	sbx     string
	nap     *os.Process
	hold    io.Closer // what keeps nap alive
	sockets []net.Listener
	outside []string // files made outside root, such as below /tmp
}

// newLab makes the fixed part: directories, host socket, pty. dir empty means a new directory below /var/tmp:
// a lab below /tmp would be hidden by the private /tmp of every sandbox, whatever the mount view is worth.
func newLab(dir, sbx, probe string) (*lab, error) {
	l := &lab{root: dir, sbx: sbx, shmID: -1}
	if dir == "" {
		root, err := os.MkdirTemp("/var/tmp", "sbx-selftest-"+strconv.Itoa(os.Getpid())+"-")
		if err != nil {
			return nil, fmt.Errorf("making the lab: %w; name another directory with Lab", err)
		}
		l.root, l.own = root, true
	}
	l.tag = "sbxlab" + strconv.Itoa(os.Getpid())
	l.shmKey = 0x53000000 | os.Getpid()&0xffffff
	bin := filepath.Join(l.root, "bin")
	for _, d := range []string{bin, l.path("{PROJ}"), l.path("{RUN}")} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			return l, fmt.Errorf("making the lab: %w", err)
		}
	}
	l.probe = filepath.Join(bin, "probe")
	if err := copyFile(probe, l.probe); err != nil {
		return l, fmt.Errorf("copying the probe: %w", err)
	}
	p, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		return l, fmt.Errorf("finding a free port: %w", err)
	}
	l.port = strconv.Itoa(p.Addr().(*net.TCPAddr).Port)
	p.Close()
	l.openPty()
	if err := l.listen("unix", l.path("{HSOCK}")); err != nil {
		return l, err
	}
	return l, nil
}

func copyFile(from, to string) error {
	b, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, b, 0o700)
}

// path fills in the placeholders.
func (l *lab) path(s string) string {
	if !strings.Contains(s, "{") {
		return s
	}
	home := l.root + "/home"
	pid := "0"
	if l.nap != nil {
		pid = strconv.Itoa(l.nap.Pid)
	}
	return strings.NewReplacer("{LAB}", l.root, "{HOME}", home, "{PROJ}", home+"/proj", "{PROJ2}", home+"/plain",
		"{SECRET}", home+"/.ssh/id_rsa",
		"{OTHER}", home+"/other/notes.txt", "{RO}", home+"/rodir/pub.txt", "{RODIR}", home+"/rodir", "{HSOCK}",
		home+"/rodir/host.sock", "{RUN}", l.root+"/run",
		"{HPID}", pid, "{HTTY}", l.tty, "{TAG}", l.tag, "{PORT}", l.port, "{SHMKEY}", strconv.Itoa(l.shmKey), "{UID}",
		strconv.Itoa(os.Getuid()),
		"{SBX}", l.sbx, "{PROBE}", l.probe).Replace(s)
}

func (l *lab) paths(list []string) []string {
	out := make([]string, len(list))
	for i, s := range list {
		out[i] = l.path(s)
	}
	return out
}

// base are the canaries and the repository that every check may count on.
func base() []Setup {
	file := func(path, text string) Setup { return Setup{Kind: "file", Path: path, Text: text} }
	return []Setup{
		file("{SECRET}", "CANARY-SSH\n"), file("{HOME}/.aws/credentials", "CANARY-AWS\n"), file("{OTHER}", "CANARY-OTHER\n"),
		file("{RO}", "PUBLIC\n"), file("{HOME}/.bashrc", "rc\n"), file("{PROJ}/README", "hi\n"), file("{LAB}/scratch",
			"scratch\n"),
		file("{PROJ}/.vscode/settings.json", "{}\n"), file("{PROJ}/.git/HEAD", "ref: refs/heads/main\n"),
		file("{PROJ}/.git/config", "[core]\n\trepositoryformatversion = 0\n"), file("{PROJ}/.git/hooks/sample", "#\n"),
		{Kind: "dir", Path: "{PROJ}/.git/objects/info"}, {Kind: "dir", Path: "{PROJ}/.git/refs/heads"},
		{Kind: "dir", Path: "{PROJ}/.git/info"},
	}
}

// prepare puts everything back that earlier acts may have changed, and adds what the checks need.
func (l *lab) prepare(checks []Check) error {
	for _, dir := range []string{"{PROJ}", "{PROJ2}"} {
		if err := os.RemoveAll(l.path(dir)); err != nil {
			return fmt.Errorf("clearing the lab: %w", err)
		}
	}
	if err := os.MkdirAll(l.path("{PROJ}"), 0o700); err != nil {
		return fmt.Errorf("making the lab: %w", err)
	}
	setups := base()
	for _, c := range checks {
		setups = append(setups, c.Setup...)
	}
	for _, s := range setups {
		if err := l.make(s); err != nil {
			return fmt.Errorf("preparing %s %s: %w", s.Kind, l.path(s.Path), err)
		}
	}
	return nil
}

func (l *lab) make(s Setup) error {
	p := l.path(s.Path)
	if strings.HasPrefix(p, "/") {
		if err := os.MkdirAll(filepath.Dir(p), 0o700); err != nil {
			return err
		}
		if !strings.HasPrefix(p, l.root+"/") {
			l.outside = append(l.outside, p)
		}
	}
	switch s.Kind {
	case "file":
		return os.WriteFile(p, []byte(l.path(s.Text)), 0o600)
	case "dir":
		return os.MkdirAll(p, 0o700)
	case "link":
		_ = os.Remove(p)
		return os.Symlink(l.path(s.Text), p)
	case "hardlink":
		_ = os.Remove(p)
		return os.Link(l.path(s.Text), p)
	case "socket":
		return l.listen("unix", p)
	case "abstract":
		return l.listen("unix", "@"+p)
	case "agent":
		return l.service(p, sshAgent)
	case "nixdaemon":
		return l.service(p, nixDaemon(l.path(s.Text)))
	case "shm":
		id, err := unix.SysvShmGet(l.shmKey, 4096, unix.IPC_CREAT|0o600)
		l.shmID = id
		return err
	}
	return errors.New("BUG(selftest): unknown kind")
}

// listen answers every connection with the canary, once per address.
func (l *lab) listen(network, at string) error {
	for _, s := range l.sockets {
		if s.Addr().String() == at {
			return nil
		}
	}
	if at[0] == '/' {
		_ = os.Remove(at)
		if err := os.MkdirAll(filepath.Dir(at), 0o700); err != nil {
			return err
		}
	}
	s, err := net.Listen(network, at)
	if err != nil {
		return fmt.Errorf("listening at %s: %w", at, err)
	}
	l.sockets = append(l.sockets, s)
	go func() {
		for {
			c, err := s.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte("CANARY\n"))
			c.Close()
		}
	}()
	return nil
}

// openPty makes a terminal of the host's; without one the terminal check is skipped by its missing path.
func (l *lab) openPty() {
	m, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return
	}
	n, err := unix.IoctlGetInt(int(m.Fd()), unix.TIOCGPTN)
	if err != nil || unix.IoctlSetPointerInt(int(m.Fd()), unix.TIOCSPTLCK, 0) != nil {
		m.Close()
		return
	}
	l.master, l.tty = m, "/dev/pts/"+strconv.Itoa(n)
}

// heard says whether something was written to the host's terminal.
func (l *lab) heard() bool {
	if l.master == nil {
		return false
	}
	fd := int(l.master.Fd())
	p := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	got := false
	for n, err := unix.Poll(p, 50); err == nil && n > 0 && p[0].Revents&unix.POLLIN != 0; n, err = unix.Poll(p, 50) {
		b := make([]byte, 4096)
		r, _ := unix.Read(fd, b)
		got = got || bytes.Contains(b[:max(r, 0)], []byte("CANARY"))
	}
	return got
}

func (l *lab) close() {
	if l.nap != nil {
		l.hold.Close()
		_ = l.nap.Kill()
		_, _ = l.nap.Wait()
	}
	for _, s := range l.sockets {
		s.Close()
	}
	if l.master != nil {
		l.master.Close()
	}
	if l.shmID >= 0 {
		_, _ = unix.SysvShmCtl(l.shmID, unix.IPC_RMID, nil)
	}
	for _, p := range l.outside {
		if strings.Contains(p, l.tag) {
			_ = os.Remove(p)
		}
	}
	if l.own {
		_ = os.RemoveAll(l.root)
	}
}

// environment is what sbx is started with: a home of its own, and variables that must not come through.
func (l *lab) environment() []string {
	env := []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "TERM=dumb",
		"USER=selftest"}
	for k, v := range map[string]string{
		"HOME": "{HOME}", "XDG_CONFIG_HOME": "{HOME}/.config", "XDG_STATE_HOME": "{HOME}/.local/state",
		"XDG_CACHE_HOME": "{HOME}/.cache", "XDG_RUNTIME_DIR": "{RUN}",
		"SBX_TEST_TOKEN": "CANARY-ENV", "SSH_AUTH_SOCK": "{RUN}/agent.sock",
		"DBUS_SESSION_BUS_ADDRESS": "unix:path={RUN}/bus", "DISPLAY": ":77", "WAYLAND_DISPLAY": "wayland-0",
		"NOTIFY_SOCKET": "{RUN}/private", "GIT_ASKPASS": "/bin/false", "TMUX": "{RUN}/tmux,1,0",
		"VSCODE_IPC_HOOK_CLI": "{RUN}/vscode.sock",
	} {
		env = append(env, k+"="+l.path(v))
	}
	return env
}
