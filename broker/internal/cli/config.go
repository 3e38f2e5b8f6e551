package cli

import (
	"fmt"

	"sbx/broker/internal/command"
	"sbx/broker/internal/host"
	"sbx/broker/internal/option"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/request"
)

func (t *term) configCommand() command.Row {
	return command.Row{
		Command: option.Command{Name: "config", Args: "show [--json]", Help: "show every setting and where it comes from"},
		Verbs: []command.Row{{
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
func (t *term) configShow(r *request.Request, words []string) int {
	if len(words) > 0 {
		return t.fail(wrong("unexpected "+quote(words[0]), "see sbx config show --help"))
	}
	facts := host.Read(t.Env)
	s, err := t.settings(r, facts, t.projectRoot(r, facts))
	if err != nil {
		return t.fail(err)
	}
	t.notices(s.Notices)
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
		t.print(command.Encode(struct {
			Settings []row `json:"settings"`
		}{rows}))
		return 0
	}
	for _, x := range rows {
		mark := ""
		if x.Locked {
			mark = " (locked)"
		}
		t.print(fmt.Sprintf("%-36s = %-40s # %s%s\n", x.Key, x.Value, x.Origin, mark))
	}
	return 0
}

// settings loads and merges the configuration for a project.
func (t *term) settings(r *request.Request, facts host.Facts, project string) (request.Settings, error) {
	return r.Settings(t.Env, facts, project)
}

// sources says where this user's files are.
func (t *term) sources(facts host.Facts, project string) policy.Sources {
	return request.Sources(t.Env, facts, project)
}

// projectRoot finds the project that a request is about; "" when there is none.
func (t *term) projectRoot(r *request.Request, facts host.Facts) string { return r.ProjectRoot(facts) }
