//go:build linux

package checks

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Runner says which binaries are tested and what is known about the host.
type Runner struct {
	Sbx     string
	Probe   string
	Lab     string   // directory for the lab; empty means a new one below /var/tmp
	Base    []string // options of every sandbox; nil means static, moderate, prompts denied
	Backend string   // of every sandbox; empty: the one that sbx takes by itself
	Facts   []string // what the host offers beyond what the probe finds out itself: cgroup, containers, landlock:N
	Hooks   bool     // sbx was built with sbx_testhooks and knows --test-off
}

// runTime is for one sandbox with all its checks. It is long, as an emulated machine is slow.
const runTime = 20 * time.Minute

// Run makes a lab, performs the checks of the table that filter accepts (nil: all) and their controls, and judges them.
func Run(ctx context.Context, r Runner, filter func(Check) bool) ([]Result, error) {
	var todo []Check
	for _, c := range All() {
		if filter == nil || filter(c) {
			todo = append(todo, c)
		}
	}
	l, err := newLab(r.Lab, r.Sbx, r.Probe)
	if l != nil {
		defer l.close()
	}
	if err != nil {
		return nil, err
	}
	x := &run{Runner: r, lab: l, env: l.environment()}
	if err := x.start(ctx); err != nil {
		return nil, err
	}
	got := make(map[string]Outcome)
	control := make(map[string]Outcome)
	if err := x.sandboxes(ctx, todo, got); err != nil {
		return nil, err
	}
	if err := x.controls(ctx, todo, control); err != nil {
		return nil, err
	}
	results := make([]Result, 0, len(todo))
	for _, c := range todo {
		results = append(results, Judge(c, got[c.ID], control[c.ID]))
	}
	return results, nil
}

// run is one execution of the table.
type run struct {
	Runner
	lab   *lab
	env   []string
	facts []string
	count int
}

// start finds out about the host and starts the process that the sandbox must not see.
func (x *run) start(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, x.lab.probe, "facts")
	cmd.Env = x.env
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("asking the probe about this host: %w", err)
	}
	if err := json.Unmarshal(out, &x.facts); err != nil {
		return fmt.Errorf("reading the probe's facts: %w", err)
	}
	x.facts = append(x.facts, x.Facts...)
	nap := exec.Command(x.lab.probe, "nap", "sbxcanary", "held")
	nap.Env = x.env
	hold, err := nap.StdinPipe() // it ends with us, however that may be, and not before
	if err != nil {
		return fmt.Errorf("making the host process's pipe: %w", err)
	}
	x.lab.hold = hold
	if err := nap.Start(); err != nil {
		return fmt.Errorf("starting the host process to look for: %w", err)
	}
	x.lab.nap = nap.Process
	return nil
}

// lacking names the first fact that the host does not have.
func (x *run) lacking(needs []string) string {
	for _, n := range needs {
		if !slices.Contains(x.facts, n) {
			return n
		}
	}
	return ""
}

// absent says why a fact is not there, where that is not the name itself.
func absent(fact string) string {
	switch fact {
	case "guard":
		return "before Linux 5.19 and without /dev/fuse a project's own names are covered where they exist, and others " +
			"cannot be kept out"
	case "server":
		return "without /dev/fuse and user namespaces a hidden name is covered, and seen for a moment when the host " +
			"replaces it"
	}
	return "this host does not offer it"
}

// options are those of every sandbox: the probe and the read-only directory are always granted.
func (x *run) options(extra []string) []string {
	base := x.Base
	if base == nil {
		base = []string{"--static", "--profile", "moderate", "--prompt", "deny"}
	}
	all := append([]string{"run", "-q"}, base...)
	if x.Backend != "" {
		all = append(all, "--backend", x.Backend)
	}
	all = append(all, "--ro", filepath.Dir(x.lab.probe), "--ro", x.lab.path("{RODIR}"))
	return append(all, x.lab.paths(extra)...)
}

// sandboxes runs all checks, one sandbox for those with equal options.
func (x *run) sandboxes(ctx context.Context, todo []Check, got map[string]Outcome) error {
	var able []Check
	for _, c := range todo {
		if n := x.lacking(c.Needs); n != "" {
			got[c.ID] = Outcome{Act: c.Act, Skip: n + ": " + absent(n)}
			continue
		}
		able = append(able, c)
	}
	for _, group := range grouped(able, func(c Check) string {
		return c.Config + "\x00" + c.Dir + "\x00" +
			strings.Join(c.Options, "\x00")
	}) {
		if err := x.sandbox(ctx, group, group[0].Options, got); err != nil {
			return err
		}
	}
	return nil
}

// grouped keeps the table's order. Checks that must be alone get a group each, and so do those that look at the host
// afterwards, so that no check can be blamed for (or shown effective by) what another one did.
func grouped(checks []Check, key func(Check) string) [][]Check {
	var groups [][]Check
	at := make(map[string]int)
	for _, c := range checks {
		k := key(c)
		if c.Alone || len(c.After) > 0 {
			k = "alone\x00" + c.ID
		}
		i, ok := at[k]
		if !ok {
			i = len(groups)
			at[k] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], c)
	}
	return groups
}

// sandbox runs a group in one sandbox with the given options.
func (x *run) sandbox(ctx context.Context, group []Check, options []string, got map[string]Outcome) error {
	if text := group[0].Config; text != "" {
		dir := x.lab.path("{HOME}/.config/sbx")
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
		file := filepath.Join(dir, "config.toml")
		if err := os.WriteFile(file, []byte(x.lab.path(text)), 0o600); err != nil {
			return err
		}
		defer os.Remove(file)
	}
	argv := append([]string{x.Sbx}, x.options(options)...)
	argv = append(argv, "--", x.lab.probe)
	return x.batch(ctx, group, argv, func(c Check) item { return item{ID: c.ID, Act: c.Act, Args: x.args(c, c.Args)} },
		got)
}

// controls takes the first possible way for each check.
func (x *run) controls(ctx context.Context, todo []Check, control map[string]Outcome) error {
	var host, sandboxed []Check
	for _, c := range todo {
		k := c.Control
		if x.lacking(c.Needs) != "" {
			continue
		}
		if n := x.lacking(k.Needs); n != "" {
			control[c.ID] = Outcome{Act: c.Act, Skip: n + ": " + absent(n) + ", so the act cannot be shown to succeed"}
			continue
		}
		switch {
		case len(k.Off) > 0 && x.Hooks, k.Options != nil:
			sandboxed = append(sandboxed, c)
		case k.Host:
			host = append(host, c)
		case k.None == "":
			control[c.ID] = Outcome{Act: c.Act, Skip: "sbx was built without test hooks"}
		}
	}
	for _, group := range grouped(sandboxed, func(c Check) string {
		return c.Config + "\x00" +
			strings.Join(x.controlOptions(c), "\x00")
	}) {
		if err := x.sandbox(ctx, group, x.controlOptions(group[0]), control); err != nil {
			return err
		}
	}
	for _, group := range grouped(host, func(c Check) string { return c.Dir }) {
		err := x.batch(ctx, group, []string{x.lab.probe}, func(c Check) item {
			args := c.Control.Args
			if args == nil {
				args = c.Args
			}
			return item{ID: c.ID, Act: c.Act, Args: x.args(c, args), Host: true, Drop: c.Control.Drop, NS: c.Control.NS}
		}, control)
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *run) controlOptions(c Check) []string {
	if len(c.Control.Off) > 0 && x.Hooks {
		return append([]string{"--test-off=" + strings.Join(c.Control.Off, ",")}, c.Options...)
	}
	return c.Control.Options
}

// args fills in the placeholders, {READY} by check.
func (x *run) args(c Check, args []string) []string {
	out := x.lab.paths(args)
	for i, a := range out {
		out[i] = strings.ReplaceAll(a, "{READY}", x.lab.ready(c))
	}
	return out
}

// item is one act as the probe reads it.
type item struct {
	ID   string   `json:"id"`
	Act  string   `json:"act"`
	Args []string `json:"args"`
	Host bool     `json:"host,omitempty"`
	Drop bool     `json:"drop,omitempty"`
	NS   string   `json:"ns,omitempty"`
}

// batch runs a group behind argv, plays the host's part and looks at the host afterwards.
func (x *run) batch(ctx context.Context, group []Check, argv []string, act func(Check) item,
	got map[string]Outcome) error {
	if err := x.lab.prepare(group); err != nil {
		return err
	}
	saved := make(map[string]map[string][]byte)
	var items []item
	for _, c := range group {
		saved[c.ID] = x.lab.snapshot(c)
		items = append(items, act(c))
	}
	x.count++
	list := filepath.Join(filepath.Dir(x.lab.probe), "batch"+strconv.Itoa(x.count)+".json")
	b, err := json.Marshal(items)
	if err != nil {
		return fmt.Errorf("writing the batch: %w", err)
	}
	if err := os.WriteFile(list, b, 0o600); err != nil {
		return fmt.Errorf("writing the batch: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, runTime)
	defer cancel()
	attended, leave := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		x.lab.attend(attended, group)
	}()
	out, note := x.execute(ctx, append(argv, "batch", list), group[0])
	leave()
	<-done
	found := Parse(out)
	for _, c := range group {
		got[c.ID] = x.settle(c, found[c.ID], note, saved[c.ID])
	}
	return nil
}

// execute starts the command with a canary key in its session keyring and a directory open on fd 3.
func (x *run) execute(ctx context.Context, argv []string, first Check) (out []byte, note string) {
	cmd := exec.CommandContext(ctx, x.lab.probe, append([]string{"wrap", x.lab.tag}, argv...)...)
	cmd.Env, cmd.Dir, cmd.WaitDelay = x.env, x.lab.path("{PROJ}"), 2*time.Second
	if first.Dir != "" {
		cmd.Dir = x.lab.path(first.Dir)
	}
	if d, err := os.Open(x.lab.path("{HOME}/.ssh")); err == nil {
		defer d.Close()
		cmd.ExtraFiles = []*os.File{d}
	}
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err := cmd.Start()
	if err == nil && first.Kill {
		x.killWhenReady(ctx, cmd, first)
	}
	if err == nil {
		err = cmd.Wait()
	}
	if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
		note = err.Error() + ": " + lastLine(stderr.String())
	}
	return stdout.Bytes(), note
}

// killWhenReady kills the started process alone, not its children: that they go is what is tested.
func (x *run) killWhenReady(ctx context.Context, cmd *exec.Cmd, c Check) {
	marker := x.lab.ready(c)
	_ = os.Remove(marker)
	for end := time.Now().Add(time.Minute); time.Now().Before(end) && ctx.Err() == nil; time.Sleep(20 * time.Millisecond) {
		if _, err := os.Stat(marker); err == nil {
			break
		}
	}
	_ = cmd.Process.Signal(unix.SIGKILL)
}

// settle lets the host's state decide where the check says so, and explains a missing answer.
func (x *run) settle(c Check, o Outcome, note string, saved map[string][]byte) Outcome {
	if c.Kill {
		if _, err := os.Stat(x.lab.ready(c)); err == nil {
			o = Outcome{ID: c.ID, Act: c.Act, OK: true}
		}
	}
	if o.Act == "" && c.Alone && len(note) > 0 && slices.Contains(c.Want, "DIED") &&
		strings.Contains(note, "exit status 137") {
		// The whole sandbox was killed by its limit.
		o = Outcome{ID: c.ID, Act: c.Act, Errno: "DIED"}
	}
	if o.Act == "" {
		return Outcome{Detail: map[string]string{"note": note}}
	}
	if len(c.After) == 0 || o.Skip != "" {
		return o
	}
	switch text := x.lab.violation(c, saved); {
	case text != "":
		o.OK, o.Errno, o.Detail = true, "", map[string]string{"host": text}
	case o.OK:
		o.OK, o.Errno, o.Detail = false, noEffect, nil
	}
	return o
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if i := strings.LastIndexByte(s, '\n'); i >= 0 {
		s = s[i+1:]
	}
	return strconv.QuoteToASCII(s[:min(len(s), 300)])
}
