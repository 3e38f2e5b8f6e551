package watch

import (
	"slices"
	"time"

	"sbx.example/sbx/broker/internal/prompt"
)

// Key is a byte, or one of the keys that send more than one.
type Key int

// The keys that have names.
const (
	Esc Key = 0x1b
	Up  Key = 256 + iota
	Down
	PageUp
	PageDown
	Home
	End
	Other
)

// parseKeys cuts input into keys. An escape at the very end is the key Escape: terminals send the
// sequences of other keys in one piece.
func parseKeys(b []byte) []Key {
	var out []Key
	for len(b) > 0 {
		if b[0] != 0x1b || len(b) == 1 {
			out = append(out, Key(b[0]))
			b = b[1:]
			continue
		}
		k, n := sequence(b)
		out = append(out, k)
		b = b[n:]
	}
	return out
}

// sequence reads what follows an escape: CSI and SS3, anything else is one other key.
func sequence(b []byte) (Key, int) {
	if b[1] != '[' && b[1] != 'O' {
		return Other, 2
	}
	i := 2
	for i < len(b) && b[1] == '[' && b[i] >= 0x20 && b[i] < 0x40 {
		i++
	}
	if i == len(b) {
		return Other, i
	}
	switch string(b[2 : i+1]) {
	case "A":
		return Up, i + 1
	case "B":
		return Down, i + 1
	case "H":
		return Home, i + 1
	case "F":
		return End, i + 1
	case "5~":
		return PageUp, i + 1
	case "6~":
		return PageDown, i + 1
	}
	return Other, i + 1
}

// Key takes a key in and returns what is to be done.
func (m *Model) Key(k Key, now time.Time) []Action {
	m.now = now
	confirm := m.confirm
	m.confirm = false
	if len(m.typed) > 0 {
		return m.answer(k)
	}
	switch k {
	case 'q', 0x03:
		return []Action{{Quit: true}}
	case '\t':
		m.onSessions = !m.onSessions
	case Up, 'k':
		m.move(-1)
	case Down, 'j':
		m.move(1)
	case PageUp:
		m.move(-10)
	case PageDown:
		m.move(10)
	case Home, 'g':
		m.move(-1 << 20)
	case End, 'G':
		m.move(1 << 20)
	case '?':
		m.details = !m.details
	case Esc:
		m.details, m.status = false, ""
	case 'x':
		if m.onSessions && m.session != "" {
			m.confirm = true
			m.status = "kill session " + m.session + "? y does it, any other key does not"
		}
	default:
		if m.onSessions {
			if confirm && k == 'y' {
				m.status = "killing session " + m.session
				return []Action{{SID: m.session, Kill: true}}
			}
			return nil
		}
		return m.answer(k)
	}
	if confirm {
		m.status = ""
	}
	return nil
}

func (m *Model) move(by int) {
	m.typed = nil
	if m.onSessions {
		i := slices.IndexFunc(m.sessions, func(s session) bool { return s.info.SID == m.session })
		if i >= 0 {
			m.session = m.sessions[min(max(i+by, 0), len(m.sessions)-1)].info.SID
		}
		return
	}
	if i := m.find(m.question); i >= 0 {
		m.question = m.questions[min(max(i+by, 0), len(m.questions)-1)].ID
		m.quietUntil = time.Time{} // moved there on purpose
	}
}

// answer reads a key at the selected question.
func (m *Model) answer(k Key) []Action {
	i := m.find(m.question)
	if i < 0 || k == Esc || k > 255 || k == 0x03 || k == 0x04 {
		m.typed = nil
		return nil
	}
	if m.now.Before(m.quietUntil) {
		m.typed = nil
		m.status = "the question is another one now: look, then press the key again"
		return nil
	}
	q := m.questions[i]
	seen := m.drawn.question == q.ID && m.drawn.key == first(m.typed)
	a, more, ok := prompt.Keys(append(m.typed, byte(k)), &q)
	switch {
	case ok && a.Allow && !seen:
		m.typed = nil
		m.status = "that was not on the screen yet: look, then press the key again"
	case ok && a.Allow && !m.drawn.whole:
		m.typed = nil
		m.status = "not all of this is on the screen: make that larger, or press n"
	case ok:
		m.typed = nil
		m.status = ""
		a.Last = q.Last
		return []Action{{SID: q.SID, ID: q.ID, Answer: a}}
	case more:
		m.typed = append(m.typed, byte(k))
		m.status = "Esc takes back what was typed"
	default:
		if len(m.typed) > 0 {
			m.status = ""
		}
		m.typed = nil
	}
	return nil
}
