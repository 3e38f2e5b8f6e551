//go:build linux

package notify

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/seccompbpf"
	"sbx.example/sbx/selftest/need"
)

// policyFor notifies only the calls named.
func policyFor(names ...string) seccompbpf.Policy {
	p := seccompbpf.Default(native(), seccompbpf.Toggles{})
	if names[0] == "none" {
		names = []string{"swapon"} // the filter must notify something
	}
	p.Rules = append([]seccompbpf.Rule{{Names: names, Action: seccompbpf.Notify, Why: "test"}}, p.Rules...)
	return p
}

// hostSocket makes a listening socket on the host that says hi.
func hostSocket(t *testing.T, path string, typ int) *atomic.Int64 {
	t.Helper()
	fd, err := unix.Socket(unix.AF_UNIX, typ|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(path, "@") {
		os.Chmod(path, 0o777)
	}
	count := new(atomic.Int64)
	if typ == unix.SOCK_DGRAM {
		t.Cleanup(func() { unix.Close(fd) })
		return count
	}
	if err := unix.Listen(fd, 10); err != nil {
		t.Fatal(err)
	}
	go func() {
		for {
			c, _, err := unix.Accept(fd)
			if err != nil {
				return
			}
			count.Add(1)
			_, _ = unix.Write(c, []byte("hi"))
			unix.Close(c)
		}
	}()
	t.Cleanup(func() { _ = unix.Shutdown(fd, unix.SHUT_RDWR); unix.Close(fd) })
	return count
}

func TestConnectHostSocket(t *testing.T) {
	w := newWorld(t)
	n := hostSocket(t, w.path("ro/s"), unix.SOCK_STREAM)
	hostSocket(t, w.path("ro/d"), unix.SOCK_DGRAM)
	hostSocket(t, w.path("rw/s"), unix.SOCK_STREAM)
	g := hostSocket(t, w.path("gated/s"), unix.SOCK_STREAM)
	hostSocket(t, w.path("secret/s"), unix.SOCK_STREAM)
	w.opt.Ask = func(_ context.Context, a Ask) Answer { return Answer{Allow: strings.HasSuffix(a.Path, "gated/s")} }
	out := w.guest("connect", w.path("ro/s"), w.path("rw/s"), w.path("gated/s"), w.path("secret/s"), w.path("ro/none"),
		w.path("ro/pub"))
	w.want(out, "W/ro/s EACCES false", "W/ro/s EACCES false", "W/rw/s EACCES false", "W/rw/s EACCES false",
		"W/gated/s ok true", "W/gated/s EPROTOTYPE false", "W/secret/s EPERM false", "W/secret/s EPERM false",
		"W/ro/none ENOENT false", "W/ro/none ENOENT false", "W/ro/pub ECONNREFUSED false", "W/ro/pub ECONNREFUSED false")
	if n.Load() != 0 {
		t.Errorf("%d connections reached the host's server", n.Load())
	}
	if g.Load() == 0 {
		t.Error("the approved connection did not reach the host's server")
	}
}

func TestConnectOwnSocket(t *testing.T) {
	w := newWorld(t)
	w.opt.Ask = nil
	out := w.guest("own", "/tmp/s", w.path("rw/own"), "rel")
	w.want(out, "bind ok connect ok ok /tmp/s", "server true 1000", "stale ECONNREFUSED",
		"bind ok connect ok ok W/rw/own", "server true 1000", "bind ok connect ok ok rel", "server true 1000")
}

func TestConnectInet(t *testing.T) {
	w := newWorld(t)
	out := w.guest("inet")
	var want []string
	for range 2 {
		want = append(want, "blocking ok EISCONN", "nonblocking true 0", "refused ECONNREFUSED", "udp ok", "unspec true",
			"wrong family EAFNOSUPPORT")
	}
	w.want(out, append(want, "bad fd EBADF", "no socket ENOTSOCK", "blocked true")...)
}

func TestConnectFlippedFamily(t *testing.T) {
	w := newWorld(t)
	w.prog = compiled(t, policyFor("connect"))
	w.opt.Ask = nil
	n := hostSocket(t, w.path("ro/s"), unix.SOCK_STREAM)
	w.want(w.guest("family", w.path("ro/s"), strconv.Itoa(need.Rounds(2500, 10000))), "done")
	if n.Load() != 0 {
		t.Errorf("%d connections reached the host's server", n.Load())
	}
}

func TestConnectForgedName(t *testing.T) {
	w := newWorld(t)
	w.opt.Ask = nil
	n := hostSocket(t, w.path("rw/s"), unix.SOCK_STREAM)
	w.want(w.guest("forge", w.path("rw/s")), "aside ok", "bind ok", "back ok", "connect EACCES", "own ok", "connect ok")
	if n.Load() != 0 {
		t.Errorf("%d connections reached the host's server", n.Load())
	}
}

func TestConnectAbstract(t *testing.T) {
	name := "@sbx-notify-test-" + strings.ReplaceAll(t.TempDir(), "/", "-")
	n := hostSocket(t, name, unix.SOCK_STREAM)
	for _, net := range []bool{false, true} {
		w := newWorld(t)
		w.net = net
		want := "ECONNREFUSED"
		if net {
			want = "EPERM"
		}
		w.want(w.guest("abstract", name), want)
	}
	if n.Load() != 0 {
		t.Error("the host's abstract socket was reached")
	}
}
