//go:build linux

package rules

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/learn"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/edit"
	"sbx.example/sbx/broker/internal/policy/trust"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// Files are the policy files of a session that runs. Nothing is compiled before the first question.
type Files struct {
	Sources  policy.Sources
	Settings request.Settings
	Extra    []policy.Rule                           // what the command line says
	Learn    bool                                    // nothing is written outside of the view
	Labels   bool                                    // at the start something could bring a label
	Own      func(q policy.Query, label string) bool // says whether q hears of a label by itself; may be nil
	Env      decide.Env                              // the parts that do not change

	mu     sync.Mutex
	loaded bool
	state  [5]fileState
	err    error
	last   *stored
	store  policy.Store // as it was read
	anew   bool         // it is another one than the plan was made by
}

// fileState tells whether a file is the one that was read.
type fileState struct {
	ino, size  uint64
	sec, nsec  int64
	csec, cnsc int64
}

// Paths are those that rules, and the trust in them, come from.
func (x *Files) Paths() [5]string {
	s := x.Sources
	return [5]string{request.OrgDir + "/policy.toml", s.UserDir + "/policy.toml", s.ProjectDir + "/.sbx/policy.toml",
		s.ProjectDir + "/.sbx/config.toml", s.TrustDir + "/trust"}
}

// Concealed is the list of what does not exist inside.
func (x *Files) Concealed() []policy.Hiding {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.loaded && x.Env.Hidden == nil {
		x.Env.Hidden = x.Settings.Concealed()
	}
	return x.Env.Hidden
}

func (x *Files) Look() (out [5]fileState) {
	for i, f := range x.Paths() {
		var st unix.Stat_t
		if unix.Lstat(f, &st) == nil {
			out[i] = fileState{st.Ino, uint64(st.Size), int64(st.Mtim.Sec), int64(st.Mtim.Nsec), int64(st.Ctim.Sec),
				int64(st.Ctim.Nsec)}
		}
	}
	return out
}

// Fresh is arbiter.Options.Fresh: it reads the files again when one of them is another than before.
func (x *Files) Fresh() (decide.Env, bool, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.Look()
	if x.loaded && now == x.state {
		return decide.Env{}, false, x.err
	}
	if !x.loaded {
		x.Env.Hidden, x.Env.Asks = x.Settings.Concealed(), x.Settings.Asks()
	}
	x.loaded, x.state = true, now
	if x.Sources.OrgDir == "" && host.Exists(request.OrgDir) { // made since the start
		x.Sources.OrgDir = request.OrgDir
	}
	layers, err := policy.Load(x.Sources)
	if x.err = err; err != nil {
		return decide.Env{}, true, err
	}
	store := request.Led(layers.Policy).With(policy.ScopeSession, x.Extra...)
	if a := x.Settings.Agent; a != nil {
		store = store.With(policy.ScopeDefault, a.Rules...)
	}
	store, _ = x.Settings.Bound(store)
	x.store = store
	x.anew = !slices.EqualFunc(layers.Policy.InForce(), x.Settings.Layers.Policy.InForce(), func(a, b policy.Rule) bool {
		return a.String() == b.String() && a.Origin == b.Origin && a.Expires.Equal(b.Expires)
	})
	env := x.Env
	env.Policy, env.Restricts, env.InForce = store.Match, store.Restricts, store.InForce
	env.Reveals = x.Settings.Reveals(store)
	if x.Labels {
		env.Labels = &decide.Labels{Of: store.LabelsOf, Unheard: func(q policy.Query, labels []string) []string {
			return slices.DeleteFunc(store.Unheard(q, labels), func(label string) bool {
				return x.Own != nil && x.Own(q, label)
			})
		}}
	}
	if x.Learn {
		env.Policy = learn.RefuseWrites(store.Match)
	}
	return env, true, nil
}

// Planned says whether the rules are those that the plan was made by.
func (x *Files) Planned() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.loaded && x.err == nil && !x.anew
}

// Names are those by which rules that allow have what is at a place, beside its own.
func (x *Files) Names(place string) []string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.store.Names(place)
}

// Store is arbiter.Options.Store: it writes rules into the file of a scope. In a project's file they count only while
// the user trusts the file, so a trusted one is pinned anew and any other takes nothing that allows.
func (x *Files) Store(where string, list []policy.Rule) error {
	x.mu.Lock()
	defer x.mu.Unlock()
	if where != "org" {
		for _, r := range list {
			r.Origin.Scope = policy.ScopeUser
			if key, lock := x.Settings.Widened(r); key != "" {
				return fmt.Errorf("the rule would not count: %s is final, %s", key, lock)
			}
		}
	}
	var target edit.Target
	vars := x.Sources.Vars
	switch where {
	case "user":
		if x.Sources.UserDir == "" {
			return errors.New("there is no place for your own policy file: set HOME")
		}
		target = edit.Target{Dir: x.Sources.UserDir, Name: "policy.toml", Scope: policy.ScopeUser, UID: x.Sources.UID}
	case "project":
		return x.storeInProject(list)
	case "org":
		if os.Geteuid() != 0 {
			return errors.New("only root can change the organisation's policy: choose user or project")
		}
		target = edit.Target{Dir: request.OrgDir, Name: "policy.toml", Scope: policy.ScopeOrg}
	default:
		return fmt.Errorf("no policy file is called %s", quoting.Quote(where))
	}
	if where == "user" {
		if err := os.MkdirAll(target.Dir, 0o700); err != nil {
			return fmt.Errorf("creating the folder of your policy file: %w", err)
		}
	}
	return x.note(target, list, adding(target, list, vars))
}

// adding writes answers down: with ~ and $PROJECT where the file is not for everybody, and with whose they were.
func adding(target edit.Target, list []policy.Rule, vars policy.Vars) func(old []byte) ([]byte, error) {
	short := policy.Vars{Home: vars.Home}
	switch target.Scope {
	case policy.ScopeOrg:
		short = policy.Vars{}
	case policy.ScopeProject:
		short.Project = vars.Project
	}
	list = slices.Clone(list)
	for i := range list {
		r := &list[i]
		if r.Kind != policy.KindHost {
			r.Pattern = short.Short(r.Pattern)
		}
		r.By += fmt.Sprintf(", uid %d", os.Getuid())
	}
	return edit.Adding(target, vars, list...)
}

func (x *Files) storeInProject(list []policy.Rule) error {
	dir := x.Sources.ProjectDir
	if dir == "" {
		return errors.New("there is no project here whose policy file could keep it")
	}
	layers, err := policy.Load(x.Sources)
	if err != nil {
		return err
	}
	allows := false
	for _, r := range list {
		allows = allows || r.Decision == policy.Allow
	}
	pin := layers.Trusted || layers.Pins == (trust.Pins{Config: "-", Policy: "-"})
	if allows && !pin {
		return errors.New("the project's files in .sbx are not trusted, so what they allow does not count: sbx policy " +
			"trust shows and pins them")
	}
	target := edit.Target{Dir: filepath.Join(dir, ".sbx"), Name: "policy.toml", Scope: policy.ScopeProject,
		UID: x.Sources.UID}
	if err := os.Mkdir(target.Dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return fmt.Errorf("creating the project's .sbx: %w", err)
	}
	vars := x.Sources.Vars
	vars.Narrow = true
	add := adding(target, list, vars)
	err = x.note(target, list, func(old []byte) ([]byte, error) {
		if pin && !bytes.Equal(old, layers.Pinned[1]) {
			return nil, errChanged
		}
		return add(old)
	})
	if err != nil || !pin {
		return err
	}
	x.last.pin = true
	return x.pin(layers.Pinned[0], x.last.after)
}

// pin has the user trust these contents of the project's files, and no others that came to be there meanwhile.
func (x *Files) pin(config, rules []byte) error {
	files := [2][]byte{config, rules}
	if err := trust.Keep(x.Sources.TrustDir, files, x.Sources.UID); err != nil {
		return err
	}
	return trust.Pin(x.Sources.TrustDir, x.Sources.ProjectDir, trust.PinsOf(files), x.Sources.UID)
}
