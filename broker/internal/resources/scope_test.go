package resources

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// bus is a message bus with a systemd on it: it notes what it is asked and puts whoever asks in a scope.
func bus(t *testing.T, refuse bool, made func(unit string)) (string, *bytes.Buffer) {
	path := filepath.Join(t.TempDir(), "bus")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	var got bytes.Buffer
	go func() {
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		r := bufio.NewReader(c)
		for range 2 { // AUTH, BEGIN
			line, _ := r.ReadString('\n')
			if strings.HasPrefix(line, "\x00AUTH EXTERNAL 31303030\r") {
				fmt.Fprint(c, "OK 0123456789abcdef\r\n")
			}
		}
		for serial := uint32(1); serial <= 2; serial++ {
			var head [16]byte
			if _, err := io.ReadFull(r, head[:]); err != nil {
				return
			}
			n, fields := binary.LittleEndian.Uint32(head[4:]), binary.LittleEndian.Uint32(head[12:])
			rest := make([]byte, (fields+7)/8*8+n)
			if _, err := io.ReadFull(r, rest); err != nil {
				return
			}
			got.Write(rest)
			typ := byte(2)
			if serial == 2 && refuse {
				typ = 3
			} else if serial == 2 {
				made("sbx-one.scope")
			}
			signal := []byte{'l', 4, 0, 1, 0, 0, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0} // something else that happens on the bus
			reply := marshal{[]byte{'l', typ, 0, 1}}
			reply.u32(0)
			reply.u32(77)
			reply.array(8, func() { reply.align(8); reply.b = append(reply.b, 5); reply.sig("u"); reply.u32(serial) })
			reply.align(8)
			_, _ = c.Write(append(signal, reply.b...))
		}
	}()
	return path, &got
}

func TestScope(t *testing.T) {
	h := desktop(t)
	h.put("/proc/self/cgroup", "0::/user.slice/user-1000.slice/session-3.scope\n")
	dir := user + "/app.slice/sbx-one.scope"
	path, got := bus(t, false, func(string) {
		h.group(dir, "cpu memory pids", "cpu memory pids")
		h.put(dir+"/sbx-broker.x", "")
		h.put("/proc/self/cgroup", "0::"+strings.TrimPrefix(dir, "/sys/fs/cgroup")+"\n")
	})
	_, err := h.Scope(path, "one", os.Getpid())
	// Files of groups appear by themselves only in the kernel's file system: the last step is what fails here.
	if !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "no such file or directory") {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(h.Root + dir + "/sbx-broker"); err != nil {
		t.Errorf("no place for the broker was made: %v", err)
	}
	for _, want := range []string{"StartTransientUnit", "sbx-one.scope", "Delegate", "PIDs", "ssa(sv)a(sa(sv))",
		"org.freedesktop.systemd1.Manager"} {
		if !strings.Contains(got.String(), want) {
			t.Errorf("the call lacks %s: %q", want, got.String())
		}
	}
	path, _ = bus(t, true, nil)
	if _, err := h.Scope(path, "one", os.Getpid()); !errors.Is(err, ErrNone) || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
	if _, err := h.Scope("/nosuch", "one", 1); !errors.Is(err, ErrNone) {
		t.Errorf("%v", err)
	}
}
