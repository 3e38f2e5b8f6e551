//go:build linux

package wayland

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// answer is a compositor that says the same to everybody, whatever they ask.
func answer(t *testing.T, said []byte) error {
	t.Helper()
	dir := t.TempDir()
	l, err := net.Listen("unix", filepath.Join(dir, "c"))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			c.Write(said)
			c.(*net.UnixConn).CloseWrite()
			defer c.Close()
		}
	}()
	f, err := os.Open(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	c, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: filepath.Join(dir, "c"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	stop, err := Listen(c, f, Context{"sbx", "sbx", "s"})
	if err == nil {
		stop()
	}
	return err
}

func TestCompositors(t *testing.T) {
	global := func(name uint32, s string) []byte { return request(registry, 0, num(name), text(s), num(1)) }
	done := func(n uint32) []byte { return request(n, 0, num(0)) }
	join := func(parts ...[]byte) (all []byte) {
		for _, p := range parts {
			all = append(all, p...)
		}
		return all
	}
	for _, tc := range []struct {
		name, want string
		said       []byte
	}{
		{"one that knows it", "", join(global(1, "wl_compositor"), global(7, manages), done(first), request(display, 1,
			num(first)), done(second))},
		{"one that does not", ErrUnknown.Error(), join(global(1, "wl_compositor"), global(2, manages+"x"), done(first))},
		{"one that refuses", `refused: "no"`, join(global(7, manages), done(first), request(display, 0, num(context), num(1),
			text("no")))},
		{"one that ends early", "reading from the compositor", join(global(7, manages), done(first))},
		{"nothing", "reading from the compositor", nil},
		{"another protocol", "does not speak Wayland", join(num(1), num(4<<16))},
		{"a name without an end", ErrUnknown.Error(), join(request(registry, 0, num(1), num(1<<31), num(0)),
			request(registry, 0), request(registry, 0, num(1)), done(first))},
		{"no end of globals", "does not come to an end", join(slicesOf(global(1, "x"), maxGlobals+1)...)},
	} {
		err := answer(t, tc.said)
		if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
			t.Errorf("%s: %v, want %q", tc.name, err, tc.want)
		}
		if tc.name == "one that does not" && !errors.Is(err, ErrUnknown) {
			t.Error("the error is not ErrUnknown")
		}
	}
}

func slicesOf(b []byte, n int) (out [][]byte) {
	for range n {
		out = append(out, b)
	}
	return out
}

func FuzzText(f *testing.F) {
	f.Add(text("wl_compositor"))
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, ok := readText(b); ok && len(s)+5 > len(b) {
			t.Errorf("%x holds %q", b, s)
		}
	})
}
