//go:build linux

package live

import (
	"context"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/input"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/steps"
)

// backend is what carries the plan out.
func (b *Broker) backend(r *run) launch.Backend {
	switch {
	case r.helper != nil:
		return r.helper
	case r.inPlace:
		return launch.Landlock{}
	}
	return launch.Native{}
}

// choose takes the backend that the settings name. With auto it is the native one until that has failed.
func (x *attempt) choose() (err error) {
	b, r := x.b, x.r
	switch r.backend = x.cfg.Backend(x.facts); r.backend {
	case backendNative, backendVM, backendDevContainer:
		r.dropHelper()
	case backendLandlock:
		r.dropHelper()
		if err = x.facts.LandlockAlone(); err != nil {
			return x.notHad(err)
		}
		r.inPlace = true
	case backendBwrap:
		r.dropHelper()
		if r.helper, err = launch.FindBubblewrap(r.NoSuid); err != nil {
			return x.notHad(err)
		}
	case backendHelper:
		if r.helper != nil {
			return nil
		}
		r.helper, err = b.helper(r, errors.New("sandbox.backend = helper ("+x.cfg.Origin("sandbox.backend")+")"))
		return err
	default:
		// What clones nothing goes by what the host says.
		r.inPlace = r.inPlace || r.DryRun && r.helper == nil && host.NamespacesOff() != "" && x.facts.LandlockAlone() == nil
	}
	return nil
}

// notHad says that the backend of the settings cannot be had here.
func (x *attempt) notHad(err error) error {
	what := "the backend " + x.r.backend + " (" + x.cfg.Origin("sandbox.backend") + ") cannot be had"
	return &planner.Refusal{What: what, Err: err, Hint: "sbx doctor says which backends this host has"}
}

// The backends that settings name.
const (
	backendAuto, backendNative, backendHelper = "auto", "native", "helper"
	backendBwrap, backendLandlock             = "bwrap", "landlock"
	backendVM, backendDevContainer            = "vm", "devcontainer"
)

// dropHelper ends one that was chosen before the settings were known.
func (r *run) dropHelper() {
	r.helper.End()
	r.helper = nil
}

// fallback finds the helper if err says that this host gives no sandboxes without one, or else does without namespaces;
// otherwise it returns err.
func (b *Broker) fallback(r *run, facts host.Facts, err error) error {
	switch f := new(steps.Fault); {
	case !errors.As(err, &f):
	case f.Step == "making fuse" && !r.noFuse:
		r.noFuse = true // the device opens and does not serve: only making the file system tells
		return nil
	case f.IsHostName() && !r.sameName && !facts.ProcCovered(): // which would be next
		r.sameName = true
		return nil
	}
	if old := facts.OwnMounts(); old != nil && r.helper == nil && !r.inPlace {
		return &planner.Refusal{What: "the backend " + r.backend + " cannot be had", Err: err, Hint: old.Error()}
	}
	if !errors.Is(err, launch.ErrUnavailable) || r.helper != nil || r.inPlace || r.backend == backendVM ||
		r.backend == backendDevContainer {
		return err
	}
	h, err := b.helper(r, err)
	switch {
	case err == nil:
		r.helper = h
	case r.backend != backendAuto || facts.LandlockAlone() != nil:
		return err
	default:
		r.inPlace = true
	}
	return nil
}

// chooseHelper chooses the helper before anything is planned, where it is set-user-id and the first clone of this
// process has shown that nothing else will do. For --dry-run, which clones nothing, the smallest sandbox is tried.
func (b *Broker) chooseHelper(r *run) {
	err := launch.Unavailable(b.Fault)
	named := r.Backend != "" && r.Backend != backendAuto && r.Backend != backendHelper
	if r.helper != nil || r.inPlace || named || r.NoSuid || err == nil && !r.DryRun {
		return
	}
	file, setuid, none := launch.FindHelper()
	if none != nil || !setuid {
		return
	}
	if r.DryRun {
		err = b.tryNative()
	}
	if errors.Is(err, launch.ErrUnavailable) {
		r.helper = &launch.Helper{Path: file}
	}
}

// tryNative builds the smallest sandbox without the helper.
func (b *Broker) tryNative() error {
	null, err := os.OpenFile(os.DevNull, unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	std := [3]*os.File{null, null, null}
	p, err := input.Smallest(b.Env, std, false, nil)
	if err == nil {
		_, err = launch.Try(context.Background(), p, launch.Options{Stdio: std})
	}
	return launch.Unavailable(err)
}

// helper finds the helper that may be used: one that is set-user-id, or one that the user, asked on the
// terminal each time, starts through sudo. Neither is ever a silent choice of sbx's: root installed the
// first, and the second is answered by a person.
func (b *Broker) helper(r *run, cause error) (*launch.Helper, error) {
	file, setuid, err := launch.FindHelper()
	switch {
	case err != nil:
		return nil, noHelper(cause, err.Error())
	case r.backend == backendNative && !r.NoSuid && setuid:
		return nil, noHelper(cause, file+" is set-user-id, and sandbox.backend = native takes none")
	case r.NoSuid: // whatever it is installed as, the kernel gives it nothing then
		return nil, noHelper(cause, "with --no-suid "+file+" runs with no_new_privs set, which leaves it no privilege ("+
			launch.Powerless(file).Error()+")")
	case setuid:
		return &launch.Helper{Path: file}, nil
	case !launch.HasSudo():
		return nil, noHelper(cause, file+" "+launch.WhyPlain(file)+"; and there is no sudo")
	case os.Getuid() == 0:
		return nil, noHelper(cause, "sbx-helper works for ordinary users only")
	case r.backend == backendNative || b.Sudo == nil || !b.Sudo(file):
		return nil, noHelper(cause, file+" "+launch.WhyPlain(file)+"; and nobody at a terminal agreed to sudo")
	}
	return &launch.Helper{Path: file, Sudo: true}, nil
}

// noHelper says that no sandbox can be built, and the three ways out.
func noHelper(cause error, why string) error {
	return &planner.Refusal{What: cause.Error() + "; " + why, Err: launch.ErrUnavailable, Hint: waysOut()}
}

// waysOut are the three ways to a sandbox where there are no user namespaces, and what each means.
func waysOut() string {
	return strings.Join([]string{host.UserNamespaceHint(), "three ways out:",
		"  1. let ordinary users have user namespaces: sandboxes then take no privilege at all",
		"  2. have root install sbx-helper set-user-id (package sbx-helper-suid, or chmod 4755 " +
			"/usr/local/libexec/sbx/sbx-helper): root's",
		"     code then builds each sandbox and gives everything up before the program starts",
		"  3. install sbx-helper plain and run sbx at a terminal: it asks, and starts the helper once through sudo",
		"  (--no-suid leaves the first: it runs sbx-helper with no_new_privs set, so that a set-user-id bit is ignored, " +
			"and asks for no sudo)",
		"  sbx doctor says which of them this host has, and what sandboxes lack that are built by the helper"}, "\n")
}
