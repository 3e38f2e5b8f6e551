//go:build linux

package tools

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/relay"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// Tool is one that a session may call.
type Tool struct {
	policy.Tool
	program program.Program
	stamp   host.Stamp // of its file when the session began
}

// Find looks for a tool's program: where programs of the system are, or where its path says.
func Find(t policy.Tool, from program.Source) (Tool, error) {
	if t.On == policy.OnSpawn {
		return Tool{Tool: t}, nil
	}
	find := from.Find
	if strings.HasPrefix(t.Command[0], "/") {
		find = from.At
	}
	p, err := find(t.Command[0])
	if err != nil {
		return Tool{}, err
	}
	stamp, err := host.FS{}.Stamp(p.File())
	return Tool{t, p, stamp}, err
}

// Program is where its program is.
func (t *Tool) Program() string {
	if t.On == policy.OnSpawn {
		return "what its caller names"
	}
	return t.program.String()
}

// CarryLabels says why a caller may not hear what a sandbox reads, and else has the session carry its labels.
type CarryLabels func(ctx context.Context, pid int, t *Tool, sid string) error

// Calls are those of one session.
type Calls struct {
	Context     context.Context    //nolint:containedctx // of all calls and boxes
	Cancel      context.CancelFunc // of that
	Tools       map[string]Tool
	Project     string
	Env         []string                               // of the host, for what runs there
	Ask         func(context.Context, decide.Ask) bool // nil: nobody is asked
	Held        func(decide.Ask) bool                  // says whether labels stand in the way of a call; may be nil
	Marked      func(pid int, tool, words string) bool // says whether arguments have the mark of a decoy; may be nil
	CarryLabels CarryLabels
	Refused     func(a decide.Ask, reason string) // records what was refused without a question
	Session     *request.Request
	Home        string
	Linkable    []string // where the session's programs can make links
	Start       func(context.Context, *request.Request) (*Box, error)
	Find        func(sid string) (client.Programs, error) // connects to it
	Log         *audit.Writer

	running sync.WaitGroup
	mu      sync.Mutex
	boxes   map[string]*box // by tool
	closed  bool
}

// Serve answers what connects to l, until that is closed.
func (c *Calls) Serve(l *net.UnixListener, door *relay.Door) { serve(c.Context, l, door, c.carryOut) }

// Close ends what runs, and returns when its end is on record.
func (c *Calls) Close() {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.Cancel()
	c.running.Wait()
}

// begin says whether another call may run.
func (c *Calls) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.closed {
		c.running.Add(1)
	}
	return !c.closed
}

// Why a call was ended.
var (
	errTimeout = errors.New("it took too long")
	errOutput  = errors.New("it wrote too much")
)

// carryOut judges a call, and runs it.
func (c *Calls) carryOut(ctx context.Context, q Call, x *streams) End {
	if !c.begin() {
		return End{Status: refused, Message: "the session ends"}
	}
	defer c.running.Done()
	t, ok := c.Tools[q.Tool]
	if !ok {
		c.Refused(decide.Ask{PID: q.PID, Path: decide.Below(decide.Tools, q.Tool)}, "no tool is called that")
		return End{Status: refused, Message: "there is no such tool; ls " + decide.Tools + " lists them"}
	}
	words := typed(q.Args)
	if why := c.refuses(ctx, &t, q, words); why != "" {
		return End{Status: refused, Message: plan.Bytes(why)}
	}
	if err := c.note(q, "call", "", audit.KV{K: "arguments", V: words}); err != nil {
		return End{Status: refused, Message: plan.Bytes("the call cannot be recorded: " + err.Error())}
	}
	began := time.Now()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	ctx, stop := context.WithTimeoutCause(ctx, t.Timeout, errTimeout)
	defer stop()
	defer context.AfterFunc(ctx, x.hurry)()
	out := output{x, frameOutput, int64(t.MaxOutput()), func() { cancel(errOutput) }}
	errs := out
	errs.kind = frameErrors
	status, err := c.run(ctx, &running{&t, q, x, out, errs})
	end := ended(ctx, &t, status, err)
	_ = c.note(q, "end", string(end.Message), audit.KV{K: "status", V: strconv.Itoa(end.Status)},
		audit.KV{K: "input", V: strconv.FormatInt(x.in.Load(), 10)},
		audit.KV{K: "output", V: strconv.FormatInt(x.sent.Load(), 10)},
		audit.KV{K: "seconds", V: strconv.FormatFloat(time.Since(began).Seconds(), 'f', 3, 64)})
	return end
}

// typed is how arguments are typed into a shell.
func typed(args []string) string {
	words := make([]string, len(args))
	for i, a := range args {
		words[i] = quoting.Shell(a)
	}
	return strings.Join(words, " ")
}

// refuses says why a call is not carried out, "" if it is. What it says is on record.
func (c *Calls) refuses(ctx context.Context, t *Tool, q Call, words string) string {
	ask := decide.ToolCall(q.PID, t.Name, words, t.On == policy.OnHost)
	ask.Exe, _ = program.Links(q.PID)
	ask.Cwd = q.Dir // where it will run, which need not be where its caller is
	why, held := c.unfit(t, q), c.Held != nil && c.Held(ask)
	if c.Marked != nil && c.Marked(q.PID, t.Name, strings.Join(q.Args, " ")) {
		why = "its arguments have the mark of a decoy"
	}
	switch {
	case why != "" || t.On != policy.OnHost && t.Allows(q.Args) && !held:
	case !decide.Whole(words):
		why = "these arguments need a question, and are too long for one"
	case c.Ask != nil && c.Ask(ctx, ask):
		return ""
	case c.Ask != nil: // who has decided it has recorded it
		return "it was refused"
	case t.On == policy.OnHost:
		why = "it runs on the host, so each call is asked about, and static mode asks nobody"
	case held:
		why = "the session has read what no rule lets it hear of, and static mode asks nobody"
	default:
		why = "its arguments do not allow these (" + t.Origin.String() + "), and static mode asks nobody"
	}
	if why != "" {
		c.Refused(ask, why)
	}
	return why
}

// unfit says why a call cannot be carried out whatever anybody says of it.
func (c *Calls) unfit(t *Tool, q Call) string {
	if path.Clean(q.Dir) != q.Dir || !host.Within(q.Dir, c.Project) {
		return "its directory " + quoting.Quote(q.Dir) + " is not below the project " + quoting.Quote(c.Project)
	}
	if t.On == policy.OnSpawn {
		return ""
	}
	now, err := host.FS{}.Stamp(t.program.File())
	switch {
	case err != nil:
		return "its program cannot be looked at any more"
	case now != t.stamp:
		return "its program is another one than when the session began"
	}
	return ""
}

// running is a call that was allowed: of which tool, and where its input and output go.
type running struct {
	tool      *Tool
	call      Call
	in        *streams
	out, errs output
}

// run runs the tool, and returns its exit status, or why there is none.
func (c *Calls) run(ctx context.Context, r *running) (int, error) {
	t, q := r.tool, r.call
	if t.On == policy.OnSpawn {
		narrowed, argv, err := c.Session.Narrowed(t.Name, c.Project, q.Args)
		if err != nil {
			return refused, err
		}
		return c.runInBox(ctx, c.spawn(narrowed), r, argv)
	}
	args := slices.Concat(t.Command[1:], q.Args)
	if t.On == policy.OnHost {
		return runOnHost(ctx, r, args, c.Env)
	}
	return c.runInBox(ctx, c.enter(*t), r, append([]string{t.Program()}, args...))
}

// ended words how a call ended.
func ended(ctx context.Context, t *Tool, status int, err error) End {
	switch context.Cause(ctx) {
	case errTimeout:
		return End{Status: 124, Message: plan.Bytes(fmt.Sprintf("%v: ended after %v", errTimeout, t.Timeout))}
	case errOutput:
		return End{Status: refused, Message: plan.Bytes(fmt.Sprintf("%v: ended at %s", errOutput, t.Output))}
	}
	switch {
	case ctx.Err() != nil:
		return End{Status: refused, Message: "its caller has gone"}
	case err != nil:
		return End{Status: max(status, refused), Message: plan.Bytes(err.Error())}
	}
	return End{Status: status}
}

// note writes down that a call was begun, or has ended.
func (c *Calls) note(q Call, op, reason string, detail ...audit.KV) error {
	e := audit.Event{Kind: audit.KindTool, UID: os.Getuid(), PID: q.PID, Cwd: q.Dir, Op: op, Decision: "allow",
		Path: decide.Tools + "/" + q.Tool, Reason: reason, Detail: detail}
	e.Exe, _ = program.Links(q.PID)
	_, err := c.Log.Note(e)
	return err
}
