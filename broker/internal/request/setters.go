package request

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/resources"
	"sbx.example/sbx/broker/plan"
)

// addPath reads a path as it was typed, for the option of the same name as flag.
func (r *Request) addPath(flag string, mode planner.Mode) func(string) error {
	return func(v string) error {
		if v == "" || strings.IndexByte(v, 0) >= 0 {
			return fmt.Errorf("%s is not a path", quoting.Quote(v))
		}
		r.Paths = append(r.Paths, pathOption{Path: v, Mode: mode, Flag: "--" + flag})
		return nil
	}
}

// addMade is addPath for a directory that is made if it is missing.
func (r *Request) addMade(flag string, mode planner.Mode) func(string) error {
	add := r.addPath(flag, mode)
	return func(v string) error {
		err := add(v)
		if err == nil {
			r.Paths[len(r.Paths)-1].Make = true
		}
		return err
	}
}

// MakeMissing makes the directories that are to be made, as the person's own programs would.
func (r *Request) MakeMissing(s Settings, cwd string) error {
	for _, o := range r.Paths {
		if !o.Make {
			continue
		}
		dir, _, err := o.Expand(s.Vars.Home, cwd, s.Vars.Project)
		if err == nil && !host.Exists(dir) {
			err = os.MkdirAll(dir, 0o777)
		}
		if err != nil {
			return &planner.Refusal{What: o.Flag + " " + quoting.Quote(o.Path), Err: err,
				Hint: "make it outside, or name a directory that can be made"}
		}
	}
	return nil
}

// addSocket takes a path as it is typed; the setting of the same meaning knows absolute ones only.
func (r *Request) addSocket(v string) error {
	if v == "" || strings.IndexByte(v, 0) >= 0 {
		return fmt.Errorf("%s is not a path", quoting.Quote(v))
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

func (r *Request) setName(v string) error {
	r.Name = v
	return plan.ValidSession(v)
}

func (r *Request) addEnv(v string) error {
	if err := CheckVariable(v); err != nil {
		return err
	}
	r.env = append(r.env, v)
	return nil
}

// CheckVariable accepts what --env does. A name may have dots and slashes, as those of npm have; with white space it is
// two words that were quoted as one.
func CheckVariable(v string) error {
	k, _, _ := strings.Cut(v, "=")
	if k == "" || strings.IndexByte(v, 0) >= 0 || strings.ContainsFunc(k, func(c rune) bool {
		return unicode.IsSpace(c) || unicode.IsControl(c)
	}) {
		return fmt.Errorf("%s is not NAME or NAME=VALUE", quoting.Quote(v))
	}
	return nil
}

func (r *Request) addEnvPass(v string) error {
	if err := policy.CheckVariables(v); err != nil {
		return err
	}
	r.envPass = append(r.envPass, v)
	return nil
}

func (r *Request) addRule(v string) error {
	rule, err := resources.ParseRule(v)
	if err == nil {
		r.Rules = append(r.Rules, rule)
	}
	return err
}

// setKVM implies --vm.
func (r *Request) setKVM(string) error {
	r.vm, r.kvm = true, true
	return nil
}

// nixSetting is what --nix is as a setting, which only says whether.
func (r *Request) nixSetting() any {
	if r.Nix == "" {
		return nil
	}
	return r.Nix != "off"
}

// sharedStore is the one value that --containers takes.
const sharedStore = "shared"

// setContainers reads --containers and --containers=shared.
func (r *Request) setContainers(v string) error {
	r.containers = true
	switch v {
	case "":
	case sharedStore:
		r.containersShared = true
	default:
		return errors.New("takes nothing or shared")
	}
	return nil
}

// setDBus reads --dbus and --dbus=NAME,...
func (r *Request) setDBus(v string) error {
	r.dbus = true
	for _, n := range strings.Split(v, ",") {
		if n == "" {
			continue
		}
		if strings.Trim(n, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-.") != "" ||
			!strings.Contains(n, ".") || strings.HasPrefix(n, ".") {
			return fmt.Errorf("%s is not the name of a service such as org.example.Service", quoting.Quote(n))
		}
		if BusRefused(n) {
			return fmt.Errorf("%s starts programs outside the sandbox or holds secrets, so nothing inside may talk to it", n)
		}
		r.BusNames = append(r.BusNames, n)
	}
	return nil
}

// setNix reads --nix, --nix=fetch and --nix=off.
func (r *Request) setNix(v string) error {
	switch v {
	case "", "fetch", "off":
		r.Nix = cmp.Or(v, "on")
		return nil
	}
	return fmt.Errorf("%s is not one of fetch, off", quoting.Quote(v))
}

// setSSHAgent reads --ssh-agent, --ssh-agent=KEY,... and --ssh-agent=sign-git.
func (r *Request) setSSHAgent(v string) error {
	r.sshAgent = true
	for _, k := range strings.Split(v, ",") {
		if k != "" {
			r.SSHKeys = append(r.SSHKeys, k)
		}
	}
	return nil
}

func (r *Request) addOnly(v string) error {
	if v == "" {
		return fmt.Errorf("wants a command")
	}
	r.Only = append(r.Only, v)
	return nil
}

// OnlyStatic makes --only what it implies: what is approved while a program runs could be executed too.
func (r *Request) OnlyStatic() error {
	if len(r.Only) == 0 {
		return nil
	}
	if r.Mode == "dynamic" {
		return option.Wrong("--only and --mode dynamic exclude each other", "leave one of them out: --only implies --static")
	}
	r.Mode = "static"
	return nil
}

// ForLearning makes the request that of a run which allows, asks nobody, and throws away what is written.
func (r *Request) ForLearning() {
	if r.Learn != "" {
		r.Mode, r.prompt, r.Ephemeral = "dynamic", "allow", true
	}
}

// busRefused are known services through which programs are started outside of the sandbox, or secrets can be had: each
// with those whose names begin with it and a dot, and in whatever version, which is a number at its end.
var busRefused = [...]string{"org.freedesktop.DBus", "org.freedesktop.systemd", "org.freedesktop.Flatpak",
	"org.freedesktop.portal", "org.freedesktop.impl.portal", "org.freedesktop.secrets", "org.gnome.Shell",
	"org.gnome.keyring", "org.gnome.Terminal", "org.kde.kwalletd", "org.kde.secretservicecompat", "org.kde.KWin",
	"org.kde.plasmashell", "org.kde.klauncher", "org.freedesktop.PackageKit", "org.freedesktop.login",
	"org.freedesktop.PolicyKit", "org.freedesktop.machine", "ca.desrt.dconf", "org.gtk.vfs",
	"org.freedesktop.FileManager", "org.kde.krunner", "org.kde.konsole", "org.kde.kded", "org.gnome.Console",
	"org.a11y.Bus", "org.keepassxc.KeePassXC"}

// BusRefused says whether nothing inside may talk to a service of the session bus.
func BusRefused(name string) bool {
	for ; name != ""; name = name[:max(0, strings.LastIndexByte(name, '.'))] {
		if slices.Contains(busRefused[:], strings.TrimRight(name, "0123456789")) {
			return true
		}
	}
	return false
}
