package policycmd

import (
	"fmt"
	"strings"

	"sbx.example/sbx/broker/internal/command"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// Config is sbx config.
func (t Commands) Config() command.Row {
	return command.Row{
		Command: option.Command{Name: "config", Args: "VERB ...", Help: "show and change settings"},
		Verbs: []command.Row{{
			Command: option.Command{Name: "config show", Args: "[--json] [OPTIONS of run]",
				Help: "print every value and where it comes from", Borrows: true},
			Begin: func([]string) ([]option.Option, func([]string) int) {
				r := &request.Request{}
				return r.Options(), func(words []string) int { return t.configShow(r, words) }
			},
		}, t.configSet(), t.configEdit()},
	}
}

// configShow shows the effective configuration with the origin of every value.
func (t Commands) configShow(r *request.Request, words []string) int {
	if len(words) > 0 {
		return t.Fail(option.Wrong("unexpected "+quoting.Quote(words[0]), "see sbx config show --help"))
	}
	facts := host.Read(t.Env)
	s, err := r.Settings(t.Env, facts, r.ProjectRoot(facts))
	if err != nil {
		return t.Fail(err)
	}
	t.Notices(s.Notices)
	type row struct {
		Key    string `json:"key"`
		Value  string `json:"value"`
		Origin string `json:"origin"`
		Locked bool   `json:"locked,omitempty"`
	}
	var rows []row
	for _, k := range policy.Keys() {
		v, err := s.Value(k)
		if err != nil {
			continue
		}
		_, locked := s.Locked[k]
		rows = append(rows, row{k, v, s.Origin(k), locked})
	}
	lists := listsOf(s)
	if r.JSON {
		t.Print(command.Encode(struct {
			Settings []row  `json:"settings"`
			Lists    []list `json:"lists"`
		}{rows, lists}))
		return 0
	}
	for _, x := range rows {
		mark := ""
		if x.Locked {
			mark = " (locked)"
		}
		t.Say(fmt.Sprintf("%-36s = %-40s # %s%s\n", x.Key, x.Value, quoting.ASCII(x.Origin), mark))
	}
	t.Print("\nin force beside what is set here:\n")
	for _, l := range lists {
		t.Say(fmt.Sprintf("%-36s = %s\n", l.Name, l.Value))
	}
	return 0
}

// listsOf are those of the profile that have entries, and what sbx hides by itself.
func listsOf(e request.Settings) (out []list) {
	var hidden []string
	for _, h := range e.Concealed() {
		if h.Origin == (policy.Origin{}) {
			hidden = append(hidden, h.Pattern)
		}
	}
	p := e.Profile
	for _, l := range []struct {
		name    string
		entries []string
	}{{"read_only", p.ReadOnly}, {"writable", p.Writable}, {"overlay", p.Overlay}, {"tmpfs", p.Tmpfs},
		{"hidden", p.Hidden}, {"secrets", p.Secrets}, {"ask", p.Ask}, {"hosts", p.Hosts}} {
		if len(l.entries) > 0 {
			out = append(out, list{"profile " + p.Name + ": " + l.name, quoted(l.entries)})
		}
	}
	if a := e.Agent; a != nil {
		rules := make([]string, len(a.Rules))
		for i, r := range a.Rules {
			rules[i] = string(r.Access) + " " + r.Pattern
		}
		out = append(out, list{a.Origin() + ": rules", quoted(rules)}, list{a.Origin() + ": login", quoted(a.Profile.Login)})
	}
	return append(out, list{"built in: hidden", quoted(hidden)})
}

func quoted(entries []string) string {
	words := make([]string, len(entries))
	for i, e := range entries {
		words[i] = quoting.Quote(e)
	}
	return "[" + strings.Join(words, ", ") + "]"
}

// list is one of the lists that no setting holds.
type list struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}
