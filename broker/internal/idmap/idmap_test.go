//go:build linux

package idmap

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"
)

func TestParse(t *testing.T) {
	for name, c := range map[string]struct {
		text string
		want []Range
	}{
		"by name":                    {"other:1:2\napp:200000:65536\n", []Range{{200000, 65536}}},
		"by number":                  {"1000:200000:65536", []Range{{200000, 65536}}},
		"in order":                   {"app:300000:10\napp:200000:10", []Range{{200000, 10}, {300000, 10}}},
		"overlaps count once":        {"app:200000:10\n1000:200005:10", []Range{{200000, 10}}},
		"a name that begins alike":   {"app2:200000:10\nap:300000:10", nil},
		"root is never subordinate":  {"app:0:10", nil},
		"nor is the user":            {"app:999:10", nil},
		"beyond 32 bits":             {"app:4294967295:10\napp:4294967296:1", nil},
		"nothing, words and negates": {"app:200000:0\napp:x:1\napp:-5:10\napp:200000\n\n:200000:1\n", nil},
	} {
		if got := Parse(c.text, "app", 1000, 1000); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
	var many strings.Builder
	for range 100 {
		many.WriteString("app:200000:1\n")
	}
	for i := range 40 {
		many.WriteString("app:" + string(rune('1'+i%9)) + "00000:1\n")
	}
	if got := Parse(many.String(), "app", 1000, 1000); len(got) > maxRanges {
		t.Errorf("%d ranges were kept, want at most %d", len(got), maxRanges)
	}
}

func TestCanonical(t *testing.T) {
	if got, err := canonical(strings.Fields("0 1000 1 1 200000 65536")); err != nil ||
		got != "0 1000 1\n1 200000 65536\n" {
		t.Errorf("a good map: %q, %v", got, err)
	}
	for _, bad := range []string{"", "0", "0 1", "0 1 1 1", "a b c", "-1 0 1", "0 4294967296 1", "0 0x10 1",
		strings.Repeat("0 1 1 ", 341), strings.Repeat("4000000000 4000000000 4000000000 ", 200)} {
		if got, err := canonical(strings.Fields(bad)); err == nil {
			t.Errorf("%.20q became %.20q", bad, got)
		}
	}
}

// TestServer sends requests as a hostile program would, and good ones, which are the control.
func TestServer(t *testing.T) {
	name := filepath.Join(t.TempDir(), "s")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: name, Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan string, 10)
	go Server{Write: func(pid int, file, text string) error {
		asked <- file + " " + text
		if strings.HasPrefix(text, "0 0 1") {
			return syscall.EPERM
		}
		if pid != os.Getpid() {
			return errors.New("another process")
		}
		return nil
	}}.Serve(l)
	self, err := unix.PidfdOpen(os.Getpid(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer unix.Close(self)
	null, err := os.Open("/dev/null")
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	for name, c := range map[string]struct {
		text string
		fds  []int
		want string
		asks bool
	}{
		"good":              {"uid_map\n0 1000 1\n", []int{self}, "ok", true},
		"good gid":          {"gid_map\n0 1000 1\n1 200000 9\n", []int{self}, "ok", true},
		"refused by kernel": {"uid_map\n0 0 1\n", []int{self}, "write to uid_map failed: operation not permitted", true},
		"no process":        {"uid_map\n0 1000 1\n", nil, "no process was named", false},
		"two processes":     {"uid_map\n0 1000 1\n", []int{self, self}, "no process was named", false},
		"not a process":     {"uid_map\n0 1000 1\n", []int{int(null.Fd())}, "none of a process", false},
		"another file":      {"../../etc/x\n0 1000 1\n", []int{self}, "not a request for a map", false},
		"setgroups":         {"setgroups\n0 1000 1\n", []int{self}, "not a request for a map", false},
		"no map":            {"uid_map\n", []int{self}, "three numbers", false},
		"long":              {"uid_map\n" + strings.Repeat("1 1 1\n", 800), []int{self}, "three numbers", false},
		"words":             {"uid_map\n0 1000 1\nallow", []int{self}, "three numbers", false},
	} {
		c2, err := net.DialUnix("unix", nil, &net.UnixAddr{Name: l.Addr().String(), Net: "unix"})
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := c2.WriteMsgUnix([]byte(c.text), unix.UnixRights(c.fds...), nil); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		buf := make([]byte, 200)
		n, _ := c2.Read(buf)
		c2.Close()
		if got := string(buf[:n]); !strings.Contains(got, c.want) {
			t.Errorf("%s: answered %q, want %q", name, got, c.want)
		}
		if c.asks {
			<-asked
		}
	}
	if len(asked) > 0 {
		t.Errorf("a bad request was carried out: %s", <-asked)
	}
}

// The advice gives away no id that somebody has.
func TestAfter(t *testing.T) {
	for text, want := range map[string]uint64{"": 0, "a:100000:65536\nb:165536:65536\n": 231072,
		"b:300000:10\n1000:5:5\nbroken\nc:x:1\n": 300010} {
		if got := after(text); got != want {
			t.Errorf("after %q comes %d, want %d", text, got, want)
		}
	}
}
