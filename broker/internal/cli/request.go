package cli

import (
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"sbx/broker/internal/launch"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/resources"
	"sbx/shared/plan"
)

// pathOption is one --ro, --rw, … as it was typed.
type pathOption struct {
	path string
	mode planner.Mode
	flag string
}

// request is what the command line asks for; a nil pointer or empty string means that it does not say.
type request struct {
	profile, mode, gate, workdir, hostname, name, caches string
	prompt, promptCommand                                string
	learn, nix                                           string
	promptTimeout                                        time.Duration
	paths                                                []pathOption
	hide, secret                                         []string
	sshKeys, busNames, only                              []string
	env, envPass, sockets                                []string
	sshAgent, gpgAgent, wayland, x11, dbus, vm, kvm      bool
	containers, containersShared                         bool
	allowNetwork                                         bool
	allowHosts, publish, hostPorts                       []string
	net                                                  string
	timeout, timeOffset                                  time.Duration
	tmpSize, memory, memoryHigh, cpu, io                 string
	pids                                                 int
	rules                                                []*resources.Rule
	asPID1, ephemeral, keep                              bool
	noDebug, strict, noSandbox, noSuid                   bool
	dryRun, json, verbose, quiet                         bool
	detach                                               bool
	hooks                                                hooks
	argv                                                 []string
}

// parse reads options of sbx run and returns the program's command line.
func (r *request) parse(args []string) ([]string, error) {
	c := runRow()
	c.Rows = r.options()
	return c.Parse(args)
}

// run is one attempt to carry a request out, and what has come of it so far. What was typed stays as it is.
type run struct {
	request
	argv           []string // the program: what was typed, or a shell
	profile, mode  string   // those of the settings
	strict         bool
	timeout        time.Duration
	engine         string         // of a dynamic session, see there
	noFuse         bool           // it was tried, and does not work here
	helper         *launch.Helper // where there are no user namespaces; nil elsewhere
	nested         *nestedIDs     // what --containers serves; nil: nothing
	idle, detached bool           // there is no program; this is the detached broker
	stood          bool           // whose starter was told
	relays         relays
}

// newRun begins with what was typed.
func newRun(q request) *run {
	return &run{request: q, argv: q.argv, profile: q.profile, mode: q.mode, strict: q.strict, timeout: q.timeout}
}

// addPath reads a path as it was typed, for the option of the same name as flag.
func (r *request) addPath(flag string, mode planner.Mode) func(string) error {
	return func(v string) error {
		if v == "" || strings.IndexByte(v, 0) >= 0 {
			return fmt.Errorf("%s is not a path", quote(v))
		}
		r.paths = append(r.paths, pathOption{v, mode, "--" + flag})
		return nil
	}
}

// addSocket takes a path as it is typed; the setting of the same meaning knows absolute ones only.
func (r *request) addSocket(v string) error {
	if v == "" || strings.IndexByte(v, 0) >= 0 {
		return fmt.Errorf("%s is not a path", quote(v))
	}
	if !strings.ContainsAny(v[:1], "/~$") {
		abs, err := filepath.Abs(v)
		if err != nil {
			return err
		}
		v = abs
	}
	r.sockets = append(r.sockets, v)
	return nil
}

func (r *request) setName(v string) error {
	r.name = v
	return plan.ValidSession(v)
}

func (r *request) addEnv(v string) error {
	if k, _, _ := strings.Cut(v, "="); k == "" || strings.IndexByte(v, 0) >= 0 {
		return fmt.Errorf("%s is not NAME or NAME=VALUE", quote(v))
	}
	r.env = append(r.env, v)
	return nil
}

// setBackend names what carries the plan out. Others know their names, so each says why it is not one here.
func (r *request) setBackend(v string) error {
	switch v {
	case "native":
		return nil
	case "passthrough":
		r.noSandbox = true
		return nil
	case "bwrap":
		return fmt.Errorf("bwrap makes no root whose files can be asked for and guards no names in a project, so a plan cannot be carried out through it; leave the option out")
	case "seatbelt":
		return fmt.Errorf("seatbelt is the sandbox of macOS, and this is Linux; leave the option out")
	}
	return fmt.Errorf("%s is not one of native, passthrough", quote(v))
}

func (r *request) addRule(v string) error {
	rule, err := resources.ParseRule(v)
	if err == nil {
		r.rules = append(r.rules, rule)
	}
	return err
}

// setKVM implies --vm.
func (r *request) setKVM(string) error {
	r.vm, r.kvm = true, true
	return nil
}

// nixSetting is what --nix is as a setting, which only says whether.
func (r *request) nixSetting() any {
	if r.nix == "" {
		return nil
	}
	return r.nix != "off"
}
