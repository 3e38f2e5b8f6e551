package cli

import (
	"fmt"
	"path/filepath"
	"strconv"
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
	engine                                               string         // of a dynamic session, see there
	noFuse                                               bool           // it was tried, and does not work here
	helper                                               *launch.Helper // where there are no user namespaces; nil elsewhere
	paths                                                []pathOption
	hide, secret                                         []string
	sshKeys, busNames, only                              []string
	env, envPass, sockets                                []string
	sshAgent, gpgAgent, wayland, x11, dbus, vm, kvm      bool
	containers, containersShared                         bool
	nested                                               *nestedIDs // what --containers serves; nil: nothing
	allowNetwork                                         bool
	allowHosts, publish, hostPorts                       []string
	net                                                  string
	timeout, timeOffset                                  time.Duration
	tmpSize, memory, memoryHigh, cpu, io                 string
	pids                                                 int
	rules                                                []*resources.Rule
	asPID1, ephemeral, keep                              bool
	noDebug, strict, noSandbox, noSuid                   bool
	dryRun, json, verbose, quiet, help                   bool
	backend                                              string
	detach, idle                                         bool
	detached, stood                                      bool // this is the detached broker; its starter was told
	hooks                                                hooks
	relays                                               relays
	argv                                                 []string
}

func addPath(flag string, mode planner.Mode) func(*request, string) error {
	return func(r *request, v string) error {
		if v == "" || strings.IndexByte(v, 0) >= 0 {
			return fmt.Errorf("%s is not a path", quote(v))
		}
		r.paths = append(r.paths, pathOption{v, mode, "--" + flag})
		return nil
	}
}

// addSocket takes a path as it is typed; the setting of the same meaning knows absolute ones only.
func addSocket(r *request, v string) error {
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

func setName(r *request, v string) error {
	r.name = v
	return plan.ValidSession(v)
}

func addEnv(r *request, v string) error {
	if k, _, _ := strings.Cut(v, "="); k == "" || strings.IndexByte(v, 0) >= 0 {
		return fmt.Errorf("%s is not NAME or NAME=VALUE", quote(v))
	}
	r.env = append(r.env, v)
	return nil
}

func setString(field func(*request) *string, allowed ...string) func(*request, string) error {
	return func(r *request, v string) error {
		if len(allowed) > 0 {
			ok := false
			for _, a := range allowed {
				ok = ok || a == v
			}
			if !ok {
				return fmt.Errorf("%s is not one of %s", quote(v), strings.Join(allowed, ", "))
			}
		}
		*field(r) = v
		return nil
	}
}

// setBackend names what carries the plan out. Others know their names, so each says why it is not one here.
func setBackend(r *request, v string) error {
	switch v {
	case "native", "passthrough":
		r.backend = v
		return nil
	case "bwrap":
		return fmt.Errorf("bwrap makes no root whose files can be asked for and guards no names in a project, so a plan cannot be carried out through it; leave the option out")
	case "seatbelt":
		return fmt.Errorf("seatbelt is the sandbox of macOS, and this is Linux; leave the option out")
	}
	return fmt.Errorf("%s is not one of native, passthrough", quote(v))
}

func setCount(field func(*request) *int) func(*request, string) error {
	return func(r *request, v string) error {
		n, err := strconv.ParseUint(v, 10, 22)
		if err != nil || n == 0 {
			return fmt.Errorf("%s is not a number from 1 to 4194303", quote(v))
		}
		*field(r) = int(n)
		return nil
	}
}

func addRule(r *request, v string) error {
	rule, err := resources.ParseRule(v)
	if err == nil {
		r.rules = append(r.rules, rule)
	}
	return err
}

// accept is the setter of options that ask for what is always so.
func accept(*request, string) error { return nil }

func setBool(field func(*request) *bool) func(*request, string) error {
	return func(r *request, _ string) error { *field(r) = true; return nil }
}

func appendTo(field func(*request) *[]string) func(*request, string) error {
	return func(r *request, v string) error {
		if v == "" {
			return fmt.Errorf("wants a value")
		}
		*field(r) = append(*field(r), v)
		return nil
	}
}

func setDuration(field func(*request) *time.Duration) func(*request, string) error {
	return func(r *request, v string) error {
		d, err := time.ParseDuration(v)
		if n, e := strconv.ParseUint(v, 10, 31); e == nil {
			d, err = time.Duration(n)*time.Second, nil
		}
		if err != nil || d < 0 {
			return fmt.Errorf("%s is not a duration such as 90s, 5m or 1h30m", quote(v))
		}
		*field(r) = d
		return nil
	}
}

// expandPath makes a path of the command line absolute: "~" is the home, relative ones start at cwd,
// and the variables of the short list are replaced. Nothing else is expanded.
func expandPath(p, home, cwd, project string) (string, error) {
	switch {
	case p == "~" || strings.HasPrefix(p, "~/"):
		if home == "" {
			return "", fmt.Errorf("%s: HOME is not set", quote(p))
		}
		p = home + p[1:]
	case p == "$HOME" || strings.HasPrefix(p, "$HOME/"):
		if home == "" {
			return "", fmt.Errorf("%s: HOME is not set", quote(p))
		}
		p = home + p[len("$HOME"):]
	case p == "$PROJECT" || strings.HasPrefix(p, "$PROJECT/"):
		if project == "" {
			return "", fmt.Errorf("%s: there is no project here", quote(p))
		}
		p = project + p[len("$PROJECT"):]
	case strings.HasPrefix(p, "$"):
		return "", fmt.Errorf("%s: only ~, $HOME and $PROJECT are expanded", quote(p))
	}
	if !filepath.IsAbs(p) {
		if cwd == "" {
			return "", fmt.Errorf("%s is relative, and the working directory has no name", quote(p))
		}
		p = cwd + "/" + p
	}
	return p, nil
}
