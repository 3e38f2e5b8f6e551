//go:build linux

package grants

import (
	"os"
	"testing"
	"time"
)

// TestRootIsNoWalk: who has listed / sees the types of the names in it without a question, and is on no walk through
// all of the host: a question further down is about what it names, and so is a no.
func TestRootIsNoWalk(t *testing.T) {
	gt := &Gate{walkers: map[walkerKey]time.Time{}}
	me := uint32(os.Getpid())
	if gt.Walks("/", me) {
		t.Error("nothing was listed")
	}
	gt.Listed("/", me)
	if !gt.Walks("/", me) || gt.Walks("/", 1) {
		t.Error("listed by this process")
	}
	for _, dir := range []string{"/", "/etc", "/home/u"} {
		if top := gt.asker(dir, me).walk; top != "" {
			t.Errorf("in %s on a walk through %q", dir, top)
		}
	}
	gt.Listed("/home/u", me)
	if top := gt.asker("/home/u", me).walk; top != "/home/u" {
		t.Errorf("on a walk through %q", top)
	}
}
