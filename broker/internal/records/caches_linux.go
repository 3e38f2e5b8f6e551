package records

import (
	"errors"
	"time"

	"sbx.example/sbx/broker/internal/caches"
)

// pruneCaches removes what is kept of caches of projects in which nothing runs and that nothing came into for a while.
func (t Records) pruneCaches(root string, q *pruneRequest, limit time.Duration) int {
	list, err := caches.List(caches.Root(root))
	if err != nil {
		return t.Fail(err)
	}
	var names []string
	for _, k := range list {
		if k.InUse || time.Since(k.Used) < limit {
			continue
		}
		if !q.dryRun {
			if err := caches.Remove(k.Dir); errors.Is(err, caches.ErrInUse) {
				continue // since a moment ago
			} else if err != nil {
				return t.Fail(err)
			}
		}
		names = append(names, k.Project)
	}
	return t.pruned(q, nil, names)
}
