package cli

import (
	"sbx/broker/internal/host"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/program"
	"sbx/broker/internal/request"
)

// programs says where what sbx starts outside comes from in a run with this configuration and input.
func (t *term) programs(s request.Settings, in *planner.Input) program.Source {
	return program.Source{Named: s.Sandbox.Programs, Writable: writablePlaces(in), Path: host.Lookup(t.Env, "PATH")}
}

// programsHere is programs without a run. A configuration that cannot be read names none.
func (t *term) programsHere(facts host.Facts) program.Source {
	r := &request.Request{}
	project := t.projectRoot(r, facts)
	from := program.Source{Writable: []string{project}, Path: host.Lookup(t.Env, "PATH")}
	if s, err := t.settings(r, facts, project); err == nil {
		from.Named = s.Sandbox.Programs
	}
	return from
}

// hookEnv is the environment of a prompt command.
func (t *term) hookEnv(s request.Settings, in *planner.Input) []string {
	if s.Sandbox.PromptCommand == "" {
		return nil
	}
	return program.Environment(t.Env, writablePlaces(in))
}

// writablePlaces are where sandboxes of this project write on the host. The project is one also when this run shows it otherwise.
func writablePlaces(in *planner.Input) []string {
	var out []string
	for _, p := range []string{in.Project, in.GitDir} {
		if p != "" {
			out = append(out, p)
		}
	}
	for _, g := range in.Grants {
		if g.Mode == planner.Write && !g.Socket && !g.Own {
			out = append(out, g.Path)
		}
	}
	return out
}
