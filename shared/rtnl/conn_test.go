//go:build linux

package rtnl

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/selftest/need"
)

func TestAttributesAreReadAsWritten(t *testing.T) {
	b := slices.Concat(Text(1, "lo"), Attr(2), Attr(3, []byte{1, 2}, []byte{3}), Attr(4, u32(7)))
	if len(b)%4 != 0 {
		t.Errorf("%d bytes: attributes are padded to four", len(b))
	}
	var got []string
	Attrs(b, func(kind int, v []byte) { got = append(got, string(rune('0'+kind))+":"+string(v)) })
	want := []string{"1:lo\x00", "2:", "3:\x01\x02\x03", "4:" + string(u32(7))}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

// What is cut off or lies about its length ends the list, and nothing beyond the bytes is read.
func TestBrokenAttributesEndTheList(t *testing.T) {
	whole := Attr(1, u32(7))
	for name, b := range map[string][]byte{
		"nothing": nil, "half a head": whole[:3], "cut off": whole[:6],
		"shorter than its head": {3, 0, 1, 0}, "no length": {0, 0, 1, 0, 9, 9, 9, 9},
	} {
		Attrs(b, func(kind int, v []byte) { t.Errorf("%s: read %d, %x", name, kind, v) })
	}
	n := 0
	Attrs(append(slices.Clone(whole), whole[:5]...), func(int, []byte) { n++ })
	if n != 1 {
		t.Errorf("%d attributes before the broken one, want 1", n)
	}
}

func FuzzAttrs(f *testing.F) {
	f.Add(slices.Concat(Text(1, "lo"), Attr(2)))
	f.Add([]byte{5, 0, 1, 0, 1})
	f.Fuzz(func(t *testing.T, b []byte) {
		rest := len(b)
		Attrs(b, func(_ int, v []byte) {
			if rest -= 4 + len(v); rest < 0 {
				t.Fatal("more was read than there is")
			}
		})
	})
}

// TestDevices asks the kernel, in a network namespace of its own: nothing leaves it.
func TestDevices(t *testing.T) {
	if !need.Network(t) {
		return
	}
	c, err := Open(unix.NETLINK_ROUTE)
	if err != nil {
		t.Fatal(err)
	}
	ns, err := os.Open("/proc/self/ns/net")
	if err != nil {
		t.Fatal(err)
	}
	defer ns.Close()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(c.Veth("one", "two", int(ns.Fd())))
	if err := c.Veth("one", "three", int(ns.Fd())); !errors.Is(err, unix.EEXIST) {
		t.Errorf("a name that is taken: %v", err)
	}
	one, err := c.Index("one")
	must(err)
	two, err := c.Index("two")
	must(err)
	if one == two || one < 2 || two < 2 {
		t.Fatalf("devices %d and %d", one, two)
	}
	must(c.Alias(one, "whose it is"))
	must(c.Up(two))
	must(c.Up(one))
	must(c.Address(one, netip.MustParsePrefix("192.0.2.1/24")))
	if way, err := c.Way(netip.MustParseAddr("198.51.100.1")); way != 0 || err == nil {
		t.Errorf("before there is a route packets leave by %d, %v", way, err)
	}
	must(c.Default(one, netip.MustParseAddr("192.0.2.2")))
	if way, err := c.Way(netip.MustParseAddr("198.51.100.1")); way != one || err != nil {
		t.Errorf("packets leave by %d, %v; want %d", way, err, one)
	}
	var names []string
	must(c.Devices(func(name, alias string) { names = append(names, name+"="+alias) }))
	for _, want := range []string{"lo=", "one=whose it is", "two="} {
		if !slices.Contains(names, want) {
			t.Errorf("devices %q lack %q", names, want)
		}
	}
	// A list that changes while it is made may lack something, and is none then.
	for i := range 60 { // more than comes in one piece
		must(c.Veth(fmt.Sprint("a", i), fmt.Sprint("b", i), int(ns.Fd())))
	}
	other, err := Open(unix.NETLINK_ROUTE)
	must(err)
	changed := false
	err = c.Devices(func(string, string) {
		if !changed {
			must(other.Alias(one, "changed"))
			must(other.Veth("late", "later", int(ns.Fd())))
			changed = true
		}
	})
	if err != unix.EAGAIN {
		t.Errorf("a list that has changed: %v", err)
	}
	must(c.Devices(func(string, string) {}))
	must(c.Delete(one))
	if _, err := c.Index("two"); !errors.Is(err, unix.ENODEV) {
		t.Errorf("the peer of a removed device: %v", err)
	}
}
