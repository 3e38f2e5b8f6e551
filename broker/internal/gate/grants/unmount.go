//go:build linux

package grants

import (
	"errors"
	"slices"
	"strings"
)

// Mounted says whether answers have mounted something at a path or below it, which may just be taken away.
func (gt *Gate) Mounted(p string) bool {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	for q := range gt.leaving {
		if covers(p, q) {
			return true
		}
	}
	return len(gt.mounted(p)) > 0
}

// mounted lists what answers have mounted at a path and below it, or are about to. gt.mu is held.
func (gt *Gate) mounted(p string) (list []string) {
	for q, g := range gt.grants {
		if covers(p, q) && !g.planned && !g.names && !(g.Ready() && g.served) {
			list = append(list, q)
		}
	}
	return list
}

// Unmount takes away what answers have mounted at a path and below it, because that name is to go: the kernel removes
// and moves no mount point. The answers stand, and the next access mounts again what is still there.
func (gt *Gate) Unmount(p string) error {
	gt.mu.Lock()
	var others []chan struct{}
	for q, done := range gt.leaving {
		if covers(p, q) {
			others = append(others, done)
		}
	}
	gt.mu.Unlock()
	err := gt.unmount(p, nil)
	for _, done := range others {
		<-done
	}
	return err
}

// unmount is Unmount, except for one grant, and for what somebody else takes away.
func (gt *Gate) unmount(p string, but *Grant) error {
	done := make(chan struct{})
	gt.mu.Lock()
	list := slices.DeleteFunc(gt.mounted(p), func(q string) bool { return gt.grants[q] == but })
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(b, a) }) // what lies deepest first
	held := make([]*Grant, len(list))
	for i, q := range list {
		held[i] = gt.grants[q]
		delete(gt.grants, q)
		gt.leaving[q] = done
	}
	gt.mu.Unlock()
	var err error
	for i, q := range list {
		if <-held[i].ready; !held[i].served && gt.opts.Mounter != nil {
			err = errors.Join(err, gt.opts.Mounter.Revoke(q))
		}
	}
	gt.mu.Lock()
	for _, q := range list {
		if gt.leaving[q] == done {
			delete(gt.leaving, q)
		}
	}
	gt.mu.Unlock()
	close(done)
	return err
}
