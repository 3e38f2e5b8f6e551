//go:build linux

package grants

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Revoke takes a grant back: new accesses ask again. Files and directories that are open stay open.
func (gt *Gate) Revoke(p string) error {
	gt.mu.Lock()
	g := gt.grants[p]
	delete(gt.grants, p)
	gt.mu.Unlock()
	if g == nil {
		return fmt.Errorf("revoking %s: it is not granted", p)
	}
	<-g.ready
	var err error
	if gt.opts.Mounter != nil && !g.served {
		err = gt.opts.Mounter.Revoke(p)
	}
	return errors.Join(err, gt.opts.Forget(p))
}

// RevokeAll takes back every grant that was made at a path, above it or below it, and returns how many there were.
func (gt *Gate) RevokeAll(p string) (n int, err error) {
	return gt.revoke(func(q string) bool { return covers(p, q) || covers(q, p) })
}

// Review takes back the grants that do not stand any more.
func (gt *Gate) Review(stands func(p string, m Mode, mounted, names bool) bool) error {
	type standing struct {
		mode           Mode
		mounted, names bool
	}
	held := make(map[string]standing)
	gt.mu.Lock()
	gt.reviews++
	for p, g := range gt.grants {
		if !g.planned {
			held[p] = standing{g.mode, g.Ready() && !g.served, g.names}
		}
	}
	gt.mu.Unlock()
	var err error
	for p, h := range held {
		if stands(p, h.mode, h.mounted, h.names) {
			continue
		}
		_, rerr := gt.revoke(func(q string) bool { return p == q })
		err = errors.Join(err, rerr)
	}
	return err
}

// RevokeBelow takes back the grants at a path and below it. What another answer has granted there is mounted again by
// the next access.
func (gt *Gate) RevokeBelow(p string) error {
	_, err := gt.revoke(func(q string) bool { return covers(p, q) })
	return err
}

func (gt *Gate) revoke(which func(string) bool) (n int, err error) {
	gt.mu.Lock()
	gt.reviews++
	var list []string
	for q, g := range gt.grants {
		if !g.planned && which(q) {
			list = append(list, q)
		}
	}
	gt.mu.Unlock()
	// what lies below first: forgetting a name takes it along
	slices.SortFunc(list, func(a, b string) int { return strings.Compare(b, a) })
	for _, q := range list {
		if rerr := gt.Revoke(q); rerr != nil {
			err = errors.Join(err, rerr)
			continue
		}
		n++
	}
	return n, err
}

// Release takes away what is mounted on a file, also before the server started: something is to be moved onto it, and
// the kernel moves nothing over a mount. What was granted is to be asked for again.
func (gt *Gate) Release(p string) error {
	if gt.Planned(p) {
		gt.Unplan(p)
	}
	return gt.Unmount(p)
}

// Planned says whether something that was mounted at a path before the server started still is.
func (gt *Gate) Planned(p string) bool {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	g := gt.grants[p]
	return g != nil && g.planned
}

// Unplan has what was mounted before the server started taken back like any other grant.
func (gt *Gate) Unplan(p string) {
	gt.mu.Lock()
	defer gt.mu.Unlock()
	g := gt.grants[p]
	if g == nil {
		g = &Grant{path: p, ready: make(chan struct{})}
		close(g.ready)
		gt.grants[p] = g
	}
	g.planned = false
}
