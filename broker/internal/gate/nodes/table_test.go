//go:build linux

package nodes

import (
	"os"
	"testing"

	"golang.org/x/sys/unix"
	"sbx.example/sbx/broker/internal/guard"
)

func openFD(t *testing.T) int {
	fd, err := unix.Open(os.DevNull, unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

func isOpen(fd int) bool {
	_, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0)
	return err == nil
}

func key(ino uint64) Key { return Key{ID: guard.ID{Dev: 1, Ino: ino}} }

// TestForget: a node is there as long as the kernel refers to it, and its descriptor with it.
func TestForget(t *testing.T) {
	var nodes Table
	nodes.Init(10)
	top := &Node{ID: RootID, Path: "/", FD: -1}
	nodes.Plant(top)
	fd := openFD(t)
	n := nodes.Hold(key(1), fd, unix.S_IFREG, top, "f")
	if again := nodes.Hold(key(1), openFD(t), unix.S_IFREG, top, "g"); again != n || nodes.Where(n) != "/g" {
		t.Fatalf("the same object is %+v and %+v", n, again)
	}
	if other := nodes.Hold(key(2), openFD(t), unix.S_IFREG, top, "h"); other.ID == n.ID {
		t.Fatal("two objects have one number")
	}
	if gone := nodes.Forget(n.ID, 1); gone != nil || !isOpen(fd) || nodes.Get(n.ID) != n || !nodes.Known(n.ID) {
		t.Fatalf("forgotten with a reference left: %+v", gone)
	}
	if gone := nodes.Forget(n.ID, 1); gone != n || isOpen(fd) || nodes.Get(n.ID) != nil || nodes.Find(key(1)) != nil {
		t.Fatalf("kept without a reference: %+v", gone)
	}
	if nodes.Forget(RootID, 100) != nil || nodes.Get(RootID) != top {
		t.Fatal("a directory of the tree is forgotten")
	}
	nodes.Close()
}

// TestMost: a file beyond Most holds no descriptor, and one that goes makes room; a directory always holds one.
func TestMost(t *testing.T) {
	var nodes Table
	nodes.Init(1)
	defer nodes.Close()
	top := &Node{ID: RootID, Path: "/", FD: -1}
	nodes.Plant(top)
	hold := func(ino uint64, typ uint32) *Node { return nodes.Hold(key(ino), openFD(t), typ, top, "n") }
	first, second, dir := hold(1, unix.S_IFREG), hold(2, unix.S_IFREG), hold(3, unix.S_IFDIR)
	if first.FD < 0 || second.FD >= 0 || dir.FD < 0 || !nodes.Full() {
		t.Fatalf("held: %d, %d and the directory's %d; full: %v", first.FD, second.FD, dir.FD, nodes.Full())
	}
	if list := nodes.Holding(10); len(list) != 1 || list[0] != (Entry{RootID, "n"}) {
		t.Fatalf("files that hold a descriptor: %v", list)
	}
	nodes.Forget(first.ID, 1)
	nodes.Forget(dir.ID, 1)
	if third := hold(4, unix.S_IFREG); third.FD < 0 || nodes.Full() {
		t.Fatal("no room is made by what is forgotten")
	}
}

// TestStandIn: what the kernel has forgotten since gets a number of its own.
func TestStandIn(t *testing.T) {
	var nodes Table
	nodes.Init(1)
	defer nodes.Close()
	n := nodes.Hold(key(1), openFD(t), unix.S_IFREG, nil, "f")
	if nodes.StandIn(n, unix.S_IFREG) != n {
		t.Fatal("what the kernel knows is not itself")
	}
	nodes.Forget(n.ID, 2)
	if in := nodes.StandIn(n, 0); in == n || in.ID == n.ID || in.Type != unix.S_IFREG || in.FD >= 0 {
		t.Fatalf("what is forgotten is %+v", in)
	}
}
