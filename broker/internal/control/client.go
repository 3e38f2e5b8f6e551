package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

// Message is any line that a broker sends (docs/protocol.md): what all may have, and what one kind of them has. Members
// that a type lacks are empty.
type Message struct {
	Type string     `json:"type"`
	ID   plan.Bytes `json:"id"` // of a question
	TS   string     `json:"ts"`
	PID  int        `json:"pid"` // who asks; of a hello the broker
	Cwd  plan.Bytes `json:"cwd"`
	Hello
	Request
	Decided
	Said
	Numbers // stats, event.metrics
}

// Hello is what a hello has: what a session says of itself.
type Hello struct {
	Version int          `json:"version"`
	SID     plan.Bytes   `json:"sid"`
	Init    int          `json:"init"`
	Started string       `json:"started"`
	Profile plan.Bytes   `json:"profile"`
	Mode    plan.Bytes   `json:"mode"`
	Prompt  plan.Bytes   `json:"prompt"`
	Argv    []plan.Bytes `json:"argv"`
	Frozen  bool         `json:"frozen"`
}

// Request is what event.fs_request and event.net_request have: a question.
type Request struct {
	Inside   int          `json:"inside_pid"`
	Exe      plan.Bytes   `json:"exe"`
	Op       plan.Bytes   `json:"op"`
	Path     plan.Bytes   `json:"path"`
	Target   plan.Bytes   `json:"target"`
	Host     plan.Bytes   `json:"host"`
	Port     int          `json:"port"`
	Flags    int          `json:"flags"`
	Why      plan.Bytes   `json:"why"`
	Dir      bool         `json:"dir"`
	Paths    []plan.Bytes `json:"paths"`
	Walk     plan.Bytes   `json:"walk"`
	Whole    bool         `json:"whole"`
	Secret   bool         `json:"secret"`
	AppRead  []plan.Bytes `json:"app_read"`
	AppWrite []plan.Bytes `json:"app_write"`
	Labels   []plan.Bytes `json:"labels"`
	Others   []plan.Bytes `json:"others"`
	Acts     plan.Bytes   `json:"acts"`
	Everyone bool         `json:"everyone"`
	Merged   int          `json:"merged"`
	Last     int          `json:"last"`
}

// Decided is what event.audit has: the answer to a question, or that it was withdrawn.
type Decided struct {
	Decision string `json:"decision"`
	Scope    string `json:"scope"`
	Life     string `json:"life"`
	Until    string `json:"until"`
	Persist  string `json:"persist"`
	By       string `json:"by"`
}

// Said is what the rest has.
type Said struct {
	Text    plan.Bytes `json:"text"`    // event.notice
	Code    string     `json:"code"`    // error
	Message plan.Bytes `json:"message"` // error
	Re      string     `json:"re"`      // ok: the command
	Count   int        `json:"count"`   // ok: how many there were
	Status  int        `json:"status"`  // event.exit
}

func parseTime(s string) time.Time {
	t, _ := time.Parse(time.RFC3339Nano, s)
	return t
}

// IsRequest says whether the message is a question.
func (m *Message) IsRequest() bool {
	return m.Type == "event.fs_request" || m.Type == "event.net_request"
}

// Question is the question of a request.
func (m *Message) Question() prompt.Question {
	var paths []prompt.Name
	for _, p := range m.Paths {
		name, dir := strings.CutSuffix(string(p), "/")
		paths = append(paths, prompt.Name{Path: name, Dir: dir})
	}
	return prompt.Question{ID: string(m.ID), SID: string(m.SID), Time: parseTime(m.TS), PID: m.PID, Inside: m.Inside,
		Exe: string(m.Exe), Cwd: string(m.Cwd),
		Op: string(m.Op), Path: string(m.Path), Target: string(m.Target), Host: string(m.Host), Port: m.Port, Flags: m.Flags,
		Why: string(m.Why), Dir: m.Dir, Whole: m.Whole,
		Secret: m.Secret, Walk: string(m.Walk), Paths: paths, Merged: m.Merged, Last: m.Last,
		AppRead: texts(m.AppRead), AppWrite: texts(m.AppWrite),
		Everyone: m.Everyone, Labels: texts(m.Labels), Others: texts(m.Others), Acts: string(m.Acts)}
}

func texts(list []plan.Bytes) (out []string) {
	for _, b := range list {
		out = append(out, string(b))
	}
	return out
}

// Info is what a hello says.
func (m *Message) Info() Info {
	return Info{SID: string(m.SID), PID: m.PID, Init: m.Init, Frozen: m.Frozen, Started: parseTime(m.Started),
		Profile: string(m.Profile), Mode: string(m.Mode), Prompt: string(m.Prompt), Cwd: m.Cwd,
		Argv: m.Argv}
}

// Metrics is what an event.metrics or stats says.
func (m *Message) Metrics() Metrics {
	return Metrics{parseTime(m.TS), m.Numbers}
}

// Client is one connection. It is not safe for concurrent use, except that commands may be sent while
// Follow reads.
type Client struct {
	Info Info
	f    *os.File
	in   lineReader
}

// patience bounds every wait for a broker that should answer at once.
const patience = 5 * time.Second

func connect(dir int, folder string) (*os.File, error) {
	fd, err := connectRaw(dir, folder)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "session socket"), nil
}

func connectRaw(dir int, folder string) (int, error) {
	fd, err := streamSocket()
	if err != nil {
		return -1, err
	}
	// EAGAIN: the broker's backlog is full.
	for wait := time.Millisecond; ; wait *= 2 {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: sockName(dir, folder)})
		if err != unix.EAGAIN || wait > 4*time.Second {
			break
		}
		time.Sleep(wait)
	}
	if err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

// Dial connects to a session below root, see Root.
func Dial(root, sid string) (*Client, error) {
	dir, err := openSession(root, sid)
	if err != nil {
		return nil, fmt.Errorf("connecting to session %s: %w", sid, err)
	}
	defer unix.Close(dir)
	f, err := connect(dir, folderOf(root, sid))
	if err != nil {
		return nil, fmt.Errorf("connecting to session %s: %w", sid, err)
	}
	c := &Client{f: f, in: lineReader{r: f}}
	m, err := c.next(time.Now().Add(patience))
	if err == nil && (m.Type != "hello" || m.Version != Version || string(m.SID) != sid) {
		err = fmt.Errorf("it speaks version %d and calls itself %s", m.Version, m.SID.Quote())
	}
	if err != nil {
		f.Close()
		return nil, fmt.Errorf("connecting to session %s: %w", sid, err)
	}
	c.Info = m.Info()
	// who has said something is not sent away when many are connected
	_ = c.send(message("hello").num("version", Version).line())
	return c, nil
}

// Close ends the connection; a Follow that is running ends with it.
func (c *Client) Close() { _ = c.f.Close() }

// next reads a message; an error object becomes an error.
func (c *Client) next(deadline time.Time) (*Message, error) {
	if err := c.f.SetReadDeadline(deadline); err != nil {
		return nil, err
	}
	line, err := c.in.read()
	if err != nil {
		return nil, err
	}
	m := new(Message)
	if err := json.Unmarshal(line, m); err != nil {
		return nil, fmt.Errorf("reading from the session: %w", err)
	}
	if m.Type == "error" {
		return nil, &Error{m.Code, string(m.Message)}
	}
	return m, nil
}

// call sends a command and waits for its reply; events that come before it go to each.
func (c *Client) call(line []byte, reply string, each func(*Message)) (*Message, error) {
	if err := c.send(line); err != nil {
		return nil, err
	}
	deadline := time.Now().Add(patience)
	for {
		m, err := c.next(deadline)
		if err != nil {
			return nil, err
		}
		if m.Type == reply || m.Type == "ok" && m.Re == reply {
			return m, nil
		}
		if each != nil {
			each(m)
		}
	}
}

func (c *Client) send(line []byte) error {
	if err := c.f.SetWriteDeadline(time.Now().Add(patience)); err != nil {
		return err
	}
	if _, err := c.f.Write(line); err != nil {
		// The broker says why before it closes.
		var e *Error
		for {
			if _, rerr := c.next(time.Now().Add(patience)); errors.As(rerr, &e) {
				return e
			} else if rerr != nil {
				return fmt.Errorf("sending to the session: %w", err)
			}
		}
	}
	return nil
}

// Pending returns the open questions, oldest first.
func (c *Client) Pending() ([]prompt.Question, error) {
	var out []prompt.Question
	seen := make(map[plan.Bytes]int)
	_, err := c.call(message("cmd.pending").line(), "cmd.pending", func(m *Message) {
		switch {
		case m.IsRequest():
			if i, ok := seen[m.ID]; ok {
				out[i] = m.Question()
				return
			}
			seen[m.ID] = len(out)
			out = append(out, m.Question())
		case m.Type == "event.audit":
			if i, ok := seen[m.ID]; ok {
				out[i].ID = ""
			}
		}
	})
	kept := out[:0]
	for _, q := range out {
		if q.ID != "" {
			kept = append(kept, q)
		}
	}
	return kept, err
}

func answerLine(id string, a prompt.Answer) []byte {
	typ := "cmd.deny"
	if a.Allow {
		typ = "cmd.approve"
	}
	o := message(typ).str("id", id).opt("scope", string(a.Scope)).opt("life", string(a.Life)).opt("persist", a.Persist)
	if !a.Until.IsZero() {
		o.time("until", a.Until)
	}
	if a.Last > 0 {
		o.num("last", int64(a.Last))
	}
	return o.line()
}

// Approve allows what a question asks, as far and as long as a says.
func (c *Client) Approve(id string, a prompt.Answer) error {
	a.Allow = true
	return c.answer(id, a)
}

// Deny denies it; the zero Answer denies once.
func (c *Client) Deny(id string, a prompt.Answer) error {
	a.Allow = false
	return c.answer(id, a)
}

func (c *Client) answer(id string, a prompt.Answer) error {
	line := answerLine(id, a)
	typ := "cmd.deny"
	if a.Allow {
		typ = "cmd.approve"
	}
	_, err := c.call(line, typ, nil)
	return err
}

// Send answers without waiting for the reply, which comes as an event. It may be called during Follow.
func (c *Client) Send(id string, a prompt.Answer) error {
	_ = c.f.SetWriteDeadline(time.Now().Add(patience))
	_, err := c.f.Write(answerLine(id, a))
	return err
}

// Revoke has the session forget every answer about a path, socket or host, and returns how many there were.
func (c *Client) Revoke(kind, name string) (int, error) {
	m, err := c.call(message("cmd.revoke").str("kind", kind).str("name", name).line(), "cmd.revoke", nil)
	if err != nil {
		return 0, err
	}
	return m.Count, nil
}

// Reveal has the session show a secret file that it may ask about, until it ends or until a time.
func (c *Client) Reveal(path string, until time.Time) error {
	o := message("cmd.reveal").str("name", path).str("life", string(prompt.ForSession))
	if !until.IsZero() {
		o = message("cmd.reveal").str("name", path).str("life", string(prompt.ForUntil)).time("until", until)
	}
	_, err := c.call(o.line(), "cmd.reveal", nil)
	return err
}

// Undo takes back what was answered to the question with that id.
func (c *Client) Undo(id string) error {
	_, err := c.call(message("cmd.undo").str("id", id).line(), "cmd.undo", nil)
	return err
}

// Kill ends the session (0 and ""), or sends a signal such as TERM to its first program or to the one
// called pid, and to the rest of its process group.
func (c *Client) Kill(pid int, signal string) error {
	_, err := c.call(killLine(pid, signal), "cmd.kill", nil)
	return err
}

func killLine(pid int, signal string) []byte {
	o := message("cmd.kill").opt("signal", signal)
	if pid != 0 {
		o.num("pid", int64(pid))
	}
	return o.line()
}

// Freeze stops every process of the session, Thaw lets them go on.
func (c *Client) Freeze() error {
	_, err := c.call(message("cmd.freeze").line(), "cmd.freeze", nil)
	return err
}

// Thaw is the opposite of Freeze.
func (c *Client) Thaw() error {
	_, err := c.call(message("cmd.thaw").line(), "cmd.thaw", nil)
	return err
}

// Stats returns what the session uses.
func (c *Client) Stats() (Metrics, error) {
	m, err := c.call(message("cmd.stats").line(), "stats", nil)
	if err != nil {
		return Metrics{}, err
	}
	return m.Metrics(), nil
}

// Follow passes every message on until ctx ends, the session does (nil) or each returns an error. The
// questions that are open already come first; one may come twice, with the same id.
func (c *Client) Follow(ctx context.Context, each func(*Message) error) error {
	stop := context.AfterFunc(ctx, func() { _ = c.f.SetReadDeadline(time.Unix(1, 0)) })
	defer stop()
	if err := c.f.SetReadDeadline(time.Time{}); err != nil {
		return err
	}
	for ctx.Err() == nil {
		line, err := c.in.read()
		if err != nil {
			if ctx.Err() != nil || errors.Is(err, io.EOF) || errors.Is(err, os.ErrClosed) || errors.Is(err, unix.ECONNRESET) {
				return ctx.Err()
			}
			return err
		}
		m := new(Message)
		if err := json.Unmarshal(line, m); err != nil {
			return fmt.Errorf("reading from the session: %w", err)
		}
		if err := each(m); err != nil {
			return err
		}
	}
	return ctx.Err()
}
