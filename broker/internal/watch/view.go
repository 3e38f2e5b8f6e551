package watch

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

const (
	plain   = ""
	bold    = "\x1b[1m"
	reverse = "\x1b[7m"
	green   = "\x1b[32m"
	red     = "\x1b[31m"
	yellow  = "\x1b[33m"
)

// page collects lines of one width.
type page struct {
	width int
	color bool
	lines []string
}

func (p *page) add(style, text string) {
	if len(text) > p.width {
		text = prompt.Shorten(text, p.width)
	}
	text = text[:min(len(text), p.width)]
	if p.color && style != plain {
		if style == reverse {
			text += strings.Repeat(" ", p.width-len(text))
		}
		text = style + text + "\x1b[m"
	}
	p.lines = append(p.lines, text)
}

// View is the screen: height lines of at most width columns, ASCII and, with colour, SGR sequences.
func (m *Model) View(width, height int) []string {
	m.drawn = drawing{}
	p := &page{width: max(width, 1), color: m.opt.Color}
	if width < 30 || height < 6 {
		p.add(plain, fmt.Sprintf("%d questions", len(m.questions)))
		p.add(plain, "too small: 30x6")
		return p.lines[:min(max(height, 1), len(p.lines))]
	}
	p.add(bold, fmt.Sprintf("sbx watch   %s, %s", count(len(m.sessions), "session"), count(len(m.questions), "question")))
	asked, more := m.asked(p.width), m.more(p.width)
	foot := m.footer(width, height-len(p.lines)-1-len(asked))
	s := m.share(p.width, height, height-len(p.lines)-len(foot), 1+len(asked)+len(more))
	if s.sessions > 0 {
		m.viewSessions(p, s.sessions-1)
	}
	for _, line := range s.used {
		p.add(plain, line)
	}
	m.viewQuestions(p, asked, more, s.questions-1)
	if s.recent > 0 {
		m.viewRecent(p, s.recent-1)
	}
	for len(p.lines) < height-len(foot) {
		p.add(plain, "")
	}
	p.lines = p.lines[:height-len(foot)]
	for _, f := range foot {
		p.add(plain, f)
	}
	return p.lines
}

// shares are how many rows each part of the screen gets, with its headline; 0 leaves it out.
type shares struct {
	sessions, questions, recent int
	used                        []string
}

// share divides the room. Questions matter most: the others get what is left, at most a quarter of the screen each,
// and nothing that the selected question needs, unless keys go to the sessions.
func (m *Model) share(width, height, room, need int) (s shares) {
	s.sessions = 1 + min(len(m.sessions), max(height/4, 1))
	if n := min(len(m.recent), height/5); n > 0 && room >= 14 {
		s.recent = 1 + n
	}
	if s.used = m.used(width); room < 14 {
		s.used = nil
	}
	s.used = s.used[:min(len(s.used), height/8)]
	for {
		s.questions = room - s.sessions - len(s.used) - s.recent
		switch {
		case s.questions >= need || m.onSessions || len(m.questions) == 0:
			return s
		case s.recent > 0:
			s.recent = less(s.recent)
		case len(s.used) > 0:
			s.used = s.used[:len(s.used)-1]
		case s.sessions > 0:
			s.sessions = less(s.sessions)
		default:
			return s
		}
	}
}

// less takes a row from a part of the screen, of which no headline alone is left.
func less(rows int) int {
	if rows <= 2 {
		return 0
	}
	return rows - 1
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// footer is what was said last, in as many rows as there is room for, and the keys that are no answers.
func (m *Model) footer(width, room int) []string {
	keys := "j/k move  ? why  Tab sessions  q quit"
	if m.onSessions {
		keys = "j/k move  x kill  Tab questions  q quit"
	}
	most := 2 // where there is no room for the question in any case
	if room >= 2 {
		most = min(room-1, 3)
	}
	out := prompt.Wrap(m.status, width, 2, true)
	for n := most * width; len(out) > most; n -= width / 4 {
		out = prompt.Wrap(prompt.Shorten(m.status, n), width, 2, true)
	}
	return append(out, keys)
}

// window returns the part of n rows, of which sel must be seen, that fits room.
func window(n, sel, room int) (from, to int) {
	if n <= room {
		return 0, n
	}
	from = min(max(sel-room/2, 0), n-room)
	return from, from + room
}

func (m *Model) viewSessions(p *page, rows int) {
	chart := 8
	if p.width >= 110 {
		chart = 12
	}
	columns := func(cpu, mem, io string, charts [3]string, procs string) string {
		return fmt.Sprintf("%5s %-*s %5s %-*s %5s %-*s %5s ", cpu, chart, charts[0], mem, chart, charts[1], io, chart,
			charts[2], procs)
	}
	head := fmt.Sprintf("%-12s ", "SESSION") + columns("CPU", "MEM", "IO/S", [3]string{}, "PROCS")
	wide := p.width >= len(head)+8
	if !wide {
		head = fmt.Sprintf("%-12s %5s %5s ", "SESSION", "CPU", "MEM")
	}
	profiles := p.width >= 110
	if profiles {
		head += fmt.Sprintf("%-10s ", "PROFILE")
	}
	p.add(bold, head+"COMMAND")
	sel := slices.IndexFunc(m.sessions, func(s session) bool { return s.info.SID == m.session })
	from, to := window(len(m.sessions), sel, rows)
	for i, s := range m.sessions[from:to] {
		style, mark := plain, " "
		if m.onSessions && i+from == sel {
			style, mark = reverse, ">"
		}
		cpu, mem, io, procs := "-", "-", "-", "-"
		if len(s.cpu) > 0 {
			cpu, mem, procs = fmt.Sprintf("%d%%", s.last.CPUMilli/10), size(s.last.Mem), fmt.Sprint(s.last.Pids)
		}
		if n := len(s.io); n > 0 {
			io = size(s.io[n-1])
		}
		row := fmt.Sprintf("%s%-11s ", mark, cut(s.info.SID, 11))
		if wide {
			row += columns(cpu, mem, io, [3]string{spark(s.cpu, 1000, chart), spark(s.mem, s.last.MemMax, chart), spark(s.io, 0,
				chart)}, procs)
		} else {
			row += fmt.Sprintf("%5s %5s ", cpu, mem)
		}
		if profiles {
			row += fmt.Sprintf("%-10s ", cut(plan.Bytes(s.info.Profile).Quote(), 10))
		}
		p.add(style, row+cut(command(s.info), max(p.width-len(row), 8)))
	}
}

// used is what sessions have used of endpoints, a line each, the selected session's first.
func (m *Model) used(width int) (lines []string) {
	for _, s := range m.sessions {
		text := s.last.Models.Used()
		if text == "" {
			continue
		}
		line := cut(fmt.Sprintf(" %-11s %s", cut(s.info.SID, 11), text), width)
		if s.info.SID == m.session {
			lines = slices.Insert(lines, 0, line)
		} else {
			lines = append(lines, line)
		}
	}
	return lines
}

func cut(s string, n int) string {
	if len(s) > n {
		return s[:n-1] + "+"
	}
	return s
}

func command(i control.Info) string {
	out := make([]string, len(i.Argv))
	for k, a := range i.Argv {
		out[k] = a.Quote()
	}
	return strings.Join(out, " ")
}

// spark draws the newest samples as a line of eight heights; full is the scale where that is known.
func spark(h []int64, full int64, width int) string {
	const levels = " .:-=+*#"
	if len(h) > width {
		h = h[len(h)-width:]
	}
	for _, v := range h {
		full = max(full, v)
	}
	b := make([]byte, 0, width)
	for _, v := range h {
		l := 0
		if full > 0 && v > 0 {
			l = 1 + int(float64(v)/float64(full)*float64(len(levels)-2))
		}
		b = append(b, levels[min(l, len(levels)-1)])
	}
	return string(b)
}

func size(n int64) string {
	const units = "BKMGTP"
	f, u := float64(n), 0
	for f >= 1000 && u < len(units)-1 {
		f, u = f/1024, u+1
	}
	if u == 0 || f >= 10 {
		return fmt.Sprintf("%.0f%c", f, units[u])
	}
	return fmt.Sprintf("%.1f%c", f, units[u])
}

func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < time.Minute:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < time.Hour:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	}
	return fmt.Sprintf("%dh", int(d.Hours()))
}

// viewQuestions lists the questions, a row each, with the selected one whole in its place.
func (m *Model) viewQuestions(p *page, asked, more []string, rows int) {
	p.add(bold, "QUESTIONS")
	if len(m.questions) == 0 {
		if rows > 0 {
			p.add(plain, " none")
		}
		return
	}
	m.drawn = drawing{m.question, first(m.typed), len(asked) <= rows}
	asked = asked[:min(len(asked), max(rows, 0))]
	more = more[:min(len(more), max(rows-len(asked), 0))]
	sel := m.find(m.question)
	from, to := window(len(m.questions), sel, max(rows-len(asked)-len(more)+1, 1))
	for i, q := range m.questions[from:to] {
		if i+from == sel {
			style, mark := reverse, "> "
			if m.onSessions {
				style, mark = yellow, "  "
			}
			for _, l := range asked {
				p.add(style, mark+l)
				mark = "  "
			}
			for _, l := range more {
				p.add(plain, "    "+l)
			}
			continue
		}
		head := fmt.Sprintf("  %s %-8s %4s ", q.ID[:min(len(q.ID), 6)], cut(q.SID, 8), age(m.now.Sub(q.Time)))
		if p.width < 60 {
			head = "  "
		}
		p.add(yellow, head+prompt.Style{Home: m.opt.Home, Width: p.width - len(head)}.Wants(q))
	}
}

// asked is the selected question as a terminal asks it, all of it, behind its session, its id and its age.
func (m *Model) asked(width int) []string {
	i := m.find(m.question)
	if i < 0 {
		return nil
	}
	q := m.questions[i]
	head := fmt.Sprintf("%s %s %s", q.SID, q.ID[:min(len(q.ID), 6)], age(m.now.Sub(q.Time)))
	return prompt.Style{Home: m.opt.Home, Width: width - 2, Word: head}.Shown(q, m.typed)
}

// more is what stands behind the key ?.
func (m *Model) more(width int) []string {
	i := m.find(m.question)
	if i < 0 || !m.details {
		return nil
	}
	return prompt.Style{Home: m.opt.Home, Width: width - 4}.Details(m.questions[i])
}

func (m *Model) viewRecent(p *page, rows int) {
	p.add(bold, "DECIDED")
	for i := range rows { // newest first
		d := m.recent[len(m.recent)-1-i]
		style := red
		if d.message.Decision == "allow" {
			style = green
		}
		head := fmt.Sprintf(" %-5s %-7s %-7s by %-7s %4s %-8s ", d.message.Decision, d.message.Scope, d.message.Life,
			d.message.By, age(m.now.Sub(d.when)), cut(d.question.SID, 8))
		if p.width < 60 {
			head = fmt.Sprintf(" %-5s %4s ", d.message.Decision, age(m.now.Sub(d.when)))
		}
		room := p.width - len(head)
		p.add(style, head+prompt.Shorten(prompt.Style{Home: m.opt.Home, Width: room}.Wants(d.question), room))
	}
}
