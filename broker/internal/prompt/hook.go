package prompt

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"time"

	"sbx.example/sbx/broker/internal/program"
)

// Hook asks a command of the user's: a desktop notification, a chat. It gets the question as one JSON
// object on standard input and, escaped, in SBX_QUESTION_*; nothing that a guest chose is part of what
// the shell reads. Its last line is the answer: allow|deny [scope] [life], or the JSON object
// {"decision","scope","life","persist"}. No output means that it has only told somebody; everything
// else, a status other than 0 and silence beyond Timeout deny.
type Hook struct {
	Command string
	Timeout time.Duration
	Env     []string // see program.Environment
}

const (
	maxHooks      = 4 // that run at a time
	maxHookOutput = 4096
	// outputPatience is how long a command that has ended may leave its output open. What it wrote is read within, on a
	// busy host too; what it started and left behind must not hold up the answer.
	outputPatience = 5 * time.Second
)

// asker answers questions without a person at a terminal or socket: by a command, or by the program that runs the
// session.
type asker struct {
	ask    func(context.Context, Question) (a Answer, answered bool, err error)
	by     string
	failed func(error) // told why an answer counted as no
}

// serve asks about each new question until ctx ends.
func (h asker) serve(ctx context.Context, q *Queue, events <-chan Event) {
	slots := make(chan struct{}, maxHooks)
	running := make(map[string]context.CancelFunc)
	defer func() {
		for _, cancel := range running {
			cancel()
		}
	}()
	start := func(qu Question) {
		if running[qu.ID] != nil {
			return
		}
		one, cancel := context.WithCancel(ctx)
		running[qu.ID] = cancel
		go h.put(one, q, qu, slots)
	}
	for {
		var ev Event
		var ok bool
		select {
		case <-ctx.Done():
			return
		case ev, ok = <-events:
		}
		switch {
		case !ok && (ctx.Err() != nil || q.isClosed()):
			return
		case !ok:
			events, _ = q.Subscribe()
			for _, qu := range q.Pending() {
				start(qu)
			}
		case ev.Kind == Asked:
			start(ev.Question)
		case ev.Kind == Gone || ev.Kind == Decided:
			if cancel := running[ev.Question.ID]; cancel != nil {
				cancel()
				delete(running, ev.Question.ID)
			}
		}
	}
}

func (h asker) put(ctx context.Context, q *Queue, qu Question, slots chan struct{}) {
	select {
	case slots <- struct{}{}:
		defer func() { <-slots }()
	case <-ctx.Done():
		return
	}
	a, answered, err := h.ask(ctx, qu)
	if ctx.Err() != nil || err == nil && !answered {
		return
	}
	a.By, a.Last = h.by, qu.Last
	if err != nil {
		a = Answer{By: h.by}
		h.failed(err)
	}
	if err := q.Answer(qu.ID, a); err != nil && q.Answer(qu.ID, Answer{By: h.by}) == nil { // else somebody was faster
		h.failed(fmt.Errorf("taking answer of "+h.what()+": %w", err))
	}
}

func (h asker) what() string {
	if h.by == ByHook {
		return "prompt command"
	}
	return "program"
}

// Run puts one question. Answered is false when the command had nothing to say.
func (h Hook) Run(ctx context.Context, qu Question) (a Answer, answered bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, h.Timeout)
	defer cancel()
	cmd, err := program.Shell(ctx, h.Command, append(slices.Clone(h.Env), questionEnv(&qu)...))
	if err != nil {
		return a, false, fmt.Errorf("running prompt command: %w", err)
	}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // its children end with it
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = outputPatience
	in, err := qu.MarshalJSON()
	if err != nil {
		return a, false, err
	}
	cmd.Stdin = bytes.NewReader(append(in, '\n'))
	out := &program.Limited{Left: maxHookOutput}
	cmd.Stdout = out
	if err := cmd.Run(); err != nil {
		return a, false, fmt.Errorf("running prompt command: %w", program.Failed(err))
	}
	if out.Over {
		return a, false, fmt.Errorf("running prompt command: more than %d bytes of output", maxHookOutput)
	}
	text := strings.TrimSpace(out.String())
	if text == "" {
		return a, false, nil
	}
	a, err = parseReply(text[strings.LastIndexByte(text, '\n')+1:], time.Now())
	if err != nil {
		return Answer{}, false, fmt.Errorf("reading answer of prompt command: %w", err)
	}
	return a, true, nil
}

// questionEnv spells the question in printable ASCII. No value begins with a hyphen, so none passes for
// an option of a notifier; MARKUP is TEXT for notifiers that read tags.
func questionEnv(q *Question) []string {
	text := Style{}.wants(q, 1<<20)
	out := []string{
		"SBX_QUESTION_ID=" + q.ID,
		"SBX_QUESTION_SID=" + q.SID,
		"SBX_QUESTION_PID=" + itoa(q.PID),
		"SBX_QUESTION_TEXT=" + word(text),
		"SBX_QUESTION_MARKUP=" + strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;", `"`,
			"&quot;").Replace(word(text)),
	}
	for _, f := range [...]struct{ name, val string }{
		{"EXE", q.Exe}, {"CWD", q.Cwd}, {"OP", q.Op}, {"PATH", q.Path}, {"TARGET", q.Target}, {"HOST", q.Host},
		{"WHY", q.Why},
	} {
		v := ""
		if f.val != "" {
			v = word(quote(f.val))
		}
		out = append(out, "SBX_QUESTION_"+f.name+"="+v)
	}
	var names []string
	for _, n := range q.Paths {
		names = append(names, word(quote(n.Path)))
	}
	secret := ""
	if q.Secret {
		secret = "1"
	}
	return append(out, "SBX_QUESTION_PATHS="+strings.Join(names, "\n"), "SBX_QUESTION_PORT="+itoa(q.Port),
		"SBX_QUESTION_SECRET="+secret)
}

func word(s string) string {
	if strings.HasPrefix(s, "-") {
		return `"` + s + `"`
	}
	return s
}

// parseReply reads the answer of a hook: a JSON object or the words of parseWords.
func parseReply(s string, now time.Time) (Answer, error) {
	s = strings.TrimSpace(s)
	if !strings.HasPrefix(s, "{") {
		return parseWords(s, now)
	}
	var r struct {
		Decision, Scope, Life, Until, Persist string
	}
	d := json.NewDecoder(strings.NewReader(s))
	d.DisallowUnknownFields()
	if err := d.Decode(&r); err != nil {
		return Answer{}, err
	}
	if d.More() {
		return Answer{}, errors.New("more than one object in a line")
	}
	return NewAnswer(r.Decision, r.Scope, r.Life, r.Until, r.Persist, now)
}

// NewAnswer reads the words of an answer as the hook and the session socket spell them.
func NewAnswer(decision, scope, life, until, persist string, now time.Time) (a Answer, err error) {
	switch decision {
	case "allow":
		a.Allow = true
	case "deny":
	default:
		return a, fmt.Errorf("unknown decision %.40q: use allow or deny", decision)
	}
	a.Scope, a.Persist = Scope(scope), persist
	if a.Life, a.Until, err = parseLife(life, now); err != nil {
		return Answer{}, err
	}
	if until != "" {
		if !a.Until.IsZero() {
			return Answer{}, errors.New("life is a duration and until is given too: use one")
		}
		if a.Until, err = time.Parse(time.RFC3339, until); err != nil {
			return Answer{}, fmt.Errorf("reading until %.40q: want RFC 3339, such as 2030-01-31T12:00:00Z", until)
		}
	}
	return a, nil
}
