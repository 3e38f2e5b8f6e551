package decide

import (
	"container/list"
	"strconv"
	"sync"
	"time"

	"sbx/broker/internal/policy"
)

// Recent remembers the last verdicts, so that a program that tries again at once is not a new question, and so that
// `sbx watch` can show them. The oldest fall out.
type Recent struct {
	mu    sync.Mutex
	size  int
	order *list.List // newest first
	byKey map[string]*list.Element
}

// Past is one remembered verdict.
type Past struct {
	Ask     Ask
	Verdict Verdict
	Time    time.Time
	key     string
}

// NewRecent remembers up to size verdicts.
func NewRecent(size int) *Recent {
	return &Recent{size: max(size, 1), order: list.New(), byKey: map[string]*list.Element{}}
}

func recentKey(a Ask) string {
	a = a.normal()
	if a.Target != "" {
		a.Path = a.Target
	}
	return key(a.Kind, a.name()) + "\x00" + string(a.access()) + "\x00" + strconv.Itoa(a.Port)
}

// Add remembers a verdict in place of an earlier one for the same object and access.
func (r *Recent) Add(a Ask, v Verdict, now time.Time) {
	k := recentKey(a)
	r.mu.Lock()
	defer r.mu.Unlock()
	if e, ok := r.byKey[k]; ok {
		r.order.Remove(e)
	}
	r.byKey[k] = r.order.PushFront(Past{a, v, now, k})
	for r.order.Len() > r.size {
		old := r.order.Remove(r.order.Back()).(Past)
		delete(r.byKey, old.key)
	}
}

// Get returns the verdict on the same object and access if it is at most maxAge old.
func (r *Recent) Get(a Ask, now time.Time, maxAge time.Duration) (Verdict, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, ok := r.byKey[recentKey(a)]
	if !ok {
		return Verdict{}, false
	}
	p := e.Value.(Past)
	return p.Verdict, now.Sub(p.Time) <= maxAge
}

// Forget drops what was remembered about an object, after a grant or a revocation has changed it.
func (r *Recent) Forget(kind policy.Kind, name string) {
	prefix := key(kind, name) + "\x00"
	r.mu.Lock()
	defer r.mu.Unlock()
	for k, e := range r.byKey {
		if len(k) > len(prefix) && k[:len(prefix)] == prefix {
			r.order.Remove(e)
			delete(r.byKey, k)
		}
	}
}

// List returns what is remembered, newest first.
func (r *Recent) List() []Past {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := make([]Past, 0, r.order.Len())
	for e := r.order.Front(); e != nil; e = e.Next() {
		out = append(out, e.Value.(Past))
	}
	return out
}
