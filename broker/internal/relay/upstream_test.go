//go:build linux

package relay

import (
	"net"
	"os"
	"path/filepath"
	"testing"
)

// says listens at a path and says a word to each client.
func says(t *testing.T, socket, word string) net.Listener {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Write([]byte(word))
			c.Close()
		}
	}()
	return l
}

// heard is what the socket says, or why it says nothing.
func heard(u *Upstream) string {
	c, err := u.Connect()
	if err != nil {
		return err.Error()
	}
	defer c.Close()
	b := make([]byte, 16)
	n, _ := c.Read(b)
	return string(b[:n])
}

// TestUpstreamIsTheObject: what is put in the place of a socket's directory later is not what is connected to.
func TestUpstreamIsTheObject(t *testing.T) {
	dir := t.TempDir()
	for _, d := range []string{"home", "other", "trap"} {
		if err := os.Mkdir(filepath.Join(dir, d), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	honest := says(t, dir+"/home/agent", "honest")
	says(t, dir+"/other/bus", "target")
	if err := os.Symlink(dir+"/other/bus", dir+"/trap/agent"); err != nil {
		t.Fatal(err)
	}
	if _, err := Hold(dir + "/trap/agent"); err == nil {
		t.Error("a link is held")
	}
	u, err := Hold(dir + "/home/agent")
	if err != nil {
		t.Fatal(err)
	}
	if got := heard(u); got != "honest" {
		t.Errorf("before: %q", got)
	}
	if err := os.Rename(dir+"/home", dir+"/moved"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(dir+"/trap", dir+"/home"); err != nil {
		t.Fatal(err)
	}
	if c, err := net.Dial("unix", dir+"/home/agent"); err != nil { // negative control: the name leads there
		t.Error(err)
	} else {
		c.Close()
	}
	if got := heard(u); got != "honest" {
		t.Errorf("after: %q", got)
	}
	honest.Close()
	if got := heard(u); got != errGone.Error() {
		t.Errorf("when it is gone: %q", got)
	}
	if err := os.Symlink(dir+"/moved", dir+"/way"); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"/way/agent", "/moved", "/missing"} {
		if _, err := Hold(dir + p); err == nil {
			t.Errorf("%s is held", p)
		}
	}
}
