package audit

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// logger is a system logger's end of the socket.
func logger(t *testing.T, path string) *net.UnixConn {
	t.Helper()
	c, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func receive(t *testing.T, c *net.UnixConn) string {
	t.Helper()
	b := make([]byte, 1<<20)
	c.SetReadDeadline(time.Now().Add(30 * time.Second))
	n, err := c.Read(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(b[:n])
}

func TestForward(t *testing.T) {
	for kind, head := range map[string]string{"syslog": "<86>", "journald": "PRIORITY=6\n"} {
		t.Run(kind, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "log")
			l := logger(t, path)
			f, err := NewForwarder(kind, path)
			if err != nil {
				t.Fatal(err)
			}
			defer f.release()
			w, err := Create(filepath.Join(dir, "audit"), "s1", Options{Syslog: f.Send})
			if err != nil {
				t.Fatal(err)
			}
			if got := receive(t, l); !strings.HasPrefix(got, head) || !strings.Contains(got, `"kind":"start"`) {
				t.Fatalf("%q", got)
			}
			if _, err := w.Append(Event{Kind: KindDeny, Path: "/x\nFAKE=1"}); err != nil {
				t.Fatal(err)
			}
			if got := receive(t, l); strings.Contains(got, "\nFAKE") || !strings.Contains(got, `\u000aFAKE=1`) {
				t.Fatalf("a path made a field of its own: %q", got)
			}
			// Without a logger everything goes on, and its successor hears how much it missed.
			l.Close()
			for range 3 {
				if _, err := w.Append(Event{Kind: KindDeny, Path: "/y"}); err != nil {
					t.Fatal(err)
				}
			}
			l = logger(t, filepath.Join(dir, "other"))
			f.mu.Lock()
			f.path = filepath.Join(dir, "other")
			f.mu.Unlock()
			if err := w.Close(); err != nil {
				t.Fatal(err)
			}
			if got := receive(t, l); !strings.Contains(got, "3 audit records could not be forwarded") {
				t.Fatalf("%q", got)
			}
			if got := receive(t, l); !strings.Contains(got, `"kind":"seal"`) {
				t.Fatalf("%q", got)
			}
		})
	}
}

func TestForwardNowhere(t *testing.T) {
	if _, err := NewForwarder("syslog", filepath.Join(t.TempDir(), "none")); err == nil ||
		!strings.Contains(err.Error(), "no such file") {
		t.Fatal(err)
	}
	if _, err := NewForwarder("smoke", ""); err == nil {
		t.Fatal("an unknown logger was taken")
	}
}

func TestForwardLong(t *testing.T) {
	path := filepath.Join(t.TempDir(), "log")
	l := logger(t, path)
	f, err := NewForwarder("syslog", path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.release()
	e := Event{Seq: 7, Session: "s1", Kind: KindDeny, Time: time.Unix(1, 0), Prev: Genesis}
	for i := range 20 {
		e.Detail = append(e.Detail, KV{strings.Repeat("k", i+1), strings.Repeat("v", 4000)})
	}
	f.Send(e.seal(nil))
	if got := receive(t, l); !strings.Contains(got, `"seq":7`) || !strings.Contains(got, "too long") {
		t.Fatalf("%q", got)
	}
}
