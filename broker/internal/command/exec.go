//go:build linux

package command

import (
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/attend"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// Exec is sbx exec.
func (t *Term) Exec() Row {
	return Row{
		Command: option.Command{Name: "exec", Args: "[OPTIONS] SID [--] CMD [ARG...]",
			Help:    "run another command in a running session",
			Text:    "Runs CMD in the running session SID, as confined as its first program, and exits with its status.",
			Leading: true,
			Words:   []option.Word{{From: option.Session}, {From: option.Program}}},
		Begin: func([]string) ([]option.Option, func([]string) int) {
			q := &execRequest{maxOutput: 8 << 20}
			return q.options(t.Env), func(words []string) int { return t.execWords(q, words) }
		},
	}
}

// Attach is sbx attach.
func (t *Term) Attach() Row {
	return Row{
		Command: option.Command{Name: "attach", Args: "SID", Help: "open a shell in a running session",
			Text: "Opens a shell in the running session SID.", Words: []option.Word{{From: option.Session}, {}}},
		Begin: simple(t.attach),
	}
}

// execRequest is what the command line of sbx exec asks for.
type execRequest struct {
	sid       string
	argv, env []string
	unset     []string // that --env was to pass
	dir       string
	tty       int // 1: yes, -1: no, 0: as it fits
	json      bool
	maxOutput int
}

// options are those of sbx exec; env is its caller's environment.
func (q *execRequest) options(env []string) []option.Option {
	tty := func(how int) option.Value { return option.Func(func(string) error { q.tty = how; return nil }) }
	return []option.Option{
		{Name: "env", Short: "e", Arg: "K[=V]", Value: option.Func(func(v string) error { return q.addEnv(env, v) }),
			Help: "set K, or pass the caller's; the rest is the session's environment"},
		{Name: "workdir", Short: "w", Arg: "DIR", Value: option.Func(q.setDir).Of(option.Nothing),
			Help: "start in DIR, a directory inside (default: where the session started)"},
		{Name: "tty", Short: "t", Value: tty(1), Help: "give CMD a terminal (default: if input and output are terminals)"},
		{Name: "interactive", Short: "i", Value: option.Accepted(),
			Help: "accepted for compatibility: CMD has the caller's standard input"},
		{Name: "no-tty", Short: "T", Value: tty(-1), Help: "never give it one"},
		{Name: "json", Value: option.Switch(&q.json), Help: "print one JSON object: status, output, what was blocked"},
		{Name: "max-output", Arg: "N", Value: option.Func(q.setMaxOutput),
			Help: "bytes of each output that --json keeps (default 8388608)"},
	}
}

func (q *execRequest) addEnv(env []string, v string) error {
	if err := request.CheckVariable(v); err != nil {
		return err
	}
	k, _, ok := strings.Cut(v, "=")
	if i := slices.IndexFunc(env, func(e string) bool { return strings.HasPrefix(e, k+"=") }); !ok && i < 0 {
		q.unset = append(q.unset, k)
		return nil
	} else if !ok {
		v = env[i]
	}
	q.env = append(q.env, v)
	return nil
}

func (q *execRequest) setDir(v string) error {
	if !strings.HasPrefix(v, "/") {
		return fmt.Errorf("%s is not an absolute path", quote(v))
	}
	q.dir = v
	return nil
}

func (q *execRequest) setMaxOutput(v string) error {
	n, err := strconv.ParseUint(v, 10, 31)
	if err != nil {
		return fmt.Errorf("%s is not a number", quote(v))
	}
	q.maxOutput = int(n)
	return nil
}

// execWords runs the words behind the options: a session, and a program.
func (t *Term) execWords(q *execRequest, words []string) int {
	if len(words) > 0 {
		q.sid, words = words[0], words[1:]
	}
	if len(words) > 0 && words[0] == "--" {
		words = words[1:]
	}
	q.argv = words
	if q.sid == "" || len(q.argv) == 0 {
		return t.Fail(option.Wrong("sbx exec wants a session and a command", "sbx exec SID -- CMD; sbx ls lists sessions"))
	}
	if err := plan.ValidSession(q.sid); err != nil {
		return t.Fail(err)
	}
	for _, name := range q.unset {
		t.Warn(request.NotSet(name))
	}
	return t.exec(q)
}

func (t *Term) attach(args []string) int {
	if len(args) != 1 {
		return t.Fail(option.Wrong("sbx attach wants one session", "sbx ls lists them"))
	}
	if !launch.IsTerminal(t.Std[0]) || !launch.IsTerminal(t.Std[1]) {
		return t.Fail(option.Wrong("sbx attach needs a terminal", "use sbx exec "+args[0]+" -- CMD"))
	}
	return t.exec(&execRequest{sid: args[0], tty: 1, argv: []string{"/bin/sh", "-c",
		`command -v "$SHELL" >/dev/null && exec "$SHELL" || exec /bin/sh`}})
}

func (t *Term) exec(q *execRequest) int {
	a := attend.New(attend.Caller{Sessions: t.sessions(), SID: q.sid, Home: host.Lookup(t.Env, "HOME"), Note: t.Note,
		Warn: t.Warn, Says: launch.IsTerminal(t.Std[2])})
	defer a.Close()
	if t.Asked != nil {
		if fd, pid, got := t.Asked(); fd > 0 { // it is over, or a question waits
			c := client.Resume(fd, got)
			defer c.Close()
			a.At(t.Std)
			a.Handed = true
			started := startOf(a, passSignals(c))
			if pid > 0 {
				started(pid)
			}
			return t.execEnd(q)(c.Wait(client.Command{Started: started, Asked: a.Asked, Told: a.Told}))
		}
	}
	c, err := connect(t, q.sid, t.sessions().Programs)
	if err != nil {
		return t.Fail(err)
	}
	defer c.Close()
	a.Begins()
	if q.json { // nothing that the program writes is shown before its end
		a.At([3]*os.File{t.Std[0]})
	} else {
		a.At(t.Std)
	}
	told := passSignals(c)
	e := client.Command{Argv: q.argv, Env: q.env, Dir: q.dir, Started: startOf(a, told), Asked: a.Asked, Told: a.Told,
		Ended: func() {
			told.ended()
			a.Stop()
		}}
	e.Stdin, e.Stdout, e.Stderr = a.Streams(t.Std)
	t.Guest = true
	if q.json {
		return t.execJSON(c, q, e)
	}
	if q.tty > 0 || q.tty == 0 && launch.IsTerminal(t.Std[0]) && launch.IsTerminal(t.Std[1]) {
		return t.execTTY(c, q, e, a)
	}
	return t.execEnd(q)(c.Run(e))
}

// startOf tells both of the program's pid.
func startOf(a *attend.Asker, s *signals) func(int) {
	return func(pid int) {
		a.Started(pid)
		s.startOf(pid)
	}
}

func (t *Term) execFailed(err error) int {
	if errors.Is(err, client.ErrEnded) {
		t.Warn("the session ended")
		return 128 + int(syscall.SIGKILL)
	}
	var e *client.Error
	if errors.As(err, &e) {
		return t.Fail(&planner.Refusal{What: e.Message})
	}
	return t.Fail(err)
}

// execEnd returns what says how the program of q ended and makes an exit status of it.
func (t *Term) execEnd(q *execRequest) func(*client.End, error) int {
	return func(end *client.End, err error) int {
		if err != nil {
			return t.execFailed(err)
		}
		if end.Error != "" {
			t.Warn(end.Error)
			if end.Status == 127 && !strings.Contains(q.argv[0], "/") {
				t.Note("hint: commands are looked for inside the sandbox, in the PATH of its environment\n")
			}
		}
		for _, b := range end.Blocked {
			t.Warn("blocked: " + b)
		}
		for _, l := range end.Limits {
			t.Warn(l)
		}
		return end.Status
	}
}

// execResult is the answer to sbx exec --json; docs/sessions.md describes it.
type execResult struct {
	SID       string       `json:"sid"`
	PID       int          `json:"pid"`
	Argv      []plan.Bytes `json:"argv"`
	Status    int          `json:"status"`
	Signal    string       `json:"signal"`
	Error     *Failure     `json:"error,omitempty"`
	Started   string       `json:"started"`
	Seconds   float64      `json:"seconds"`
	Stdout    plan.Bytes   `json:"stdout"`
	Stderr    plan.Bytes   `json:"stderr"`
	Truncated bool         `json:"truncated"`
	Blocked   []string     `json:"blocked"`
	Limits    []string     `json:"limits"`
}

// execJSON runs the program with its output kept and prints one object. The exit status is the program's.
func (t *Term) execJSON(c client.Programs, q *execRequest, e client.Command) int {
	out, errs := &keeper{max: q.maxOutput}, &keeper{max: q.maxOutput}
	e.Stdout, e.Stderr = out, errs
	res := execResult{SID: q.sid, Argv: plan.BytesOf(q.argv), Started: time.Now().UTC().Format(time.RFC3339Nano),
		Blocked: []string{}, Limits: []string{}}
	end, err := c.Run(e)
	switch {
	case err != nil:
		res.Status = ExitUsage
		if errors.Is(err, client.ErrEnded) {
			res.Status = 128 + int(syscall.SIGKILL)
		}
		res.Error = &Failure{Message: err.Error(), Status: res.Status}
	default:
		res.PID, res.Status, res.Signal, res.Seconds = end.PID, end.Status, end.Signal, end.Duration.Seconds()
		if end.Error != "" {
			res.Error = &Failure{Message: end.Error, Status: end.Status}
		}
		res.Blocked, res.Limits = append(res.Blocked, end.Blocked...), append(res.Limits, end.Limits...)
	}
	res.Stdout, res.Stderr = plan.Bytes(out.b), plan.Bytes(errs.b)
	res.Truncated = out.more || errs.more
	t.Print(Encode(res))
	return res.Status
}

// keeper keeps the first max bytes.
type keeper struct {
	b    []byte
	max  int
	more bool
}

func (k *keeper) Write(p []byte) (int, error) {
	n := min(len(p), k.max-len(k.b))
	k.b = append(k.b, p[:n]...)
	k.more = k.more || n < len(p)
	return len(p), nil
}
