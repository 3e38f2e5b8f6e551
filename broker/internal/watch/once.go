package watch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"

	"sbx.example/sbx/broker/internal/control"
	"sbx.example/sbx/broker/internal/prompt"
	"sbx.example/sbx/broker/plan"
)

// JSON is the answer of sbx watch --once --json: {"sessions":[…],"questions":[…]}, ASCII only.
func JSON(states []control.State) ([]byte, error) {
	type entry struct {
		SID       plan.Bytes   `json:"sid"`
		PID       int          `json:"pid"`
		Profile   plan.Bytes   `json:"profile"`
		Mode      plan.Bytes   `json:"mode"`
		Started   time.Time    `json:"started"`
		Cwd       plan.Bytes   `json:"cwd"`
		Argv      []plan.Bytes `json:"argv"`
		Questions int          `json:"questions"`
	}
	out := struct {
		Sessions  []entry           `json:"sessions"`
		Questions []prompt.Question `json:"questions"`
	}{[]entry{}, []prompt.Question{}}
	for _, s := range states {
		i := s.Info
		argv := i.Argv
		if argv == nil {
			argv = []plan.Bytes{}
		}
		out.Sessions = append(out.Sessions, entry{plan.Bytes(i.SID), i.PID, plan.Bytes(i.Profile), plan.Bytes(i.Mode),
			i.Started.UTC(), i.Cwd, argv, len(s.Questions)})
		for _, q := range s.Questions {
			q.SID = i.SID
			out.Questions = append(out.Questions, q)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(out)
	return b.Bytes(), err
}

// Table is the answer of sbx watch --once for people.
func Table(states []control.State, home string, now time.Time) []string {
	const session, question = "%-*s %-10s %-8s %7v %5s  %s", "%-10s %-*s %5s  %s"
	n, wide := 0, 12
	for _, s := range states { // a server's session has its name
		wide = max(wide, len(s.Info.SID))
	}
	out := []string{fmt.Sprintf(session, wide, "SESSION", "PROFILE", "MODE", "PID", "AGE", "COMMAND")}
	for _, s := range states {
		i := s.Info
		out = append(out, fmt.Sprintf(session, wide, i.SID, plan.Bytes(i.Profile).Quote(),
			plan.Bytes(i.Mode).Quote(), i.PID, age(now.Sub(i.Started)), command(i)))
		n += len(s.Questions)
	}
	out = append(out, "", fmt.Sprintf(question, "QUESTION", wide, "SESSION", "AGE", "WHAT"))
	for _, s := range states {
		for _, q := range s.Questions {
			st := prompt.Style{Home: home}
			out = append(out, fmt.Sprintf(question, q.ID[:min(len(q.ID), 8)], wide, s.Info.SID, age(now.Sub(q.Time)),
				st.Whole(q)))
		}
	}
	if n == 0 {
		out = append(out, "none")
	}
	return out
}
