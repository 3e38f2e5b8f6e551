package watch

import (
	"slices"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/prompt"
)

const (
	history   = 24  // samples of a chart
	maxRecent = 200 // decisions that are kept
	// quietFor is for how long keys do nothing after the selected question changed by itself.
	quietFor = 400 * time.Millisecond
)

// Options of a Model.
type Options struct {
	Home  string // shown as ~
	Color bool   // false where NO_COLOR is set or the terminal has none
	Top   bool   // keys go to the sessions first
}

// Event is what happened to a session. Message is set for everything it sent; else Up or Down says that
// it came or went; Status is a line for the person.
type Event struct {
	SID     string
	Up      *control.Info
	Down    bool
	Message *control.Message
	Status  string
}

// Action is what a key asks for.
type Action struct {
	SID    string
	ID     string // of the question that Answer is for
	Answer prompt.Answer
	Kill   bool
	Quit   bool
}

type session struct {
	info     control.Info
	last     control.Metrics
	cpu, mem []int64
	io       []int64 // bytes a second, read and written
}

// drawing is what the last View had of the selected question.
type drawing struct {
	question string // its id
	key      string // the first of an answer that it was shown with
	whole    bool   // there was room for all of it
}

// first is the key that an answer begins with, if one was typed: it says what the answer is about.
func first(typed []byte) string { return string(typed[:min(len(typed), 1)]) }

type decision struct {
	when     time.Time
	question prompt.Question
	message  control.Message
}

// Model is everything that is shown. Only Update and Key change it.
type Model struct {
	opt       Options
	now       time.Time
	sessions  []session
	questions []prompt.Question // oldest first, so that new ones never push the selected one away
	recent    []decision        // oldest first
	status    string

	onSessions bool   // the pane that keys go to
	question   string // id of the selected one
	session    string // id of the selected one
	typed      []byte
	details    bool
	drawn      drawing
	confirm    bool // x was pressed
	quietUntil time.Time
}

// New makes an empty model.
func New(opt Options) *Model { return &Model{opt: opt, onSessions: opt.Top} }

// Tick moves the clock, by which ages are shown.
func (m *Model) Tick(now time.Time) { m.now = now }

// Update takes an event in.
func (m *Model) Update(ev Event, now time.Time) {
	m.now = now
	if ev.Status != "" {
		m.status = ev.Status
	}
	switch {
	case ev.Up != nil:
		m.down(ev.SID)
		m.sessions = append(m.sessions, session{info: *ev.Up})
		slices.SortFunc(m.sessions, func(a, b session) int { return strings.Compare(a.info.SID, b.info.SID) })
	case ev.Down:
		m.down(ev.SID)
	case ev.Message != nil:
		m.message(ev.SID, ev.Message)
	}
	m.reselect()
}

func (m *Model) down(sid string) {
	m.sessions = slices.DeleteFunc(m.sessions, func(s session) bool { return s.info.SID == sid })
	m.questions = slices.DeleteFunc(m.questions, func(q prompt.Question) bool { return q.SID == sid })
}

func (m *Model) message(sid string, msg *control.Message) {
	switch msg.Type {
	case "event.fs_request", "event.net_request":
		q := msg.Question()
		q.SID = sid // the socket it came through, not what the line says
		if i := m.find(q.ID); i >= 0 {
			if q.ID == m.question && about(q) != about(m.questions[i]) {
				m.changed()
			}
			m.questions[i] = q
		} else {
			m.questions = append(m.questions, q)
		}
	case "event.audit":
		if i := m.find(string(msg.ID)); i >= 0 {
			if msg.Decision != "withdrawn" {
				m.recent = append(m.recent, decision{m.now, m.questions[i], *msg})
			}
			m.questions = slices.Delete(m.questions, i, i+1)
		}
		if n := len(m.recent) - maxRecent; n > 0 {
			m.recent = slices.Delete(m.recent, 0, n)
		}
	case "event.metrics", "stats":
		for i := range m.sessions {
			if s := &m.sessions[i]; s.info.SID == sid {
				now := msg.Metrics()
				if len(s.cpu) > 0 {
					s.io = push(s.io, rate(s.last, now))
				}
				s.last = now
				s.cpu, s.mem = push(s.cpu, s.last.CPUMilli), push(s.mem, s.last.Mem)
			}
		}
	case "event.notice":
		m.status = sid + ": " + msg.Text.Quote()
	case "event.exit":
		m.status = "session " + sid + " ended"
		m.down(sid)
	}
}

// rate is how many bytes a second were read and written between two samples.
func rate(from, to control.Metrics) int64 {
	n := max(to.ReadB-from.ReadB, 0) + max(to.WriteB-from.WriteB, 0) // what has ended takes its count along
	if d := to.Time.Sub(from.Time); d > 0 {
		return int64(float64(n) / d.Seconds())
	}
	return n
}

func push(h []int64, v int64) []int64 {
	if len(h) == history {
		h = append(h[:0], h[1:]...)
	}
	return append(h, v)
}

func (m *Model) find(id string) int {
	return slices.IndexFunc(m.questions, func(q prompt.Question) bool { return q.ID == id })
}

// about is what an answer to a question is about; how many accesses wait for it is not part of that.
func about(q prompt.Question) string {
	q.Merged = 0
	return prompt.Style{}.Whole(q)
}

// changed gives the person time to see that keys are about something else now.
func (m *Model) changed() {
	m.typed = nil
	m.quietUntil = m.now.Add(quietFor)
}

// reselect moves a selection whose object is gone, and then gives the person time to notice.
func (m *Model) reselect() {
	if m.find(m.question) < 0 {
		m.question, m.typed = "", nil
		if len(m.questions) > 0 {
			m.question = m.questions[0].ID
			m.changed()
		}
	}
	if !slices.ContainsFunc(m.sessions, func(s session) bool { return s.info.SID == m.session }) {
		m.session, m.confirm = "", false
		if len(m.sessions) > 0 {
			m.session = m.sessions[0].info.SID
		}
	}
}
