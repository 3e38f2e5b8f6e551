//go:build linux

package cli

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/session"
)

// detachedCommand is what `sbx run --detach` starts itself as. It is nothing for people: descriptor 3 is
// where the starter waits.
const detachedCommand = "run-detached"

// fdStarter is the descriptor on which a detached broker says that its sandbox stands.
const fdStarter = 3

// detach starts a broker that outlives this process and prints its session once the sandbox stands.
func (t *term) detach(r *request.Request, args []string) int {
	t.early.End() // the sandbox is the other process's
	t.early = child.NoEarly{}
	read, write, err := os.Pipe()
	if err != nil {
		return t.fail(fmt.Errorf("making a pipe: %w", err))
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return t.fail(err)
	}
	p, err := program.Self().Start(append([]string{detachedCommand}, args...), &os.ProcAttr{Env: t.Env,
		Files: []*os.File{null, null, t.Std[2], write}, Sys: &syscall.SysProcAttr{Setsid: true}})
	if err != nil {
		return t.fail(fmt.Errorf("starting the session's broker: %w", err))
	}
	write.Close()
	b, _ := io.ReadAll(read)
	if sid, ok := strings.CutSuffix(string(b), "\n"); ok {
		if r.JSON {
			t.print(command.Encode(struct {
				SID string `json:"sid"`
				PID int    `json:"pid"`
			}{sid, p.Pid}))
		} else {
			t.print(sid + "\n")
		}
		return 0
	}
	st, err := p.Wait() // it has said why
	switch {
	case err != nil:
		return t.fail(fmt.Errorf("starting the session's broker: %w", err))
	case !st.Exited():
		return t.fail(fmt.Errorf("starting the session's broker: it was ended: %v", st))
	}
	return st.ExitCode()
}

// cmdRunDetached is the other side of detach.
func cmdRunDetached(t *term, args []string) int {
	var st unix.Stat_t
	if unix.Fstat(fdStarter, &st) != nil || st.Mode&unix.S_IFMT != unix.S_IFIFO {
		return t.fail(wrong(detachedCommand+" is sbx's own", "use sbx run --detach"))
	}
	unix.CloseOnExec(fdStarter)
	t.takeEarly()
	var q request.Request
	rest, err := q.Parse(args)
	t.AnswerJSON(q.JSON, true)
	if err != nil {
		return t.fail(err)
	}
	if err := q.OnlyStatic(); err != nil {
		return t.fail(err)
	}
	q.Argv = rest
	if len(rest) == 0 && q.AsPID1 {
		return t.fail(wrong("--as-pid-1 needs a command", ""))
	}
	t.Messages, t.Std = t.Std[2], [3]*os.File{}
	if len(rest) > 0 {
		if err := t.openOutput(); err != nil {
			return t.fail(err)
		}
	}
	stood := false
	broker := t.broker()
	if t.Std[1] != nil {
		broker.Output = t.Std[1].Name()
	}
	broker.Idle, broker.Stood = len(rest) == 0, func(sid string) {
		stood = true
		t.tellStarter(sid)
	}
	status := t.run(broker, q)
	if out := t.Std[1]; out != nil && !stood {
		_ = os.Remove(out.Name())
	}
	return status
}

// tellStarter lets the process that started this one go. What is said from here on goes where the program's output
// goes: the terminal is somebody else's now.
func (t *term) tellStarter(sid string) {
	messages, err := t.Std[2], error(nil)
	if messages == nil {
		messages, err = os.OpenFile(os.DevNull, os.O_RDWR, 0)
	}
	if err == nil {
		t.Messages = messages
		_ = unix.Dup3(int(messages.Fd()), 2, 0)
	}
	_, _ = unix.Write(fdStarter, []byte(sid+"\n"))
	unix.Close(fdStarter)
}

// openOutput makes the file that a detached program writes to. It moves into the session's folder as soon as
// there is one.
func (t *term) openOutput() error {
	root, err := session.Root(host.Lookup(t.Env, "XDG_STATE_HOME"), host.Read(t.Env).Home)
	if err == nil {
		err = os.MkdirAll(root, 0o700)
	}
	var f *os.File
	if err == nil {
		f, err = os.OpenFile(filepath.Join(root, ".output-"+strconv.Itoa(os.Getpid())), os.O_WRONLY|os.O_APPEND|os.O_CREATE|
			os.O_EXCL, 0o600)
	}
	if err != nil {
		return &planner.Refusal{What: "making the file for the program's output", Err: err, Hint: session.RecordHint}
	}
	t.Std[1], t.Std[2] = f, f
	return nil
}
