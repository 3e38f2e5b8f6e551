//go:build linux

package attend

import (
	"context"
	"errors"
	"io"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/client"
	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/handover"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/prompt"
)

// Caller is who has the terminal, and which session it is joined to.
type Caller struct {
	Sessions client.Sessions
	SID      string
	Home     string       // shown as ~
	Says     bool         // a person reads what Warn and Note say
	Note     func(string) // says a text as it is
	Warn     func(string) // says a line
}

// Asker puts a session's questions to the person at the caller's terminal, or says where they are answered. The
// session's own queue stays where it is: what it asks is asked here as well, by a queue of this process.
type Asker struct {
	by        Caller
	begin     time.Time      // what was asked before does not come from the program
	pid       int            // of the program as seen inside; 0: it is not known yet
	tty       *prompt.DevTTY // nil: nobody is at a terminal
	dev       *os.File       // the controlling terminal, where standard input is something else
	elsewhere bool           // the session takes answers on its own terminal alone
	leads     bool           // one is there and nothing is asked on it, as the program's output may come to it unseen
	queue     *prompt.Queue
	mu        sync.Mutex
	asked     map[string]prompt.Question // the session's, by what is asked about
	last      string                     // the session's, of what was answered last
	// Handed says that the program has the caller's standard error: it could read the id of a question there, and put
	// other words before it.
	Handed bool
	said   map[string]bool // of which questions
	ctx    context.Context
	stop   context.CancelFunc
	done   []<-chan struct{} // closed when nothing is shown any more
}

// New is for one program. Close ends it.
func New(by Caller) *Asker {
	a := &Asker{by: by, asked: map[string]prompt.Question{}, said: map[string]bool{}}
	a.ctx, a.stop = context.WithCancel(context.Background())
	return a
}

// At has the questions asked on the terminal that is both standard input and output, or on the controlling one, if
// this job has it. A session knows from then on that somebody is there. Where the program's output may come to a
// terminal by a way on which it does not wait for the answer, nothing is asked there.
func (a *Asker) At(std [3]*os.File) {
	keys, out := std[0], std[1]
	if !launch.IsTerminal(keys) || !launch.IsTerminal(out) {
		if a.dev = launch.ControllingTerminal(); a.dev == nil {
			return
		}
		keys, out = a.dev, a.dev
	}
	tty := &prompt.DevTTY{Console: prompt.Console{Keys: keys, Out: out}}
	if !tty.Usable() {
		return
	}
	session, err := a.by.Sessions.Dial(a.by.SID)
	if err != nil {
		return // starting the program says why
	}
	if session.Info.Mode != "dynamic" {
		session.Close()
		return
	}
	if a.elsewhere = session.Info.Prompt == string(prompt.TTYOnly); a.elsewhere {
		session.Close()
		return
	}
	if a.leads = strays(std[1], out) || strays(std[2], out); a.leads {
		a.spawn(func() { a.stay(session) })
		return
	}
	a.tty = tty
	word := prompt.NewWord()
	if a.by.Says {
		a.by.Note("sbx: true questions here begin with [" + word + "]\n")
	}
	shown := &prompt.TTY{Screen: tty, Style: prompt.Style{Word: word, Home: a.by.Home}}
	a.join(session)
	a.done = append(a.done, shown.Start(a.ctx, a.queue))
}

// strays says whether what is written to f may come to a terminal by another way than out, which is that terminal.
func strays(f, out *os.File) bool {
	if !launch.IsTerminal(f) {
		return launch.LeadsOn(f)
	}
	device := func(f *os.File) int {
		n, err := unix.IoctlGetInt(int(f.Fd()), unix.TIOCGDEV)
		if err != nil {
			return -1
		}
		return n
	}
	is := device(f)
	return is < 0 || is != device(out)
}

// stay has a session know that somebody is there who is not asked here.
func (a *Asker) stay(session *client.Session) {
	defer session.Close()
	_ = session.Follow(a.ctx, func(*client.Message) error { return nil })
}

// join makes the queue that asks here what the session asks.
func (a *Asker) join(session *client.Session) {
	const many = 1 << 20 // what is too much is the session's to say
	a.queue = prompt.NewQueue(prompt.Options{SID: a.by.SID, Timeout: forever, MaxOpen: many, Burst: many,
		CoalesceAfter: many, AutoDenyAfter: many, Commit: a.answer, Undo: a.undo})
	a.spawn(func() { a.follow(session) })
}

// forever is longer than any session waits for an answer.
const forever = 10 * 365 * 24 * time.Hour

func (a *Asker) spawn(f func()) {
	done := make(chan struct{})
	a.done = append(a.done, done)
	go func() {
		defer close(done)
		f()
	}()
}

// follow asks what the session asks, until that has an answer.
func (a *Asker) follow(session *client.Session) {
	defer session.Close()
	ended := map[string]func(){} // by id: has a question taken away
	_ = session.Follow(a.ctx, func(m *client.Message) error {
		id := string(m.ID)
		switch {
		case m.IsRequest() && ended[id] == nil:
			q := m.Question()
			a.mu.Lock()
			a.asked[q.Subject()] = q
			a.mu.Unlock()
			q.ID = "" // the queue gives it one
			ctx, cancel := context.WithCancel(a.ctx)
			done := make(chan struct{})
			ended[id] = func() { cancel(); <-done }
			go func() {
				defer close(done)
				a.queue.Ask(ctx, q)
			}()
		case m.Type == "event.audit" && ended[id] != nil:
			ended[id]()
			delete(ended, id)
		}
		return nil
	})
	for _, end := range ended {
		end()
	}
}

// answer gives the session what was answered here, on a connection of its own: a refusal ends that, and is shown.
func (a *Asker) answer(q prompt.Question, c decide.Consent) error {
	session, err := a.by.Sessions.Dial(a.by.SID)
	if err != nil {
		return err
	}
	defer session.Close()
	a.mu.Lock()
	asked := a.asked[q.Subject()]
	a.mu.Unlock()
	id := asked.ID
	c.Answer.Last = asked.Last // the queue here counts by itself
	if c.Answer.Allow {
		err = session.Approve(id, c.Answer)
	} else {
		err = session.Deny(id, c.Answer)
	}
	if err == nil {
		a.mu.Lock()
		a.last = id
		a.mu.Unlock()
	}
	var refused *client.Error
	if errors.As(err, &refused) && (refused.Code == control.CodeAnswered || refused.Code == control.CodeUnknown) {
		return prompt.ErrAnswered
	}
	return err
}

// undo has the session take back what was answered here last; the queue asks for nothing before it.
func (a *Asker) undo(decide.Consent) error {
	session, err := a.by.Sessions.Dial(a.by.SID)
	if err != nil {
		return err
	}
	defer session.Close()
	a.mu.Lock()
	id := a.last
	a.mu.Unlock()
	return session.Undo(id)
}

// Asked is told of each question of the session's, whoever asks it. Where it is asked on no terminal, and a program of
// this one's does, it says so.
func (a *Asker) Asked(q *client.Question) {
	if a.tty != nil && a.tty.Usable() || a.said[q.ID] || q.Time.Before(a.begin) || !a.own(q.PID) {
		return
	}
	a.said[q.ID] = true
	style := prompt.Style{Home: a.by.Home}
	id := q.ID[:min(len(q.ID), 8)]
	if a.elsewhere {
		a.by.Warn(style.Whole(*q) + "; that is asked on the session's own terminal")
		return
	}
	how := "sbx approve " + id + " or sbx deny " + id
	switch {
	case a.Handed:
		how = "sbx watch asks"
	case a.leads:
		how += "; nothing is asked on this terminal, to which the program's output may come by a pipe"
	}
	a.by.Warn(style.Whole(*q) + "; waiting for an answer: " + how)
}

// Told shows a line for people where it does not come between what the program writes.
func (a *Asker) Told(text string) {
	if a.tty != nil {
		a.tty.Print("sbx: " + text)
	}
}

// Begins says that the program is asked for only now.
func (a *Asker) Begins() { a.begin = time.Now() }

// Started tells which program it is, as it is numbered inside. It is called before Asked or by whoever calls that.
func (a *Asker) Started(pid int) { a.pid = pid }

// own says whether a process is the program or comes from it, also where that cannot be told.
func (a *Asker) own(pid int) bool {
	if a.pid == 0 || pid == 0 {
		return true
	}
	for range 64 {
		session, inside, parent := host.Lineage(uint32(pid))
		switch {
		case inside == a.pid || session == a.pid:
			return true
		case inside <= 1:
			return false
		}
		pid = int(parent)
	}
	return false
}

// Stop has nothing asked any more, and gives the terminal back as it was. It may be called again.
func (a *Asker) Stop() {
	if a.ctx.Err() != nil {
		return
	}
	a.stop()
	if a.queue != nil {
		a.queue.Close()
	}
	for _, d := range a.done {
		<-d
	}
}

// Close is Stop, once the program has ended and all that it wrote was copied. It may be called again.
func (a *Asker) Close() {
	a.Stop()
	if a.tty != nil {
		a.tty.EndOutput()
	}
	if a.dev != nil {
		a.dev.Close()
	}
}

// Join makes what copies between the caller's terminal and the program's: input calls taking as soon as it may have it.
func (a *Asker) Join(in, out, guest *os.File) (input func(taking func()), output func()) {
	if a.tty == nil || a.dev != nil {
		output = func() { _, _ = io.Copy(struct{ io.Writer }{a.output(out)}, struct{ io.Reader }{guest}) }
		if a.tty == nil && launch.IsTerminal(out) {
			output = (&prompt.Console{Out: out, Guest: guest}).CopyOutput
		}
		return func(taking func()) {
			keys, _ := launch.PlainJoin(in, out, guest, taking)
			keys()
		}, output
	}
	a.tty.Guest = guest
	return a.tty.CopyInput, a.tty.CopyOutput
}

// Streams are what a program without a terminal of its own reads and writes in the place of the caller's. A terminal is
// read and written only while no question is shown on it. Standard error, to which this process writes as well, is
// copied, and so is what else is the same file: the program could read and change there what it was not told.
func (a *Asker) Streams(std [3]*os.File) (in io.Reader, out, errs io.Writer) {
	if f := std[0]; launch.IsTerminal(f) {
		in = keys{f, a}
	} else if handover.Same(f, std[2]) {
		in = struct{ io.Reader }{f}
	} else if f != nil {
		in = f
	}
	out, errs = a.output(std[1]), a.output(std[2])
	if f, ok := errs.(*os.File); ok {
		errs = &copied{f}
	}
	if handover.Same(std[1], std[2]) {
		out = errs
	}
	return in, out, errs
}

// copied is a file that is not handed over.
type copied struct{ io.Writer }

// output is where what the program writes to a file of the caller's goes; nil: nowhere.
func (a *Asker) output(f *os.File) io.Writer {
	switch {
	case f == nil:
		return nil
	case a.tty != nil && launch.IsTerminal(f):
		return a.tty
	}
	return f
}

// keys is a terminal that is read for the program while no question is shown on it.
type keys struct {
	f *os.File
	a *Asker
}

// keysEvery is how often it is looked whether there is something to read.
const keysEvery = 50 * time.Millisecond

func (k keys) Read(b []byte) (int, error) {
	for {
		if k.a.tty != nil && k.a.tty.Shown() {
			time.Sleep(keysEvery)
			continue
		}
		fds := []unix.PollFd{{Fd: int32(k.f.Fd()), Events: unix.POLLIN}}
		n, err := unix.Poll(fds, int(keysEvery.Milliseconds()))
		if n == 0 || err == unix.EINTR || k.a.tty != nil && k.a.tty.Shown() {
			continue
		}
		return k.f.Read(b)
	}
}
