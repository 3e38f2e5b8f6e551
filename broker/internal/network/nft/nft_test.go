//go:build linux

package nft

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
	"sbx.example/sbx/shared/rtnl"
)

func socket(t *testing.T) *Conn {
	t.Helper()
	fd, err := unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW|unix.SOCK_CLOEXEC, unix.NETLINK_NETFILTER)
	if err != nil {
		t.Fatal(err)
	}
	c, err := Open(os.NewFile(uintptr(fd), "netfilter"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// apart says whether this is a namespace of the test's own; see need.Network.
func apart(t *testing.T) bool {
	t.Helper()
	need.Tool(t, "nft")
	return need.Network(t)
}

// listed is the chain's rules in the words of nft, one a line.
func listed(t *testing.T, chain string) []string {
	t.Helper()
	out, err := exec.Command("nft", "-n", "list", "chain", "inet", "t", chain).CombinedOutput()
	if err != nil {
		t.Fatalf("nft: %v: %s", err, out)
	}
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return lines[2 : len(lines)-2]
}

// For a set with a size the kernel clears memory for all that it could hold. One that rules put into must have a size.
func TestTimedSetsHaveNoSize(t *testing.T) {
	size := nest(unix.NFTA_SET_DESC, u32(unix.NFTA_SET_DESC_SIZE, 65535))
	for kind, want := range map[SetKind]bool{Timed: false, Counting: true, Noting: true} {
		b := NewBatch("t")
		b.Set("s", 7, 4, kind)
		got := slices.ContainsFunc(b.msgs, func(m change) bool {
			return bytes.Contains(slices.Concat(m.payload...), size)
		})
		if got != want {
			t.Errorf("kind %#x: size is given: %v, want %v", kind, got, want)
		}
	}
}

// TestRulesMeanWhatTheySay has nft say what the kernel took.
func TestRulesMeanWhatTheySay(t *testing.T) {
	if !apart(t) {
		return
	}
	c, b := socket(t), NewBatch("t")
	b.Table()
	b.Set("four", 7, 4, Timed)
	b.Chain("other")
	b.Chain("c")
	for _, r := range rows() {
		b.Rule("c", r.expr...)
	}
	if err := c.Commit(b); err != nil {
		t.Fatal(err)
	}
	got := listed(t, "c")
	for i, r := range rows() {
		if i >= len(got) || got[i] != r.want {
			t.Errorf("rule %d: got %q, want %q", i, got[min(i, len(got)-1)], r.want)
		}
	}
}

func rows() []struct {
	expr []Expr
	want string
} {
	return []struct {
		expr []Expr
		want string
	}{
		{[]Expr{LeavingLo(), Accept()}, `oif "lo" accept`},
		{[]Expr{EnteringLo(), Accept()}, `iif "lo" accept`},
		{[]Expr{Protocol(unix.IPPROTO_TCP), Ports(443, 443), Accept()}, "tcp dport 443 accept"},
		{[]Expr{Protocol(unix.IPPROTO_UDP), Ports(1000, 2000), Drop()}, "udp dport 1000-2000 drop"},
		{[]Expr{IPv4(), To([]byte{10, 0, 0, 0}, 8), Drop()}, "ip daddr 10.0.0.0/8 drop"},
		{[]Expr{IPv4(), To([]byte{192, 0, 2, 128}, 25), Drop()}, "ip daddr 192.0.2.128/25 drop"},
		{[]Expr{IPv4(), ToSet(4, "four"), Accept()}, "ip daddr @four accept"},
		{[]Expr{Protocol(unix.IPPROTO_TCP), Reset()}, "meta l4proto 6 reject with tcp reset"},
		{[]Expr{Reject()}, "reject with icmpx 3"},
		{[]Expr{Goto("other")}, "goto other"},
	}
}

// A batch is carried out whole or not at all, and the error names the change that was refused.
func TestCommitIsAllOrNothing(t *testing.T) {
	if !apart(t) {
		return
	}
	c, b := socket(t), NewBatch("t")
	b.Table()
	b.Chain("c")
	b.Rule("c", Goto("missing"))
	err := c.Commit(b)
	var refused *Error
	if !errors.As(err, &refused) || refused.What != "adding a rule to chain c" || refused.Errno != syscall.ENOENT {
		t.Fatalf("got %v", err)
	}
	if out, err := exec.Command("nft", "list", "tables").Output(); err != nil || len(out) > 0 {
		t.Errorf("left behind: %s%v", out, err)
	}
}

// TestPrune: what may not stay goes, and the rest stays as it is; there may be nothing.
func TestPrune(t *testing.T) {
	if !apart(t) {
		return
	}
	c, b := socket(t), NewBatch("t")
	b.Table()
	b.Set("four", 7, 4, Timed)
	for i := range byte(200) {
		b.Element("four", []byte{192, 0, 2, i}, time.Hour)
	}
	if err := c.Commit(b); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := c.Prune("t", "four", time.Hour, func(key []byte) bool { return key[3]%2 == 0 }); err != nil {
			t.Fatal(err)
		}
		left := map[byte]bool{} // while the set shrinks a list of it has some twice, and others not
		for end := time.Now().Add(time.Minute); len(left) < 100 && time.Now().Before(end); {
			list, err := c.Dump("t", "four")
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range list {
				left[e.Key[3]] = true
			}
		}
		for i := range byte(200) {
			if left[i] != (i%2 == 0) {
				t.Errorf("of %d: %v", i, left[i])
			}
		}
	}
	// of more than one message can keep, what may not stay goes all the same
	for i := range 40 {
		more := NewBatch("t")
		for j := range byte(100) {
			more.Element("four", []byte{10, 0, byte(i), j * 2}, time.Hour)
		}
		if err := c.Commit(more); err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Prune("t", "four", time.Hour, func(key []byte) bool { return key[3] != 4 }); err != nil {
		t.Fatal(err)
	}
	list, err := c.Dump("t", "four")
	if err != nil || len(list) == 0 || slices.ContainsFunc(list, func(e Counted) bool { return e.Key[3] == 4 }) {
		t.Errorf("of many: %d, %v", len(list), err)
	}
	if err := c.Prune("t", "four", time.Hour, func([]byte) bool { return false }); err != nil {
		t.Fatal(err)
	}
	if list, err := c.Dump("t", "four"); err != nil || len(list) > 0 {
		t.Errorf("left: %v, %v", list, err)
	}
	if err := c.Prune("t", "none", time.Hour, func([]byte) bool { return false }); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("a set that is not there: %v", err)
	}
}

func TestElementsComeAndGo(t *testing.T) {
	if !apart(t) {
		return
	}
	c, b := socket(t), NewBatch("t")
	b.Table()
	b.Set("four", 7, 4, Timed)
	key, other := []byte{192, 0, 2, 1}, []byte{192, 0, 2, 2}
	b.Element("four", key, time.Hour)
	b.Element("four", other, time.Hour)
	if err := c.Commit(b); err != nil {
		t.Fatal(err)
	}
	keys := func() (out [][]byte) {
		list, err := c.Dump("t", "four")
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range list {
			out = append(out, e.Key)
		}
		slices.SortFunc(out, bytes.Compare)
		return out
	}
	if got := keys(); len(got) != 2 || !bytes.Equal(got[0], key) || !bytes.Equal(got[1], other) {
		t.Fatalf("the set holds %v", got)
	}
	gone := NewBatch("t")
	gone.Remove("four", key)
	if err := c.Commit(gone); err != nil {
		t.Fatal(err)
	}
	if got := keys(); len(got) != 1 || !bytes.Equal(got[0], other) {
		t.Errorf("the set holds %v", got)
	}
	if err := c.Commit(gone); !errors.Is(err, syscall.ENOENT) {
		t.Errorf("what is not there was removed: %v", err)
	}
}

// FuzzElements feeds what a kernel might send: nothing is read beyond it.
func FuzzElements(f *testing.F) {
	key := nest(unix.NFTA_SET_ELEM_KEY, rtnl.Attr(unix.NFTA_DATA_VALUE, []byte{1, 2, 3, 4}))
	f.Add(nest(unix.NFTA_SET_ELEM_LIST_ELEMENTS, nest(unix.NFTA_LIST_ELEM, key)))
	f.Add([]byte{9, 0, 3, 0x80, 5})
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		for _, e := range elements(b) {
			if n += len(e.Key); n > len(b) {
				t.Fatalf("%d bytes of keys in %d", n, len(b))
			}
		}
	})
}
