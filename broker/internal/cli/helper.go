package cli

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/host"
	"sbx/broker/internal/input"
	"sbx/broker/internal/launch"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/steps"
	"sbx/shared/plan"
)

// backend is what carries the plan out.
func (t *term) backend(r *run) launch.Backend {
	if r.helper != nil {
		return r.helper
	}
	return launch.Native{}
}

// instead finds the helper if err says that this host gives no sandboxes without one; otherwise it returns err.
func (t *term) instead(r *run, err error) error {
	if f := new(steps.Fault); errors.As(err, &f) && f.Step == "making fuse" && !r.noFuse {
		r.noFuse = true // the device opens and does not serve: only making the file system tells
		return nil
	}
	if !errors.Is(err, launch.ErrUnavailable) || r.helper != nil {
		return err
	}
	h, err := t.helper(r, err)
	if err == nil {
		r.helper = h
	}
	return err
}

// helperAtOnce chooses the helper before anything is planned, where it is set-user-id and the first clone of this
// process has shown that nothing else will do. For --dry-run, which clones nothing, the smallest sandbox is tried.
func (t *term) helperAtOnce(r *run) {
	err := launch.Unavailable(t.before.Fault)
	if r.helper != nil || r.NoSuid || err == nil && !r.DryRun {
		return
	}
	file, setuid, none := launch.FindHelper()
	if none != nil || !setuid {
		return
	}
	if r.DryRun {
		err = t.tryNative()
	}
	if errors.Is(err, launch.ErrUnavailable) {
		r.helper = &launch.Helper{Path: file}
	}
}

// tryNative builds the smallest sandbox without the helper.
func (t *term) tryNative() error {
	null, err := os.OpenFile(os.DevNull, unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	quiet := newTerm(t.Env, [3]*os.File{null, null, null})
	p, err := input.Smallest(quiet.Env, quiet.Std, false, false)
	if err == nil {
		_, err = launch.Run(context.Background(), p, launch.Options{Stdio: quiet.Std})
	}
	return launch.Unavailable(err)
}

// helper finds the helper that may be used: one that is set-user-id, or one that the user, asked on the
// terminal each time, starts through sudo. Neither is ever a silent choice of sbx's: root installed the
// first, and the second is answered by a person.
func (t *term) helper(r *run, cause error) (*launch.Helper, error) {
	file, setuid, err := launch.FindHelper()
	switch {
	case err != nil:
		return nil, noHelper(cause, err.Error())
	case r.NoSuid: // whatever it is installed as, the kernel gives it nothing then
		return nil, noHelper(cause, "with --no-suid "+file+" runs with no_new_privs set, which leaves it no privilege ("+launch.Powerless(file).Error()+")")
	case setuid:
		return &launch.Helper{Path: file}, nil
	case !launch.HasSudo():
		return nil, noHelper(cause, file+" "+launch.WhyPlain(file)+"; and there is no sudo")
	case os.Getuid() == 0:
		return nil, noHelper(cause, "sbx-helper works for ordinary users only")
	case !askForSudo(file):
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
		"  2. have root install sbx-helper set-user-id (package sbx-helper-suid, or chmod 4755 /usr/local/libexec/sbx/sbx-helper): root's",
		"     code then builds each sandbox and gives everything up before the program starts",
		"  3. install sbx-helper plain and run sbx at a terminal: it asks, and starts the helper once through sudo",
		"  (--no-suid leaves the first: it runs sbx-helper with no_new_privs set, so that a set-user-id bit is ignored, and asks for no sudo)",
		"  sbx doctor says which of them this host has, and what sandboxes lack that are built by the helper"}, "\n")
}

// askForSudo asks on the controlling terminal.
func askForSudo(file string) bool {
	tty, err := os.OpenFile("/dev/tty", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	_, _ = tty.WriteString("sbx: this host gives you no user namespaces\n" +
		"sbx: run sudo " + file + ", which builds this one sandbox as root and gives everything up before the program starts? [y/N] ")
	line, err := bufio.NewReader(tty).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (answer == "y" || answer == "yes")
}

// lacks is what a sandbox of the helper's does not have.
const lacks = "without user namespaces: no guarded file system (a secret in a writable project is covered, not absent), questions by the notification engine only, " +
	"no limit on processes but a control group's, no --as-pid-1, --time-offset or uid 0 inside"

// examineHelper is doctor's line about the helper: needed says that there are no user namespaces.
func (t *term) examineHelper(needed bool) finding {
	f := finding{What: "helper", OK: !needed}
	file, setuid, err := launch.FindHelper()
	switch {
	case errors.Is(err, launch.ErrNoHelper):
		f.Says = "not installed, and not needed: user namespaces are there"
	case err != nil:
		f.Says = err.Error()
	case setuid:
		f.Says = file + " is set-user-id: it is used only where user namespaces fail"
	case launch.HasSudo():
		f.Says = file + " " + launch.WhyPlain(file) + ": where user namespaces fail, sbx asks to start it through sudo"
	default:
		f.Says = file + " " + launch.WhyPlain(file) + ", and there is no sudo: it adds nothing"
	}
	if !needed {
		return f
	}
	if f.Fix = "see the three ways out that sbx run prints"; err != nil && errors.Is(err, launch.ErrNoHelper) {
		f.Says = "not installed: set-user-id, or once through sudo, it would build sandboxes"
		return f
	}
	if err == nil && setuid {
		if f = t.tryHelper(file); f.OK {
			f.Says = file + " is set-user-id and builds sandboxes; " + lacks
		}
		return f
	}
	if err == nil && launch.HasSudo() {
		f.OK, f.Fix = true, ""
		f.Says += "; " + lacks
	}
	return f
}

// tryHelper has the helper build the smallest sandbox there is.
func (t *term) tryHelper(file string) finding {
	f := finding{What: "helper", OK: true}
	null, err := os.OpenFile(os.DevNull, unix.O_RDWR, 0)
	if err == nil {
		defer null.Close()
		quiet := newTerm(t.Env, [3]*os.File{null, null, null})
		var p *plan.Plan
		if p, err = input.Smallest(quiet.Env, quiet.Std, false, true); err == nil {
			_, err = (&launch.Helper{Path: file}).Execute(context.Background(), launch.Job{Plan: p, Options: launch.Options{Stdio: quiet.Std}})
		}
	}
	if err != nil {
		f.OK, f.Says, f.Fix = false, err.Error(), "see the three ways out that sbx run prints"
	}
	return f
}
