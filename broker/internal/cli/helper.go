//go:build linux

package cli

import (
	"bufio"
	"context"
	"errors"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/input"
	"sbx.example/sbx/broker/internal/launch"
)

// lacks is what a sandbox of the helper's does not have.
const lacks = "without user namespaces: a secret in a writable project is covered, not absent, questions by the " +
	"notification engine only, no limit on processes but a control group's, no --as-pid-1, --time-offset or uid 0 inside"

// waysOut is what to do where no sandbox can be built otherwise.
const waysOut = "see the three ways out that sbx run --backend native prints"

// examineHelper is doctor's line about the helper: needed says that there are no user namespaces.
func (t *term) examineHelper(needed bool) finding {
	f := finding{What: "helper", Loss: needed}
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
	if f.Fix = waysOut; err != nil && errors.Is(err, launch.ErrNoHelper) {
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
		f.OK, f.Loss, f.Fix = true, false, ""
		f.Says += "; " + lacks
	}
	return f
}

// tryHelper has the helper build the smallest sandbox there is.
func (t *term) tryHelper(file string) finding {
	f := finding{What: "helper", OK: true}
	if err := t.tryBuilder(&launch.Helper{Path: file}); err != nil {
		f.OK, f.Loss, f.Says, f.Fix = false, true, err.Error(), waysOut
	}
	return f
}

// tryBuilder has another program build the smallest sandbox there is.
func (t *term) tryBuilder(by *launch.Helper) error {
	null, err := os.OpenFile(os.DevNull, unix.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer null.Close()
	quiet := newTerm(t.Env, [3]*os.File{null, null, null})
	p, err := input.Smallest(quiet.Env, quiet.Std, false, by)
	if err != nil {
		return err
	}
	_, err = by.Execute(context.Background(), launch.Job{Plan: p, Options: launch.Options{Stdio: quiet.Std}})
	return err
}

// askForSudo asks on the controlling terminal.
func askForSudo(file string) bool {
	tty, err := os.OpenFile("/dev/tty", unix.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		return false
	}
	defer tty.Close()
	_, _ = tty.WriteString("sbx: this host gives you no user namespaces\n" +
		"sbx: run sudo " + file +
		", which builds this one sandbox as root and gives everything up before the program starts? [y/N] ")
	line, err := bufio.NewReader(tty).ReadString('\n')
	answer := strings.ToLower(strings.TrimSpace(line))
	return err == nil && (answer == "y" || answer == "yes")
}
