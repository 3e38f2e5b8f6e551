//go:build linux

package doors

import (
	"encoding/binary"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/selftest/need"
)

// sessionBus starts a bus and returns its address.
func sessionBus(t *testing.T) string {
	t.Helper()
	need.Tool(t, "dbus-daemon", "xdg-dbus-proxy")
	socket := filepath.Join(t.TempDir(), "bus %") // which an address has escaped
	address := "unix:path=" + strings.NewReplacer("%", "%25", " ", "%20").Replace(socket)
	daemon := exec.Command("dbus-daemon", "--session", "--nofork", "--nopidfile", "--address="+address)
	if err := daemon.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = daemon.Process.Kill(); _ = daemon.Wait() })
	for range 200 {
		if c, err := net.Dial("unix", socket); err == nil {
			c.Close()
			return address + ",guid=0123456789abcdef0123456789abcdef"
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatal("the bus did not come up")
	return ""
}

// service has names on a bus.
func service(t *testing.T, address string, names ...string) {
	t.Helper()
	b, err := dialBus(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.c.Close() })
	for _, n := range names {
		body := binary.LittleEndian.AppendUint32(aligned(busString(nil, n), 4), 0)
		if _, err := b.call("RequestName", "su", body); err != nil {
			t.Fatal(n, err)
		}
	}
}

// TestBusOwners: what is asked for by a harmless name is refused where its owner has another one that is refused,
// before the filter of the bus is started.
func TestBusOwners(t *testing.T) {
	address := sessionBus(t)
	service(t, address, "org.gnome.Mutter.IdleMonitor", "org.gnome.Shell")
	service(t, address, "org.kde.Wallet", "org.kde.kwalletd6")
	service(t, address, "org.example.Tool", "org.example.Other")
	for names, want := range map[string]string{
		"":                             "nothing",
		"org.example.Tool":             "nothing", // its owner has nothing else that matters
		"org.example.Nobody":           "nothing", // no one has it
		"org.gnome.Mutter.IdleMonitor": "org.gnome.Mutter.IdleMonitor is one program with org.gnome.Shell",
		"org.example.Tool,org.kde.Wallet": "org.kde.Wallet is one program with org.kde.kwalletd6, to which nothing inside " +
			"may talk",
	} {
		d := doorsAt(t.TempDir(), "DBUS_SESSION_BUS_ADDRESS="+address, "PATH="+os.Getenv("PATH"))
		d.Request.BusNames = strings.FieldsFunc(names, func(r rune) bool { return r == ',' })
		spawn, err := d.busRelay(program.Source{Path: os.Getenv("PATH")})
		if err != nil {
			t.Fatal(err)
		}
		stop, err := spawn(filepath.Join(t.TempDir(), "socket"))
		if got := refusal(err); !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", names, got, want)
		}
		if err == nil {
			stop()
		}
	}
	if _, err := dialBus("unix:path=/nonexistent"); err == nil {
		t.Error("a bus that is not there answers")
	}
}

// TestBusSocketNameIsLong: the session's folder may lie deeper than an address has room for, and what the filter says
// when it fails is told.
func TestBusSocketNameIsLong(t *testing.T) {
	address := sessionBus(t)
	dir := filepath.Join(t.TempDir(), strings.Repeat("d", 120))
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	d := doorsAt(t.TempDir(), "DBUS_SESSION_BUS_ADDRESS="+address, "PATH="+os.Getenv("PATH"))
	spawn, err := d.busRelay(program.Source{Path: os.Getenv("PATH")})
	if err != nil {
		t.Fatal(err)
	}
	stop, err := spawn(filepath.Join(dir, "bus"))
	if err != nil {
		t.Fatal(refusal(err))
	}
	defer stop()
	if st, err := os.Lstat(filepath.Join(dir, "bus")); err != nil || st.Mode()&os.ModeSocket == 0 {
		t.Error(st, err)
	}
	if err := os.Mkdir(filepath.Join(dir, "taken"), 0o700); err != nil {
		t.Fatal(err)
	}
	if _, err := spawn(filepath.Join(dir, "taken")); !strings.Contains(refusal(err), "in use") {
		t.Error(refusal(err))
	}
}

// TestBusMessages: what a bus says that is no message of its kind is an error, and nothing else.
func TestBusMessages(t *testing.T) {
	for _, list := range []string{"", "\x00", "\x09\x00\x00\x00ab", "\x04\x00\x00\x00\xff\xff\xff\xff",
		"\x07\x00\x00\x00\x03\x00\x00\x00abc", "\x05\x00\x00\x00\x01\x00\x00\x00a"} {
		if got, err := stringsIn([]byte(list)); err == nil {
			t.Errorf("%q: %q", list, got)
		}
	}
	got, err := stringsIn([]byte("\x06\x00\x00\x00\x01\x00\x00\x00a\x00"))
	if err != nil || len(got) != 1 || got[0] != "a" {
		t.Errorf("%q %v", got, err)
	}
}
