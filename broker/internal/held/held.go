package held

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/session"
	"sbx.example/sbx/broker/plan"
)

// Job is what is run, in a session that has been made.
type Job struct {
	Sandbox string // the program that takes a profile, seatbelt.Program
	Session *session.Session
	Logs    string // the folder of the audit logs
	Sockets string // the folder of the sessions' sockets
	Profile string // for the sandbox, in its language
	Plan    *plan.Plan
	Losses  []planner.Loss
	About   string // the name of the settings' profile
	Stdio   [3]*os.File
	Timeout time.Duration
}

// profileFile is the file of the record that holds the profile.
const profileFile = "profile.sb"

// Run runs the program to its end. Nothing is run that cannot be recorded. What was made for the session is closed; the
// record stays, unless the program never began.
func (j *Job) Run(ctx context.Context) (end launch.End, err error) {
	defer func() {
		var never *launch.ExecError
		if err != nil && (end == launch.End{} || errors.As(err, &never)) {
			j.Session.Discard()
			return
		}
		err = errors.Join(err, j.Session.Close(false))
	}()
	if err = os.MkdirAll(string(j.Plan.InPlace.Tmp), 0o700); err != nil {
		return end, fmt.Errorf("making the session's folder for temporary files: %w", err)
	}
	if err = j.Session.WriteFile(profileFile, []byte(j.Profile)); err != nil {
		return end, fmt.Errorf("writing the session's profile: %w", err)
	}
	log, err := j.log()
	if err != nil {
		return end, &planner.Refusal{What: "starting the session's audit log", Err: err, Hint: session.RecordHint}
	}
	defer func() { err = errors.Join(err, log.Close()) }()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	server, err := j.listen(cancel)
	if err != nil {
		return end, err
	}
	defer server.Close()
	go func() { _ = server.Serve() }()
	p := &j.Plan.Process
	argv := []string{filepath.Base(j.Sandbox), "-f", filepath.Join(j.Session.Dir, profileFile), string(p.Path)}
	for _, a := range p.Argv[1:] {
		argv = append(argv, string(a))
	}
	env := make([]string, len(p.Env))
	for i, e := range p.Env {
		env[i] = string(e)
	}
	end, err = launch.Outside{Path: j.Sandbox, Argv: argv, Env: env, Dir: string(p.Dir), Stdio: j.Stdio,
		Timeout: j.Timeout}.Run(ctx)
	if errors.Is(err, context.Canceled) {
		err = nil // somebody ended the session
	}
	if err != nil {
		return end, err
	}
	server.Exit(end.Status())
	_, err = log.Note(audit.Event{Kind: audit.KindExit, UID: os.Getuid(), Detail: []audit.KV{
		{K: "status", V: fmt.Sprint(end.Status())}}})
	return end, err
}

// log begins the audit log, with what this host cannot enforce.
func (j *Job) log() (*audit.Writer, error) {
	hash := sha256.Sum256([]byte(j.Profile))
	w, err := audit.Create(j.Logs, j.Session.ID, audit.Options{PlanHash: hex.EncodeToString(hash[:]), MaxBytes: 16 << 20,
		Start: audit.Event{UID: os.Getuid(), PID: os.Getpid(), Cwd: string(j.Plan.Process.Dir), Op: "run",
			Path: string(j.Plan.Process.Argv[0]), Detail: []audit.KV{{K: "profile", V: j.About}, {K: "mode", V: "static"}}}})
	if err != nil {
		return nil, err
	}
	for _, x := range j.Losses {
		if _, err := w.Note(audit.Event{Kind: audit.KindLoss, UID: os.Getuid(), Reason: x.String()}); err != nil {
			return nil, errors.Join(err, w.Close())
		}
	}
	return w, nil
}

// listen opens the session's socket, on which it can be seen and ended.
func (j *Job) listen(end func()) (*control.Server, error) {
	return control.Listen(j.Sockets, control.Info{SID: j.Session.ID, PID: os.Getpid(), Started: time.Now(),
		Profile: j.About, Mode: "static", Cwd: j.Plan.Process.Dir, Argv: j.Plan.Process.Argv},
		control.Handlers{Kill: func(pid int, signal string) error {
			if pid != 0 || signal != "" {
				return errors.New("a session on this system takes no signals: send them to the program itself")
			}
			end()
			return nil
		}}, control.Options{})
}
