//go:build linux

package gatefs

import (
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/gate/nodes"
	"sbx.example/sbx/broker/internal/gate/served"
)

// TestPlantFollowsNoLink: a directory that somebody exchanges with a link while the server begins is the one that is
// served, never where the link leads: one that is guarded, and one that only leads to what is granted. With a link that
// stays there is none.
func TestPlantFollowsNoLink(t *testing.T) {
	top := t.TempDir()
	at, link := filepath.Join(top, "turns"), filepath.Join(top, "away")
	for _, err := range []error{os.Mkdir(at, 0o755), os.Symlink(t.TempDir(), link)} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var want unix.Stat_t
	if err := unix.Lstat(at, &want); err != nil {
		t.Fatal(err)
	}
	open := func(kind served.DirKind, host string) (ino uint64, held bool, err error) {
		n := &nodes.Node{FD: -1, Dir: &nodes.Dir{Dir: served.Dir{Kind: kind, Host: host}}}
		err = new(Server).openStatic(n)
		if n.FD >= 0 {
			unix.Close(n.FD)
		}
		return n.Dir.Attr.Ino, n.FD >= 0, err
	}
	if _, _, err := open(served.Guarded, link); err == nil {
		t.Error("where a link leads is served")
	}
	if _, held, err := open(served.Skeleton, link); err != nil || held {
		t.Errorf("where a link leads is looked at: %v", err)
	}
	var stop atomic.Bool
	done := make(chan struct{})
	go func() {
		defer close(done)
		for !stop.Load() {
			_ = unix.Renameat2(unix.AT_FDCWD, at, unix.AT_FDCWD, link, unix.RENAME_EXCHANGE)
		}
	}()
	others := 0
	for i := 0; i < 200 || others == 0; i++ { // until a link was there: the control
		for _, kind := range [...]served.DirKind{served.Guarded, served.Skeleton} {
			if ino, held, err := open(kind, at); err != nil || !held || ino != want.Ino {
				t.Fatalf("%d: %d, %v, %v, want %d", kind, ino, held, err, want.Ino)
			}
		}
		var st unix.Stat_t
		if unix.Stat(at, &st) == nil && st.Ino != want.Ino {
			others++
		}
	}
	stop.Store(true)
	<-done
}
