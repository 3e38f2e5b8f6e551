package command

import (
	"fmt"

	"sbx/broker/internal/host"
	"sbx/broker/internal/option"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/request"
)

// Config is sbx config.
func (t *Term) Config() Row {
	return Row{
		Command: option.Command{Name: "config", Args: "show [--json]", Help: "show every setting and where it comes from"},
		Verbs: []Row{{
			Command: option.Command{Name: "config show", Args: "[--json] [OPTIONS of run]",
				Help: "print every value and where it comes from", Borrows: true},
			Begin: func([]string) ([]option.Option, func([]string) int) {
				r := &request.Request{}
				return r.Options(), func(words []string) int { return t.configShow(r, words) }
			},
		}},
	}
}

// configShow shows the effective configuration with the origin of every value.
func (t *Term) configShow(r *request.Request, words []string) int {
	if len(words) > 0 {
		return t.Fail(option.Wrong("unexpected "+quote(words[0]), "see sbx config show --help"))
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
	if r.JSON {
		t.Print(Encode(struct {
			Settings []row `json:"settings"`
		}{rows}))
		return 0
	}
	for _, x := range rows {
		mark := ""
		if x.Locked {
			mark = " (locked)"
		}
		t.Print(fmt.Sprintf("%-36s = %-40s # %s%s\n", x.Key, x.Value, x.Origin, mark))
	}
	return 0
}
