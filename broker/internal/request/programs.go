package request

import (
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/program"
)

// Programs says where what sbx starts outside comes from in a run with this configuration and input.
func Programs(env []string, s Settings, in *planner.Input) program.Source {
	return program.Source{Named: s.Sandbox.Programs, Writable: writablePlaces(in), Path: host.Lookup(env, "PATH")}
}

// ProgramsHere is Programs without a run. A configuration that cannot be read names none.
func ProgramsHere(env []string, facts host.Facts) program.Source {
	r := &Request{}
	project := r.ProjectRoot(facts)
	from := program.Source{Writable: []string{project}, Path: host.Lookup(env, "PATH")}
	if s, err := r.Settings(env, facts, project); err == nil {
		from.Named = s.Sandbox.Programs
	}
	return from
}

// HookEnvironment is the environment of a prompt command.
func HookEnvironment(env []string, s Settings) []string {
	if s.Sandbox.PromptCommand == "" {
		return nil
	}
	return program.Environment(env)
}

// Linkable are the places in which programs of this run can make links, as they are named and as they lead now.
func Linkable(in *planner.Input) (out []string) {
	for _, p := range writablePlaces(in) {
		out = append(out, withTarget(in.FS, p)...)
	}
	return out
}

// writablePlaces are where sandboxes of this project write on the host. The project is one also when this run shows it
// otherwise.
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
