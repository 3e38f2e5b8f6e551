package decide

import (
	"path"
	"sync"
	"time"

	"sbx/broker/internal/policy"
)

// Walkers notices a program that looks at many names of one directory (find, ls -l, an indexer) and turns the many
// questions into one about the directory.
type Walkers struct {
	Max    int           // distinct names in one directory that are asked about one by one
	Window time.Duration // within this time
	mu     sync.Mutex
	dirs   map[string]*visits
}

// Limits of memory and defaults of Walkers.
const (
	defaultMax    = 5
	defaultWindow = 2 * time.Second
	maxDirs       = 1024
)

type visits struct {
	first  time.Time
	names  map[string]bool
	merged bool
}

// NewWalkers uses the defaults for zero arguments.
func NewWalkers(most int, window time.Duration) *Walkers {
	if most <= 0 {
		most = defaultMax
	}
	if window <= 0 {
		window = defaultWindow
	}
	return &Walkers{Max: most, Window: window, dirs: map[string]*visits{}}
}

// Observe takes a question that would go to the human. If its directory has raised too many, the returned question is
// about the directory, the same one each time, and merged is true; the caller joins equal questions. A directory
// stays merged until it has been quiet for the window.
func (w *Walkers) Observe(a Ask, now time.Time) (q Ask, merged bool) {
	a = a.normal()
	if a.Kind == policy.KindHost || a.Kind == policy.KindSocket || a.Path == "/" {
		return a, false
	}
	name := a.Path
	if a.Target != "" {
		name = a.Target
	}
	dir := path.Dir(name)
	if dir == "/" {
		return a, false
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	v := w.dirs[dir]
	if v == nil || now.Sub(v.first) > w.Window {
		w.forget(now)
		v = &visits{first: now, names: map[string]bool{}}
		w.dirs[dir] = v
	}
	if v.merged {
		v.first = now
	} else {
		v.names[name] = true
		if len(v.names) <= w.Max {
			return a, false
		}
		v.merged, v.names = true, nil
	}
	return Ask{ID: a.ID, PID: a.PID, Exe: a.Exe, Cwd: a.Cwd, Op: a.Op, Kind: a.Kind, Path: dir, Flags: []string{"dir", "merged"}}, true
}

// forget keeps the table small: old entries first, and if a guest makes too many at once, all.
func (w *Walkers) forget(now time.Time) {
	if len(w.dirs) < maxDirs {
		return
	}
	for d, v := range w.dirs {
		if now.Sub(v.first) > w.Window {
			delete(w.dirs, d)
		}
	}
	if len(w.dirs) >= maxDirs {
		clear(w.dirs)
	}
}
