package decide

import (
	"context"
	"sync"
)

// After collects what can wait until whoever asked has gone on. The zero value is ready.
type After struct {
	mu   sync.Mutex
	ran  bool
	list []func()
	park func()
}

// OnPark has f called by Park, once.
func (a *After) OnPark(f func()) { a.park = f }

// Park is called by whoever settles an access before he waits: what runs it in somebody else's place has others go on meanwhile.
func (a *After) Park() {
	if a == nil || a.park == nil {
		return
	}
	f := a.park
	a.park = nil
	f()
}

type afterKey struct{}

// WithAfter gives those who settle an access a place for what need not be done before it goes on. Whoever calls it calls Run, whatever
// the verdict is.
func WithAfter(ctx context.Context, a *After) context.Context {
	return context.WithValue(ctx, afterKey{}, a)
}

// AfterOf is the place that WithAfter gave, or nil: then nobody says when whoever asked has gone on.
func AfterOf(ctx context.Context) *After {
	a, _ := ctx.Value(afterKey{}).(*After)
	return a
}

// Add has f called by Run; at once when that has been.
func (a *After) Add(f func()) {
	a.mu.Lock()
	ran := a.ran
	if !ran {
		a.list = append(a.list, f)
	}
	a.mu.Unlock()
	if ran {
		f()
	}
}

// Run calls what was added. It may be called again.
func (a *After) Run() {
	a.mu.Lock()
	list := a.list
	a.list, a.ran = nil, true
	a.mu.Unlock()
	for _, f := range list {
		f()
	}
}
