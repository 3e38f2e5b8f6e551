//go:build linux

package selftest

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math/rand"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/helpertest"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/selftest/need"
	"sbx.example/sbx/shared/wire"
)

const canaryText = "CANARY-of-root"

// tableCases has a hostile plan for every field of the table in helper/permitted.go, in its order; each is
// refused with its number.
func tableCases() []attempt {
	no := func(i int64, name string, f func(*plan.Plan)) attempt {
		return attempt{name: "field: " + name, reason: wire.NotPermitted, where: -1 - i, plan: change(f)}
	}
	return []attempt{
		no(0, "user namespace", func(p *plan.Plan) { p.Namespaces.User = true }),
		no(1, "clock", func(p *plan.Plan) { p.Namespaces.Time, p.Namespaces.TimeOffset = true, 7 }),
		no(2, "lo of the host", func(p *plan.Plan) { p.Namespaces.Net, p.Loopback = false, true }),
		no(3, "host name of the host", func(p *plan.Plan) { p.Namespaces.UTS, p.Hostname = false, "gained" }),
		no(4, "network of the caller's", func(p *plan.Plan) { p.Namespaces.JoinNet = true }),
		no(5, "the host's root", func(p *plan.Plan) {
			p.Mounts[0] = plan.Mount{Kind: plan.Bind, Target: "/", Source: "/", Access: plan.ReadWrite}
		}),
		no(5, "served root", func(p *plan.Plan) { p.Mounts[0].Kind, p.Mounts[0].Access = plan.Fuse, plan.ReadOnly }),
		no(6, "a file that is opened anew", func(p *plan.Plan) { p.Stdio[0] = plan.Reopen }),
		no(6, "the null device opened", func(p *plan.Plan) { p.Stdio[2] = plan.Null }),
		no(7, "5000 operations", func(p *plan.Plan) {
			for range 5000 {
				p.Mounts = append(p.Mounts, plan.Mount{Kind: plan.Dir, Target: "/x"})
			}
		}),
	}
}

// anyKind is a valid operation of each kind at target.
func anyKind(k plan.Kind, target string) plan.Mount {
	m := plan.Mount{Kind: k, Target: target, Access: plan.ReadOnly}
	switch k {
	case plan.Tmpfs:
		m.Size, m.Inodes = 1<<16, 10
	case plan.Symlink:
		m.Source = "/"
	case plan.Bind, plan.DevBind:
		m.Source = "/usr"
	case plan.Overlay, plan.TmpOverlay:
		m.Lower = []string{"/usr/share", "/usr/lib"}
	}
	return m
}

// attempts are all requests but those that found holes. CANARY is a directory of root's, and home the caller's.
func attempts(canary, home string) []attempt {
	n := int64(len(basePlan().Mounts))
	op := func(name string, m plan.Mount) attempt {
		return attempt{name: "operation: " + name, reason: wire.NotPermitted, where: n, plan: with(m)}
	}
	// what only plans in bubblewrap's words have, which are the broker's
	unknown := func(name string, k plan.Kind) attempt {
		return attempt{name: "operation: " + name, reason: wire.BadPlan, plan: with(anyKind(k, "/x"))}
	}
	list := append(tableCases(),
		op("fuse", anyKind(plan.Fuse, "/x")),
		unknown("devices of the host", plan.DevBind),
		unknown("all of the host", plan.HostRoot),
		unknown("proc with everybody", plan.ProcAll),
		unknown("a file's contents", plan.Data),
		unknown("a file in a directory", plan.Copy),
		unknown("an overlay without a place", plan.TmpOverlay),
		unknown("a server of questions", plan.AskServer),
		unknown("another mode", plan.Chmod),
		op("tmpfs without a size", plan.Mount{Kind: plan.Tmpfs, Target: "/x", Inodes: 5}),
		op("tmpfs without inodes", plan.Mount{Kind: plan.Tmpfs, Target: "/x", Size: 5}),
		op("overlay", anyKind(plan.Overlay, "/x")),
		op("overlay of sysfs", plan.Mount{Kind: plan.Overlay, Target: "/x", Lower: []string{"/sys/devices", "/usr/share"},
			Access: plan.ReadOnly}),
		op("writable overlay", plan.Mount{Kind: plan.Overlay, Target: "/x", Lower: []string{"/usr"}, Upper: home + "/up",
			Work: home + "/work", Access: plan.ReadWrite}),
		op("upper layer", plan.Mount{Kind: plan.Overlay, Target: "/x", Lower: []string{"/usr"}, Upper: home + "/up",
			Work: home + "/work", Access: plan.ReadOnly}),
		op("files on layers", plan.Mount{Kind: plan.Overlay, Target: "/x", Lower: []string{"/usr"},
			Files: []plan.Text{{Name: "f", Text: "x"}}, Access: plan.ReadOnly}),
		op("optional proc", plan.Mount{Kind: plan.Proc, Target: "/x", Optional: true}),
		attempt{name: "operation: queues of the host's", reason: wire.NotPermitted, where: n,
			plan: change(func(p *plan.Plan) {
				p.Namespaces.IPC, p.Mounts = false, append(p.Mounts, anyKind(plan.Mqueue, "/x"))
			})})
	for _, k := range []plan.Kind{plan.Tmpfs, plan.Dir, plan.File, plan.Symlink, plan.Bind, plan.Overlay, plan.Protect,
		plan.Remount, plan.Mask, plan.Proc, plan.Devpts, plan.Mqueue} {
		list = append(list, attempt{name: "operation: through a link: " + string(k), reason: wire.NotPermitted, where: n + 1,
			plan: with(plan.Mount{Kind: plan.Symlink, Target: "/l", Source: home}, anyKind(k, "/l/below"))})
	}
	list = append(list,
		attempt{name: "control: base", runs: true, plan: basePlan()},
		attempt{name: "control: own tree", runs: true, says: "WROTE", plan: with(plan.Mount{Kind: plan.Bind, Target: "/x",
			Source: home, Access: plan.ReadWrite})},
		attempt{name: "control: whole tree", runs: true, says: "COVERED", plan: with(plan.Mount{Kind: plan.Bind,
			Target: "/x", Source: "/usr", Access: plan.ReadOnly})},
		attempt{name: "control: mask", runs: true, plan: with(plan.Mount{Kind: plan.File, Target: "/m", Mode: 0o644},
			plan.Mount{Kind: plan.Mask, Target: "/m"})},
		attempt{name: "control: tmpfs in own tree", runs: true, plan: with(plan.Mount{Kind: plan.Bind, Target: "/x",
			Source: home, Access: plan.ReadOnly}, anyKind(plan.Tmpfs, "/x/up"))},
		attempt{name: "control: host network", runs: true, plan: change(func(p *plan.Plan) { p.Namespaces.Net = false })},
	)
	for _, src := range []string{canary, canary + "/secret", "/etc/shadow", "/root/.", home + "/foreign/dir", home +
		"/foreign/dir/secret", home + "/link", home + "/proc"} {
		src = filepath.Clean(src)
		at := plan.Mount{Kind: plan.Bind, Target: "/x", Source: src, Access: plan.ReadWrite}
		file := with(at)
		file.Mounts[n-1].Kind = plan.File
		list = append(list, attempt{name: "bind of " + src, plan: with(at)}, attempt{name: "bind on a file of " + src,
			plan: file},
			attempt{name: "layer of " + src, reason: wire.NotPermitted, where: n, plan: with(plan.Mount{Kind: plan.Overlay,
				Target: "/x", Lower: []string{src, "/usr/share"}, Access: plan.ReadOnly})})
	}
	list = append(list,
		attempt{name: "whole host", plan: with(plan.Mount{Kind: plan.Bind, Target: "/x", Source: "/",
			Access: plan.ReadWrite})},
		attempt{name: "a disk as a device", reason: wire.BadPlan, plan: with(plan.Mount{Kind: plan.Bind, Target: "/x",
			Source: "/dev/sda", Device: true, Access: plan.ReadWrite})},
		attempt{name: "dots in a source", reason: wire.BadPlan, plan: with(plan.Mount{Kind: plan.Bind, Target: "/x",
			Source: "/usr/../root", Access: plan.ReadOnly})},
		attempt{name: "another inode", plan: with(plan.Mount{Kind: plan.Bind, Target: "/x", Source: "/usr",
			Access: plan.ReadOnly, Dev: 1, Ino: 1})},
		attempt{name: "more files than allowed", plan: change(func(p *plan.Plan) {
			p.Limits = []plan.Limit{{Resource: unix.RLIMIT_NOFILE, Soft: 1 << 60, Hard: 1 << 60}}
		})},
	)
	// which the helper does not even ask for
	for name, id := range map[string]uint32{"root": 0, "another user": 65534, "nobody at all": 1<<32 - 1} {
		list = append(list, attempt{name: "ids: " + name, runs: true, plan: change(func(p *plan.Plan) {
			p.Identity = plan.Identity{InsideUID: id, OutsideUID: id, InsideGID: id, OutsideGID: id}
		})})
	}
	list = append(append(append(list, requests()...), tails()...), strange()...)
	return append(append(list, surroundings(home)...), inherited()...)
}

// requests are not one well-formed request.
func requests() []attempt {
	bad := func(name string, f func(a *attempt)) attempt {
		a := attempt{name: "request: " + name, reason: wire.BadRequest, plan: basePlan()}
		f(&a)
		return a
	}
	put := func(at int, v uint32) func(a *attempt) {
		return func(a *attempt) { a.head = func(h []byte) { binary.LittleEndian.PutUint32(h[at:], v) } }
	}
	body, err := plan.Pack(basePlan().Setup())
	if err != nil {
		panic(err)
	}
	spelt, err := plan.Encode(basePlan())
	if err != nil {
		panic(err)
	}
	text := func(name string, b []byte) attempt {
		return attempt{name: "plan: " + name, reason: wire.BadPlan, body: b}
	}
	return []attempt{
		bad("magic", put(0, 0x32786273)), bad("version", put(4, 99)), bad("nothing", put(8, 0)), bad("too much",
			put(8, plan.MaxSize+1)), bad("4 GiB", put(8, 1<<32-1)),
		bad("missing descriptor", func(a *attempt) { a.fds, a.where = -1, 4 }), bad("three too many",
			func(a *attempt) { a.fds = 3 }),
		bad("one too many", func(a *attempt) { a.fds, a.where, a.plan.Stdio[2] = 1, 3, plan.Pty }),
		bad("count of descriptors", put(12, 2)),
		bad("short header", func(a *attempt) {
			a.send = func(s int, h, _ []byte, _ []int) { _ = unix.Sendmsg(s, h[:15], nil, nil, unix.MSG_NOSIGNAL) }
		}),
		bad("long header", func(a *attempt) {
			a.send = func(s int, h, _ []byte, _ []int) { _ = unix.Sendmsg(s, append(h, 0), nil, nil, unix.MSG_NOSIGNAL) }
		}),
		bad("end at once", func(a *attempt) {
			a.send = func(s int, _, _ []byte, _ []int) {
				_ = unix.Shutdown(s,
					unix.SHUT_WR)
			}
		}),
		bad("half a plan", func(a *attempt) {
			a.send = func(s int, h, b []byte, fds []int) {
				_ = unix.Sendmsg(s, h, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
				_ = unix.Sendmsg(s, b[:len(b)/2], nil, nil, unix.MSG_NOSIGNAL)
				_ = unix.Shutdown(s, unix.SHUT_WR)
			}
		}),
		bad("piece longer than said", func(a *attempt) {
			a.send = func(s int, h, b []byte, fds []int) {
				_ = unix.Sendmsg(s, h, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
				_ = unix.Sendmsg(s, append(b, '\n'), nil, nil, unix.MSG_NOSIGNAL)
			}
		}),
		bad("descriptor with the plan", func(a *attempt) {
			a.send = func(s int, h, b []byte, fds []int) {
				_ = unix.Sendmsg(s, h, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
				_ = unix.Sendmsg(s, b, unix.UnixRights(fds...), nil, unix.MSG_NOSIGNAL)
			}
		}),
		bad("nothing in time", func(a *attempt) { a.send = func(int, []byte, []byte, []int) {} }),
		text("truncated", body[:len(body)-9]), text("trailing", append(bytes.Clone(body), "{}\n"...)),
		text("noise", bytes.Repeat([]byte{0xff}, 3000)),
		text("a list longer than there is", bytes.Repeat([]byte{1, 0xff, 0xff, 7}, 20000)),
		text("true is 2", append([]byte{0, 2}, body[2:]...)), text("as JSON", spelt),
		// Process 1 hears it where it waits for the word to start the program.
		{name: "request: a second one", never: "RAN", plan: basePlan(), send: func(s int, _, b []byte, fds []int) {
			_, _ = helpertest.Send(s, b, fds), helpertest.Send(s, b, nil)
		}},
	}
}

// netOf asks for a network device in what must not have one; network_veth.txtar has what may.
func netOf(name, file string, where int64) attempt {
	return attempt{name: "net: " + name, argv: []string{"sbx-helper", "net"}, reason: wire.NotPermitted, where: where,
		body: []byte("x"), send: func(s int, _, _ []byte, _ []int) {
			if f, err := os.Open(file); err == nil {
				_ = helpertest.Send(s, []byte(wire.NetRequest), []int{int(f.Fd())})
				f.Close()
			}
		}}
}

// surroundings are what a caller leaves to the helper when it starts it.
func surroundings(home string) []attempt {
	later := func(sig syscall.Signal, wait time.Duration) func(int) func() {
		return func(pid int) func() {
			time.Sleep(wait)
			_ = syscall.Kill(pid, sig)
			return func() {}
		}
	}
	env := []string{"GODEBUG=inittrace=1,schedtrace=1,gctrace=1", "GOTRACEBACK=crash", "GOGC=1", "GOMEMLIMIT=1",
		"GOMAXPROCS=1", "LD_PRELOAD=" + home + "/evil.so",
		"LD_LIBRARY_PATH=" + home, "LD_AUDIT=" + home + "/evil.so", "PATH=" + home, "TMPDIR=" + home, "SUDO_UID=0",
		"SUDO_GID=0"}
	list := []attempt{
		{name: "environment", runs: true, env: env, plan: basePlan()},
		{name: "environment and a bad plan", env: env, reason: wire.NotPermitted, where: -1,
			plan: change(func(p *plan.Plan) { p.Namespaces.User = true })},
		{name: "closed descriptors", runs: true, closed: true, plan: basePlan()},
		{name: "leader of a process group", leader: true, runs: true, plan: basePlan()},
		{name: "no socket", notSock: true, plan: basePlan()},
		{name: "no verb", argv: []string{"sbx-helper"}, plan: basePlan()},
		{name: "another verb", argv: []string{"sbx-helper", "gain"}, plan: basePlan()},
		{name: "net: a plan", argv: []string{"sbx-helper", "net"}, reason: wire.BadRequest, plan: basePlan()},
		// from a group that the caller does not lead
		{name: "group: a plan", argv: []string{"sbx-helper", "group"}, reason: wire.WrongCaller, where: 1, plan: basePlan()},
		netOf("no namespace", "/dev/null", 0), netOf("a namespace of users", "/proc/self/ns/user", 0),
		netOf("a namespace of mounts", "/proc/self/ns/mnt", 0),
		netOf("the host's own network", "/proc/self/ns/net", 2),
		{name: "odd name", argv: []string{"\x1b]0;x\a", "launch"}, runs: true, plan: basePlan()},
		{name: "few descriptors", limit: "ulimit -n 8", plan: basePlan()},
		{name: "no file may grow", limit: "ulimit -f 0", plan: basePlan()},
		{name: "no processes", limit: "ulimit -p 0", plan: basePlan()},
		{name: "stack", limit: "ulimit -s 64", plan: basePlan()},
		{name: "no arguments", argv: []string{}, plan: basePlan()},
		{name: "ignored signals", runs: true, limit: `trap "" HUP INT QUIT TERM PIPE ALRM CHLD USR1 TSTP TTOU`,
			plan: basePlan()},
		{name: "umask", runs: true, limit: "umask 0777", plan: basePlan()},
		{name: "no working directory", runs: true, limit: `d=$(mktemp -d "` + home +
			`/gone-XXXXXX") && cd "$d" && rmdir "$d"`, plan: basePlan()},
		{name: "settings of a loader and a runtime", runs: true,
			limit: "export GODEBUG=madvdontneed=1,invalidptr=0 GOTRACEBACK=crash LD_BIND_NOW=1 GCONV_PATH=. TMPDIR=. IFS=x",
			plan:  basePlan()},
		{name: "core", limit: "ulimit -c unlimited", plan: basePlan(), during: later(syscall.SIGQUIT, 5*time.Millisecond)},
	}
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGALRM, syscall.SIGSEGV, syscall.SIGTERM} {
		for _, ms := range []time.Duration{0, 3, 12} {
			list = append(list, attempt{name: "signal " + sig.String(), plan: basePlan(), during: later(sig,
				ms*time.Millisecond)})
		}
	}
	list = append(list, attempt{name: "stopped and continued", plan: basePlan(), during: func(pid int) func() {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
		time.Sleep(50 * time.Millisecond)
		_ = syscall.Kill(pid, syscall.SIGCONT)
		return func() {}
	}})
	for range need.Rounds(3, 10) {
		list = append(list, attempt{name: "race of a link", during: swap(home+"/race/a", home+"/race/b"),
			plan: with(plan.Mount{Kind: plan.Bind, Target: "/x", Source: home + "/race/a", Access: plan.ReadWrite},
				anyKind(plan.Tmpfs, "/x/o"), plan.Mount{Kind: plan.Bind, Target: "/x/o", Source: home + "/race/a",
					Access: plan.ReadOnly})})
	}
	return list
}

// swap exchanges two names, of a directory and of a link to somewhere else, until it is stopped.
func swap(a, b string) func(int) func() {
	return func(int) func() {
		done, ended := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(ended)
			for {
				select {
				case <-done:
					return
				default:
					_ = unix.Renameat2(unix.AT_FDCWD, a, unix.AT_FDCWD, b, unix.RENAME_EXCHANGE)
				}
			}
		}()
		return func() { close(done); <-ended }
	}
}

// holes are plans that once showed what is below a mount: the helper's mounts are not locked, as they are in a user
// namespace.
func holes(home string) []attempt {
	own := plan.Mount{Kind: plan.Bind, Target: "/w", Source: home, Access: plan.ReadWrite}
	w := plan.Mount{Kind: plan.Dir, Target: "/w", Mode: 0o755}
	dev := plan.Mount{Kind: plan.Dir, Target: "/dev", Mode: 0o755}
	tmp := func(at string) plan.Mount { m := anyKind(plan.Tmpfs, at); m.Mode = 0o755; return m }
	null := func(at string) plan.Mount {
		return plan.Mount{Kind: plan.Symlink, Target: at, Source: "/usr"}
	}
	show := plan.Mount{Kind: plan.Bind, Target: "/x", Source: "/dev/null", Device: true, Access: plan.ReadWrite}
	n := int64(len(basePlan().Mounts))
	return []attempt{
		{name: "hole: a mask of the caller's /dev", plan: with(dev, plan.Mount{Kind: plan.Bind, Target: "/dev",
			Source: home + "/dev", Access: plan.ReadWrite},
			plan.Mount{Kind: plan.Mask, Target: "/x"})},
		{name: "hole: over /dev by a link of proc's", plan: with(tmp("/proc/self/root/dev"),
			null("/proc/self/root/dev/null"), show)},
		{name: "hole: over /dev by a link of the caller's", plan: with(w, own, tmp("/w/todev"), null("/w/todev/null"), show)},
		{name: "hole: a layer with a mount below", reason: wire.NotPermitted, where: n,
			plan: with(plan.Mount{Kind: plan.Overlay, Target: "/x", Lower: []string{"/usr", "/usr/share"},
				Access: plan.ReadOnly})},
	}
}

// mutate changes a few things of a valid plan.
func mutate(r *rand.Rand, canary, home string) *plan.Plan {
	paths := []string{"/", "/x", "/x/secret", "/usr", "/etc", "/etc/shadow", "/root", "/proc", "/proc/self/root",
		"/proc/1/root", "/dev", "/dev/null", "/dev/pts", "/tmp", canary, canary + "/secret",
		home, home + "/dev", home + "/link", home + "/proc", home + "/todev", home + "/foreign", "/w", "/w/todev",
		"/w/todev/null", "/w/link", "/w/up", "/l", "/l/x", "/proc/self/root/dev", "/proc/self/root/dev/null", "/sys",
		"/sys/fs/cgroup", "/sys/kernel", "/sys/devices", "/proc/self", "/proc/bus", "/dev/shm", "/dev/mqueue", "/run", home +
			"/raced", home + "/raced/x", "/w/raced/x", "/w/raced/x/dev"}
	kinds := []plan.Kind{plan.Tmpfs, plan.Dir, plan.File, plan.Symlink, plan.Bind, plan.Bind, plan.Overlay, plan.Overlay,
		plan.Protect, plan.Remount, plan.Mask, plan.Proc, plan.Devpts, plan.Mqueue, plan.Fuse}
	pick := func() string { return paths[r.Intn(len(paths))] }
	odd := func() bool { return r.Intn(8) == 0 }
	p := basePlan()
	if r.Intn(2) == 0 {
		p.Mounts = append(p.Mounts, plan.Mount{Kind: plan.Dir, Target: "/w", Mode: 0o755}, plan.Mount{Kind: plan.Bind,
			Target: "/w", Source: home, Access: plan.ReadWrite})
	}
	for range 1 + r.Intn(4) {
		m := anyKind(kinds[r.Intn(len(kinds))], pick())
		if m.Kind == plan.Bind || m.Kind == plan.Symlink {
			m.Source = pick()
		}
		for i := range m.Lower {
			m.Lower[i] = pick()
		}
		if r.Intn(2) == 0 {
			m.Target = "/x"
		}
		if r.Intn(2) == 0 {
			m.Access = plan.ReadWrite
		}
		m.Mode, m.Optional, m.NoExec, m.NoSymFollow, m.Device = uint32(r.Intn(0o10000)), odd(), odd(), odd(), odd() &&
			m.Kind == plan.Bind
		if odd() && m.Kind == plan.Overlay {
			m.Hide = []string{"secret", "a/b"}
		}
		p.Mounts = append(p.Mounts, m)
	}
	if odd() { // one of the first operations is another
		i := r.Intn(len(p.Mounts))
		p.Mounts[i].Source, p.Mounts[i].Dev, p.Mounts[i].Ino = pick(), uint64(r.Intn(3)), uint64(r.Intn(3))
	}
	if odd() {
		i, j := r.Intn(len(p.Mounts)), r.Intn(len(p.Mounts))
		p.Mounts[i], p.Mounts[j] = p.Mounts[j], p.Mounts[i]
	}
	for _, b := range []*bool{&p.Namespaces.Net, &p.Namespaces.IPC, &p.Namespaces.UTS, &p.Namespaces.Cgroup, &p.Loopback} {
		if odd() {
			*b = !*b
		}
	}
	if r.Intn(20) == 0 {
		*[]*uint32{&p.Identity.InsideUID, &p.Identity.OutsideUID, &p.Identity.InsideGID, &p.Identity.OutsideGID}[r.Intn(4)] =
			uint32(r.Intn(3))
	}
	if odd() {
		p.Stdio[r.Intn(3)] = []plan.Stdio{plan.Inherit, plan.Reopen, plan.Null}[r.Intn(3)]
	}
	if odd() {
		p.Limits = append(p.Limits, plan.Limit{Resource: r.Intn(16), Hard: uint64(1) << r.Intn(63)})
	}
	return p
}

// hostileHome makes what the attempts use, and returns root's directory and the caller's.
func hostileHome(t *testing.T) (canary, home string) {
	t.Helper()
	dir, err := os.MkdirTemp(shop.dir, "hostile-")
	if err != nil {
		t.Fatal(err)
	}
	canary, home = dir+"/root", dir+"/home"
	do := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	do(os.Chmod(dir, 0o755))
	for _, d := range []string{"/up", "/work", "/dev", "/race/a", "/foreign/dir", "/fuse", "/raced/x", "/fake"} {
		do(os.MkdirAll(home+d, 0o755))
	}
	for link, to := range map[string]string{"/dev/null": "/usr", "/link": canary, "/proc": "/proc/self/root",
		"/todev": "/dev", "/race/b": canary, "/raced/y": "/", "/fake/null": "/usr"} {
		do(os.Symlink(to, home+link))
	}
	do(shop.own(home))
	do(os.Mkdir(canary, 0o700))
	for name, uid := range map[string]int{canary + "/secret": 0, home + "/foreign/dir/secret": 65534} {
		do(os.WriteFile(name, []byte(canaryText+"\n"), 0o600))
		do(os.Chown(name, uid, uid))
	}
	do(os.Chown(home+"/foreign/dir", 65534, 65534))
	do(os.Chmod(home+"/foreign/dir", 0o700))
	return canary, home
}

// TestHostileHelper is a hostile user with a set-user-id sbx-helper. SBX_HELPER_FUZZ makes the mutated plans last
// longer.
func TestHostileHelper(t *testing.T) {
	t.Parallel()
	needHelper(t)
	canary, home := hostileHome(t)
	long := fmt.Sprint(need.Rounds(4, 15), "s")
	if s := os.Getenv("SBX_HELPER_FUZZ"); s != "" {
		long = s
	}
	args := shop.launch("4755", "/proc/self/exe", hostileFlag, canary, home, long)
	cmd := exec.Command(args[0], args[1:]...)
	cmd.Env, cmd.Dir, cmd.Stderr = []string{"PATH=/usr/bin:/bin", need.ThoroughEnv()}, home, t.Output()
	blocked, stopped := startBlocked(t, home), startStopped(t)
	before := listing(t, canary, home+"/foreign/dir", "/etc")
	out, err := cmd.Output()
	if err != nil {
		t.Errorf("the caller: %v", err)
	}
	results := resultsOf(t, out)
	for _, r := range results {
		if r.Name == "fuzz" {
			t.Log(r.Out)
			if r.Status == 0 {
				t.Error("no mutated plan was carried out: they prove nothing")
			}
		}
	}
	if want := len(attempts(canary, home)) + len(holes(home)) + len(races(home)) + 1; len(results) < want {
		t.Errorf("%d attempts were made, want %d", len(results), want)
	}
	blocked()
	stopped()
	if after := listing(t, canary, home+"/foreign/dir", "/etc"); after != before {
		t.Errorf("files of root's or of others have changed:\n%s\n%s", before, after)
	}
}

// resultsOf are what a caller has printed, a line for each attempt. What is wrong with one is an error.
func resultsOf(t *testing.T, out []byte) (list []result) {
	t.Helper()
	for line := range bytes.Lines(out) {
		var r result
		if err := json.Unmarshal(line, &r); err != nil {
			t.Fatal(err)
		}
		if r.Wrong != "" {
			t.Errorf("%s: %s\n%+v", r.Name, r.Wrong, r)
		}
		list = append(list, r)
	}
	return list
}

// listing is what is known of the files below dirs.
func listing(t *testing.T, dirs ...string) string {
	t.Helper()
	args := append([]string{}, dirs...)
	if len(args) > 2 { // of /etc its own entries will do
		args = args[:2]
	}
	out, err := exec.Command("find", append(args, "-printf", "%p %m %U %G %s %T@ %C@\n")...).Output()
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range dirs {
		text, _ := os.ReadFile(filepath.Join(d, "secret"))
		out = append(out, text...)
	}
	return string(out)
}

// TestHostileTable: every line of the permission table has a hostile plan.
func TestHostileTable(t *testing.T) {
	text, err := os.ReadFile("../helper/permitted.go")
	if err != nil {
		t.Fatal(err)
	}
	head, rest, ok := strings.Cut(string(text), "var fields = ")
	body, _, ok2 := strings.Cut(rest, "\n}\n")
	fields := strings.Count(body, "{func(p *plan.Setup")
	if !ok || !ok2 || fields == 0 {
		t.Fatal("the table of fields is not where it was")
	}
	has := map[int64]bool{}
	for _, a := range tableCases() {
		has[a.where] = true
	}
	for i := range fields {
		if !has[int64(-1-i)] {
			t.Errorf("field %d of the table has no hostile plan", i)
		}
	}
	refused := map[string]bool{}
	for _, a := range attempts("/root", "/nonexistent") {
		if strings.HasPrefix(a.name, "operation: ") {
			refused[string(a.plan.Mounts[len(a.plan.Mounts)-1].Kind)] = true
		}
	}
	kinds := 0
	for line := range strings.Lines(head) {
		if k, ok := strings.CutPrefix(line, "\t{plan."); ok {
			name, _, _ := strings.Cut(k, ",")
			if kinds++; !refused[strings.ToLower(name)] {
				t.Errorf("operation %s of the table has no hostile plan", name)
			}
		}
	}
	if kinds < 13 || len(refused) < kinds {
		t.Errorf("%d operations in the table, %d refused", kinds, len(refused))
	}
}
