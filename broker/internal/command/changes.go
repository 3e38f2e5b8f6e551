//go:build linux

package command

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/changes"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
)

// collected is one session whose layers are looked at.
type collected struct {
	sid, dir string
	layers   []changes.Layer
	only     []string // absolute
}

// changeOptions are the words of diff, apply and discard.
type changeOptions struct {
	patch, json, all, force, skip bool
	dryRun, stat                  bool
	allow                         []changes.Risk
	rest                          []string
}

// changeCommand makes one of the commands about what a session's layers hold; first says which sessions.
func changeCommand(row option.Command, rows func(*changeOptions) []option.Option, run func(changeOptions) int) Row {
	return Row{
		Command: row,
		Begin: func([]string) ([]option.Option, func([]string) int) {
			o := &changeOptions{}
			return rows(o), func(words []string) int {
				o.rest = words
				return run(*o)
			}
		},
	}
}

// Diff is sbx diff.
func (t *Term) Diff() Row {
	return changeCommand(option.Command{Name: "diff", Args: "[--patch|--stat] [--json] [--all] SID [PATH...]",
		Help: "show what a session's overlays collected", Words: []option.Word{{From: option.Kept}, {From: option.File}},
		Text: "Lists what the session's overlays hold that the host does not: A added, M modified, D deleted, R renamed,\n" +
			"T of another type, P other permissions; \"!\" marks what sbx apply does not do without being told.\n" +
			"--patch prints a unified diff that git apply reads (on a terminal without what is no text), --stat how many\n" +
			"lines; --all includes caches. Git's objects\n" +
			"are one line; --json has each. What cannot be read is named, and the status is 125."},
		func(o *changeOptions) []option.Option {
			return []option.Option{
				{Name: "patch", Value: option.Switch(&o.patch), Help: "what of the contents changed"},
				o.statOption(),
				JSON(&o.json),
				{Name: "all", Value: option.Switch(&o.all), Help: "caches too"},
			}
		}, t.diff)
}

// Apply is sbx apply.
func (t *Term) Apply() Row {
	return changeCommand(option.Command{Name: "apply", Args: "[OPTIONS] SID [PATH...]",
		Full:  "[--dry-run | --stat] [--force] [--allow KIND] [--skip] [--all] SID [PATH...]",
		Help:  "carry that over to the host's files",
		Words: []option.Word{{From: option.Kept}, {From: option.File}},
		Text: "Carries what the overlays of an ended session hold over to the host, each file at once or not at all.\n" +
			"Nothing is done when the host changed or deleted one of the files meanwhile (--force applies it), or when\n" +
			"something is guarded, secrets or links (--allow KIND accepts it); --skip leaves such things out and does the\n" +
			"rest. When all was applied the overlays are removed."},
		func(o *changeOptions) []option.Option {
			return []option.Option{
				{Name: "force", Value: option.Switch(&o.force), Help: "apply what the host changed or deleted meanwhile too"},
				{Name: "allow", Arg: "KIND", Value: option.Func(o.addRisk).Suggest("guarded", "secrets", "links"),
					Help: "accept what is guarded, secrets or links"},
				{Name: "skip", Value: option.Switch(&o.skip), Help: "leave such things out and do the rest"},
				{Name: "dry-run", Short: "n", Value: option.Switch(&o.dryRun),
					Help: "show what would be carried over and change nothing"},
				o.statOption(),
				{Name: "all", Value: option.Switch(&o.all), Help: "caches too"},
				JSON(&o.json),
			}
		}, t.apply)
}

func (o *changeOptions) statOption() option.Option {
	return option.Option{Name: "stat", Value: option.Switch(&o.stat),
		Help: "how many lines of each file change, and change nothing"}
}

func (o *changeOptions) addRisk(v string) error {
	r := changes.Risk(v)
	if r != changes.Guarded && r != changes.Secret && r != changes.Outward {
		return fmt.Errorf("%s is not one of guarded, secrets, links", quote(v))
	}
	o.allow = append(o.allow, r)
	return nil
}

// Discard is sbx discard.
func (t *Term) Discard() Row {
	return changeCommand(option.Command{Name: "discard", Args: "SID...", Help: "throw it away",
		Words: []option.Word{{From: option.Kept}},
		Text:  "Throws away what the overlays of ended sessions collected."},
		func(o *changeOptions) []option.Option { return []option.Option{JSON(&o.json)} }, t.discard)
}

// collected opens the session that the first word names.
func (t *Term) collected(o changeOptions) (*collected, error) {
	if len(o.rest) == 0 {
		return nil, option.Wrong("which session? its id is missing", "sbx ls --all lists sessions")
	}
	c := &collected{sid: o.rest[0]}
	if err := plan.ValidSession(c.sid); err != nil {
		return nil, err
	}
	facts := host.Read(t.Env)
	root, err := session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), facts.Home)
	if err != nil {
		return nil, err
	}
	c.dir = filepath.Join(root, c.sid)
	p, err := session.Plan(c.dir)
	if errors.Is(err, os.ErrNotExist) {
		return nil, &planner.Refusal{What: "no session " + quote(c.sid), Hint: "sbx ls --all lists sessions"}
	}
	if err != nil {
		return nil, err
	}
	for _, w := range o.rest[1:] {
		abs, err := option.ExpandPath(w, facts.Home, facts.Cwd, "")
		if err != nil {
			return nil, err
		}
		c.only = append(c.only, filepath.Clean(abs))
	}
	if c.layers, err = changes.Layers(p, c.dir, o.all); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(c.only, func(w string) bool { return !c.has(w) }) { // a cache, by its name
		if c.layers, err = changes.Layers(p, c.dir, true); err != nil {
			return nil, err
		}
	}
	if !session.Alive(c.dir) { // it never begins again
		for i := range c.layers {
			c.layers[i].Ended = true
		}
	}
	if err = t.refer(c.layers, facts); err != nil {
		return nil, err
	}
	carried, err := session.Labels(c.dir)
	if err != nil {
		return nil, err
	}
	for _, label := range session.SortedLabels(carried) {
		t.Warn("session " + c.sid + " has read " + quote(carried[label]) + ", labelled " + label +
			": what it wrote may hold some of it")
	}
	if len(c.layers) == 0 {
		return nil, &planner.Refusal{What: "session " + c.sid + " has no overlay to look at",
			Hint: "overlays are made by --ephemeral and --overlay and stay after the run with --keep; --all shows caches too"}
	}
	for _, w := range c.only {
		if !c.has(w) {
			return nil, &planner.Refusal{What: quote(w) + " is in none of the session's overlays", Hint: "they are: " +
				strings.Join(changes.Targets(c.layers), ", ")}
		}
	}
	return c, nil
}

// refer finds what settings of the host's make something run of what lies in the layers' places.
func (t *Term) refer(layers []changes.Layer, facts host.Facts) error {
	in := planner.Input{FS: host.NewCache(facts.Foreign), Facts: facts}
	for _, l := range layers {
		in.Grants = append(in.Grants, planner.Grant{Path: l.Target, Mode: planner.Write})
	}
	if err := in.Refer(t.Env); err != nil {
		return err
	}
	for i := range layers {
		layers[i].Guarded = in.ReferredIn(layers[i].Target)
	}
	for _, l := range in.Losses {
		t.Warn(l.String())
	}
	return nil
}

// has says whether a path is in one of the layers, or has one below it.
func (c *collected) has(w string) bool {
	return slices.ContainsFunc(c.layers, func(l changes.Layer) bool {
		return host.Within(w, l.Target) ||
			host.Within(l.Target, w)
	})
}

// base is the directory that paths are shown relative to: the only layer's, else none.
func (c *collected) base() string {
	if len(c.layers) == 1 {
		return c.layers[0].Target
	}
	return ""
}

// diff shows what a session's layers hold.
func (t *Term) diff(o changeOptions) int {
	c, err := t.collected(o)
	if err != nil {
		return t.Fail(err)
	}
	list, err := changes.Scan(c.layers, c.only)
	if err != nil {
		return t.Fail(err)
	}
	list = changes.Renames(list)
	switch {
	case o.json:
		t.Print(changesJSON(list))
	case o.patch:
		var b bytes.Buffer
		for i := range list {
			list[i].Patch(&b, c.base(), !t.onTerminal()) // where nobody reads it
		}
		t.Print(t.Harmless(b.String()))
	case o.stat:
		t.Print(changes.StatText(list, c.base()))
	default:
		for _, line := range changes.Lines(list, c.base()) {
			t.Print(line + "\n")
		}
	}
	return t.unread(list)
}

// apply carries it over to the host.
func (t *Term) apply(o changeOptions) int {
	c, err := t.collected(o)
	if err != nil {
		return t.Fail(err)
	}
	lock, err := lockEnded(c.sid, c.dir)
	if err != nil {
		return t.Fail(err)
	}
	defer lock.Close()
	if err := changes.Recover(c.dir); err != nil {
		return t.Fail(&planner.Refusal{What: err.Error(), Hint: "sbx apply " + c.sid + " goes on when that is put right"})
	}
	done := t.Busy("comparing the layers of session " + c.sid)
	list, err := changes.Scan(c.layers, c.only)
	done()
	if err != nil {
		return t.Fail(err)
	}
	how := changes.Options{Dir: c.dir, SID: c.sid, Allow: o.allow, Force: o.force, Skip: o.skip}
	if o.stat || o.dryRun {
		return t.wouldApply(&o, c, list, how)
	}
	done = t.Busy("applying " + quoting.Count(len(list), "change"))
	res, err := changes.Apply(list, how)
	done()
	if status := t.refusedChanges(c, err); status != 0 {
		return status
	}
	if err != nil {
		return t.Fail(&planner.Refusal{What: err.Error(),
			Hint: fmt.Sprintf("%d changes were applied, the rest is still in the session: sbx apply %s goes on", res.Applied,
				c.sid)})
	}
	t.leftOut(c, res.Held)
	left, err := changes.Scan(c.layers, nil)
	if len(res.Held) == 0 {
		left = slices.DeleteFunc(left, func(c changes.Change) bool { return c.Shut() })
	}
	if err == nil && len(left) == 0 && len(c.only) == 0 {
		if err := session.DropLayers(c.dir); err != nil {
			return t.Fail(err)
		}
	}
	t.result(o.json, c, &res)
	return t.unread(res.Held)
}

// result says what was applied.
func (t *Term) result(json bool, c *collected, res *changes.Result) {
	if json {
		paths := func(list []changes.Change) []plan.Bytes {
			out := []plan.Bytes{}
			for i := range list {
				out = append(out, plan.Bytes(list[i].Path))
			}
			return out
		}
		t.Print(Encode(struct {
			Applied int          `json:"applied"`
			LeftOut []plan.Bytes `json:"left_out"`
			Linked  []plan.Bytes `json:"linked"`
		}{res.Applied, paths(res.Held), paths(res.Linked)}))
		return
	}
	for _, line := range changes.Lines(res.Linked, c.base()) {
		t.Note("applied to this name alone: " + line + "\n")
	}
	t.Print(quoting.Count(res.Applied, "change") + " applied\n")
}

// wouldApply shows what apply would do, and does nothing.
func (t *Term) wouldApply(o *changeOptions, c *collected, list []changes.Change, how changes.Options) int {
	todo, held, err := how.Choose(list)
	if status := t.refusedChanges(c, err); status != 0 {
		return status
	}
	t.leftOut(c, held)
	switch {
	case o.json:
		t.Print(changesJSON(todo))
	case o.stat:
		t.Print(changes.StatText(todo, c.base()))
	default:
		for _, line := range changes.Lines(changes.Renames(todo), c.base()) {
			t.Print(line + "\n")
		}
		t.Print(quoting.Count(len(todo), "change") + " would be applied; nothing was changed\n")
	}
	return t.unread(held)
}

func (t *Term) leftOut(c *collected, held []changes.Change) {
	if t.json {
		return
	}
	for _, line := range changes.Lines(held, c.base()) {
		t.Note("left out: " + line + "\n")
	}
}

// refusedChanges shows what apply does not do without being told, and returns a status other than 0 if that is why err
// is.
func (t *Term) refusedChanges(c *collected, err error) int {
	var refused *changes.Refused
	if !errors.As(err, &refused) {
		return 0
	}
	for _, line := range changes.Lines(refused.Held, c.base()) {
		if !t.json {
			t.Note(line + "\n")
		}
	}
	return t.Fail(&planner.Refusal{What: err.Error() + "; nothing was changed",
		Hint: "--allow KIND or --force accepts them, --skip leaves them out; PATH... chooses"})
}

// LockEnded makes sure that nobody writes to the session's layers, which are about to go, and cleans up after an apply
// that was killed. What cannot be cleaned up is said and keeps nothing from going: it is the host's and stays there.
func (t *Term) LockEnded(sid, dir string) (*os.File, error) {
	lock, err := lockEnded(sid, dir)
	if err == nil {
		if problem := changes.Recover(dir); problem != nil {
			t.Warn(problem.Error())
		}
	}
	return lock, err
}

// lockEnded makes sure that nobody writes to the session's layers.
func lockEnded(sid, dir string) (*os.File, error) {
	// First: the lock is the session's own where that has not ended, and this call's afterwards. What has ended does
	// not begin again.
	if session.Alive(dir) {
		what := " is running"
		if session.Over(dir) { // its lock is what another call has, too
			what = " has ended, and another apply, discard or rm of it is at work, or its own end"
		}
		return nil, &planner.Refusal{What: "session " + sid + what, Hint: "wait for its end, or end it"}
	}
	return changes.Lock(dir)
}

// discard throws it away.
func (t *Term) discard(o changeOptions) int {
	if len(o.rest) == 0 {
		return t.Fail(option.Wrong("sbx discard wants a session", "sbx ls --all lists sessions"))
	}
	root, err := session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), host.Read(t.Env).Home)
	if err != nil {
		return t.Fail(err)
	}
	return t.Each("sessions", "sid", o.rest, func(sid string) error {
		dir := filepath.Join(root, sid)
		if plan.ValidSession(sid) != nil || !host.Exists(filepath.Join(dir, "plan.json")) {
			return &planner.Refusal{What: "no session " + quote(sid), Hint: "sbx ls --all lists sessions"}
		}
		lock, err := t.LockEnded(sid, dir)
		if err != nil {
			return err
		}
		defer lock.Close()
		return session.DropLayers(dir)
	})
}
