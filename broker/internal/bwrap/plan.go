//go:build linux

package bwrap

import (
	"encoding/binary"
	"path"
	"runtime"
	"slices"
	"strings"
	"syscall"

	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/seccompbpf"
)

// caller is who has started this process.
type caller struct {
	uid, gid uint32
	moved    []plan.MovedFd
	limits   []plan.Limit // its own, where this process has others
}

// outline is what of the plan of r is known without a look at anything: its process 1 can be made.
func outline(r *request, c caller) *plan.Plan {
	b := &plan.Bubblewrap{SharePIDs: !r.pid, NewSession: r.session, Outlives: !r.dies, Keep: r.keep,
		Ambient:     r.changesRights,
		Moved:       c.moved,
		Reaper:      !r.pid1 && (r.pid || len(r.locks) > 0 || r.sync >= 0),
		ForeignMaps: r.usernsBlock >= 0 || !r.user, AtOnce: r.info >= 0 || r.status >= 0 || !r.user,
		NoUserNS: r.noUserNS, CheckNoUserNS: r.noUserNS || r.checkNoUserNS, Sync: r.sync, Block: r.block,
		Locks: plan.BytesOf(r.locks), UserNS: r.userns, UserNS2: r.userns2, PIDNS: r.pidns}
	if b.Sync >= 0 && !b.Reaper { // it is the program's then
		b.Sync = -1
	}
	id := plan.Identity{InsideUID: c.uid, OutsideUID: c.uid, InsideGID: c.gid, OutsideGID: c.gid}
	if r.uid >= 0 {
		id.InsideUID = uint32(r.uid)
	}
	if r.gid >= 0 {
		id.InsideGID = uint32(r.gid)
	}
	b.InnerUID, b.InnerGID = id.InsideUID, id.InsideGID
	// Whoever mounts terminals owns them: that is uid 0, and the program is somebody else in a namespace below that.
	if r.needsPTS && r.user && r.usernsBlock < 0 && (id.InsideUID != 0 || id.InsideGID != 0) {
		id.InsideUID, id.InsideGID, b.Inner = 0, 0, true
	}
	p := &plan.Plan{Version: plan.Version, Session: Name, Identity: id, Bubblewrap: b,
		Namespaces: plan.Namespaces{User: true, Net: r.net, IPC: r.ipc, UTS: r.uts, Cgroup: r.cgroup || r.cgroupTry},
		Loopback:   r.net, Limits: c.limits, Fds: []plan.FdRole{},
		Stdio: [3]plan.Stdio{plan.Inherit, plan.Inherit, plan.Inherit}}
	if r.host != nil {
		p.Hostname = plan.Bytes(*r.host)
	}
	return p
}

// complete makes an outline of r the plan of it.
func complete(p *plan.Plan, r *request, h host, umask uint32) error {
	d, err := draw(r, h)
	if err != nil {
		return err
	}
	if p.Mounts, p.Bubblewrap.Served, err = d.finish(); err != nil {
		return err
	}
	if p.Bubblewrap.Filters, err = filters(r, h.load); err != nil {
		return err
	}
	if p.Seccomp, err = filter(h.under != nil); err != nil {
		return err
	}
	program(p, r, h.cwd, umask)
	if h.under != nil {
		h.under.Planned(p)
	}
	if h.under != nil || d.askServed() && !p.Bubblewrap.ForeignMaps {
		// Who may unmount could take away what covers a secret: such rights are over a user namespace below. A root that has
		// all ids would lose them there; the socket over which questions are answered knows him all the same.
		p.Bubblewrap.Inner = p.Bubblewrap.Inner || p.Bubblewrap.Keep != 0
	}
	return nil
}

// program says what is started, and where.
func program(p *plan.Plan, r *request, cwd string, umask uint32) {
	b := p.Bubblewrap
	p.Process = plan.Process{Path: plan.Bytes(r.argv[0]), Argv: plan.BytesOf(r.argv), Umask: umask, AsPID1: r.pid1}
	if r.arg0 != nil {
		p.Process.Argv = append([]plan.Bytes{plan.Bytes(*r.arg0)}, p.Process.Argv[1:]...)
	}
	p.Process.Env = plan.BytesOf(r.env)
	if r.start != nil {
		p.Process.Dir = plan.Bytes(*r.start)
	} else {
		home, _ := variable(r.env, "HOME")
		dirs := slices.DeleteFunc([]string{cwd, home, "/"}, func(dir string) bool { return dir == "" })
		p.Process.Dir, b.Dirs = plan.Bytes(dirs[0]), plan.BytesOf(dirs[1:])
	}
	for _, f := range search(r.argv[0], r.env) {
		b.Programs = append(b.Programs, plan.Bytes(f))
	}
}

// search is where execvp(3) looks for a program.
func search(name string, env []string) (out []string) {
	if name == "" || strings.Contains(name, "/") {
		return []string{name}
	}
	list, ok := variable(env, "PATH")
	if !ok {
		list = "/bin:/usr/bin"
	}
	for _, dir := range strings.Split(list, ":") {
		if dir == "" {
			dir = "."
		}
		out = append(out, path.Join(dir, name))
	}
	return out
}

// filter is sbx's own: what it refuses nobody inside needs who may make namespaces, and bubblewrap would let through.
// limited says that sbx sets limits.
func filter(limited bool) (plan.Seccomp, error) {
	arch := seccompbpf.AMD64
	if runtime.GOARCH == "arm64" {
		arch = seccompbpf.ARM64
	}
	toggles := seccompbpf.Nested()
	toggles.Cores = !limited
	prog, err := seccompbpf.Program(arch, toggles)
	s := plan.Seccomp{Rules: "bwrap", Program: make([]plan.Insn, len(prog))}
	for i, in := range prog {
		s.Program[i] = plan.Insn(in)
	}
	return s, err
}

// filters are those that the caller wants loaded, in order.
func filters(r *request, load func(int) ([]byte, error)) (out [][]plan.Insn, err error) {
	list := r.filters
	if r.filter >= 0 {
		list = []int{r.filter}
	}
	for _, n := range list {
		data, err := load(n)
		if err != nil {
			return nil, failErrno(err, "Can't read seccomp data")
		}
		const size = 8 // struct sock_filter
		if len(data)%size != 0 {
			return nil, fail("Invalid seccomp data, must be multiple of 8")
		}
		if len(data) == 0 || len(data)/size > 4096 {
			return nil, filterRefused(syscall.EINVAL)
		}
		f := make([]plan.Insn, 0, len(data)/size)
		for ; len(data) > 0; data = data[size:] {
			f = append(f, plan.Insn{Code: binary.NativeEndian.Uint16(data), Jt: data[2], Jf: data[3],
				K: binary.NativeEndian.Uint32(data[4:])})
		}
		out = append(out, f)
	}
	return out, nil
}

func filterRefused(errno syscall.Errno) error {
	if errno == syscall.EINVAL {
		return fail("Unable to set up system call filtering as requested: prctl(PR_SET_SECCOMP) reported EINVAL. " +
			"(Hint: this requires a kernel configured with CONFIG_SECCOMP and CONFIG_SECCOMP_FILTER.)")
	}
	return failErrno(errno, "prctl(PR_SET_SECCOMP)")
}
