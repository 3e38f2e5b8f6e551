//go:build linux

package sandbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/hint"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/live"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/steps"
)

// The kinds of errors, for errors.Is. A program that ran and failed is none: see Result.Status.
var (
	ErrUnavailable = errors.New("this host has no sandbox to offer")
	ErrRefused     = errors.New("refused")                       // what was asked for is not given, or makes no sense
	ErrFault       = errors.New("setting up the sandbox failed") // a step of it
	ErrNotExecuted = errors.New("the program could not be executed")
	ErrTimeout     = errors.New("the time was over")
)

// Error is what Run returns: sbx's own words, what to do about it, and which kind it is. Status is what sbx run
// would have exited with.
type Error struct {
	Kind   error
	What   string
	Hint   string
	Status int
	cause  error
}

func (e *Error) Error() string   { return "sbx: " + e.What }
func (e *Error) Unwrap() []error { return []error{e.Kind, e.cause} }

// Request says what is to run. What is empty is as in the settings, which are read as sbx run reads them.
type Request struct {
	Argv    []string // the program and its arguments; required
	Dir     string   // the project directory, in which it starts; empty: the current one
	Profile string
	Mode    string // "static" or "dynamic"

	ReadOnly, Writable, Overlay, Hide, Secret, Tmpfs []string // paths
	Env                                              []string // NAME=VALUE, or NAME to pass on the caller's
	Timeout                                          time.Duration
	Options                                          []string // further options of sbx run, as it takes them

	Stdin          io.Reader // nil is the null device
	Stdout, Stderr io.Writer // nil: what is written is in the Result, up to MaxCaptured bytes of each
	Messages       *os.File  // what sbx has to say meanwhile; nil: nobody hears it

	// Answer answers what the program asks for beyond what is granted, in dynamic mode: false is that it has nothing to
	// say, and the question waits for somebody else. ctx ends with the question. Nil: people are asked, as with sbx run.
	Answer func(ctx context.Context, q client.Question) (a client.Answer, answered bool)
}

// MaxCaptured is how much of each stream a Result holds; what comes after that is dropped.
const MaxCaptured = 16 << 20

// Result is how the program ended.
type Result struct {
	Status         int            // as a shell has it: 128 + N where signal N ended it
	Signal         syscall.Signal // 0: none
	Duration       time.Duration
	Stdout, Stderr []byte // captured

	Audit   string   // the file of the session's audit log, for package audit
	Refused []string // what was refused or asked, a line for each, with what would allow it
}

// Run runs a program in a new sandbox and waits until it and everything it started has ended. A context that is
// cancelled ends them.
//
// The calling process cannot be traced by others of the same user from then on (PR_SET_DUMPABLE), and while the program
// runs SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1 and SIGUSR2 are passed on to it.
func Run(ctx context.Context, q Request) (Result, error) {
	return q.run(ctx, &live.Broker{})
}

// run is Run by a broker of which this says the rest.
func (q Request) run(ctx context.Context, b *live.Broker) (Result, error) {
	var s streams
	defer s.close()
	b.Env, b.Context, b.Answer = os.Environ(), ctx, q.Answer
	b.Notices = func([]policy.Notice) {} // a quiet run has none
	if err := s.open(b, q); err != nil {
		return Result{}, failed(err)
	}
	began := time.Now()
	var res live.Outcome
	r, err := q.request(b.Idle)
	if err == nil {
		res, err = b.Run(*r)
	}
	s.finish()
	out := Result{Status: res.Status, Signal: res.Signal, Duration: time.Since(began), Audit: res.Audit,
		Stdout: s.captured[1].Bytes(), Stderr: s.captured[2].Bytes()}
	if res.Report != nil {
		out.Refused = res.Report.Lines
	}
	switch {
	case ctx.Err() != nil:
		return out, ctx.Err()
	case err != nil:
		e := failed(err)
		b.Warn(e.What)
		if e.Hint != "" {
			b.Note("hint: " + e.Hint + "\n")
		}
		out.Status = e.Status
		return out, e
	case res.TimedOut:
		return out, &Error{Kind: ErrTimeout, What: fmt.Sprintf("timed out after %v", q.Timeout), Status: res.Status}
	}
	return out, nil
}

// request is what sbx run would have been asked for.
func (q *Request) request(idle bool) (*request.Request, error) {
	r := &request.Request{}
	rest, err := r.Parse(q.options())
	nothing := r.DryRun || r.Detach || r.NoSandbox || len(q.Argv) == 0 && !idle
	if err == option.ErrHelp || err == nil && (len(rest) > 0 || nothing) {
		err = option.Wrong("an embedded run takes options of sbx run that run something in a sandbox, and a program", "")
	}
	if err == nil {
		err = r.OnlyStatic()
	}
	r.Argv = q.Argv
	return r, err
}

// failed finds the kind of a failure.
func failed(err error) *Error {
	e := &Error{Kind: ErrRefused, What: err.Error(), Hint: hint.Of(err), Status: hint.Status(err), cause: err}
	var fault *steps.Fault
	var mistake *option.Mistake
	var refusal *planner.Refusal
	switch {
	case e.Status == 126 || e.Status == 127:
		e.Kind = ErrNotExecuted
	case errors.Is(err, launch.ErrUnavailable):
		e.Kind = ErrUnavailable
	case errors.As(err, &fault) || !errors.As(err, &mistake) && !errors.As(err, &refusal):
		e.Kind = ErrFault
	}
	return e
}

// options is the command line.
func (q *Request) options() []string {
	out := []string{"--quiet"}
	add := func(name string, values ...string) {
		for _, v := range values {
			if v != "" {
				out = append(out, "--"+name+"="+v)
			}
		}
	}
	add("workdir", q.Dir)
	add("profile", q.Profile)
	add("mode", q.Mode)
	add("ro", q.ReadOnly...)
	add("rw", q.Writable...)
	add("overlay", q.Overlay...)
	add("hide", q.Hide...)
	add("secret", q.Secret...)
	add("tmpfs", q.Tmpfs...)
	add("env", q.Env...)
	if q.Timeout > 0 {
		add("timeout", q.Timeout.String())
	}
	return append(out, q.Options...)
}

// streams stand between the program's descriptors and what the caller gave that is no file.
type streams struct {
	captured [3]bounded
	files    []*os.File // to be closed at the end
	theirs   []*os.File // the program's ends
	copied   []chan struct{}
}

func (s *streams) open(b *live.Broker, q Request) error {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	s.files = append(s.files, null)
	messages := q.Messages
	if messages == nil {
		messages = null
	}
	b.Note = func(text string) { _, _ = messages.WriteString(text) }
	b.Warn = func(line string) { b.Note("sbx: " + line + "\n") }
	for i, x := range [3]any{q.Stdin, q.Stdout, q.Stderr} {
		if f, ok := x.(*os.File); ok {
			b.Std[i] = f
			continue
		}
		if i == 0 && x == nil {
			b.Std[0] = null
			continue
		}
		r, w, err := os.Pipe()
		if err != nil {
			return fmt.Errorf("making a pipe: %w", err)
		}
		if i == 0 {
			b.Std[0], s.theirs = r, append(s.theirs, r)
			go func() {
				_, _ = io.Copy(w, q.Stdin)
				w.Close()
			}()
			continue
		}
		b.Std[i], s.theirs = w, append(s.theirs, w)
		to, done := io.Writer(&s.captured[i]), make(chan struct{})
		if y, ok := x.(io.Writer); ok {
			to = y
		}
		s.copied = append(s.copied, done)
		go func() {
			defer close(done)
			defer r.Close()
			if _, err := io.Copy(to, r); err != nil { // the program goes on, unheard
				_, _ = io.Copy(io.Discard, r)
			}
		}()
	}
	return nil
}

// finish waits until what was written has been passed on: all that could write more has ended.
func (s *streams) finish() {
	for _, f := range s.theirs {
		f.Close()
	}
	s.theirs = nil
	for _, done := range s.copied {
		<-done
	}
}

func (s *streams) close() {
	for _, f := range append(s.theirs, s.files...) {
		f.Close()
	}
}

// bounded keeps the first MaxCaptured bytes.
type bounded struct{ b bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.b.Write(p[:min(len(p), MaxCaptured-b.b.Len())])
	return len(p), nil
}

// Bytes is what was kept.
func (b *bounded) Bytes() []byte { return b.b.Bytes() }
