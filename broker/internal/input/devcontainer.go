//go:build linux

package input

import (
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/devcontainer"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// Engine is the program that runs containers. It is looked for, and started inside alone.
const Engine = "podman"

// devContainer has the program run in the project's development container (backend devcontainer): an engine in the
// sandbox runs it, and can show and reach no more than that.
func (r *Run) devContainer(s request.Settings, in *planner.Input) error {
	if s.Sandbox.Backend != "devcontainer" {
		return nil
	}
	from := "the backend devcontainer (" + s.Origin("sandbox.backend") + ")"
	switch {
	case !s.Features.Containers:
		return &planner.Refusal{What: from + " needs containers", Hint: "--containers=shared; features.containers and " +
			"features.containers_shared in your settings"}
	case in.Project == "":
		return &planner.Refusal{What: from + " needs a project", Hint: "start it in one that has a " + devFiles()[0]}
	case r.Idle:
		return &planner.Refusal{What: "--detach without a command cannot be had with " + from, Hint: "name a command"}
	}
	if _, err := request.Programs(r.Env, s, in).Find(Engine); err != nil {
		return &planner.Refusal{What: from + " cannot be had", Err: err, Hint: "install " + Engine}
	}
	file, text, err := devFile(in)
	if err != nil {
		return err
	}
	f, refused, err := devcontainer.Read(text)
	if err != nil {
		return &planner.Refusal{What: quoting.Quote(file) + " is not carried out", Err: err,
			Hint: "docs/containers.md says what is"}
	}
	for _, x := range refused {
		in.Losses = append(in.Losses, planner.Loss{What: path.Base(file) + ": " + quoting.ASCII(x.Key), Why: x.Why,
			Price: true})
	}
	if !s.Features.ContainersShared {
		in.Losses = append(in.Losses, planner.Loss{What: "the container's image", Price: true, Fix: "--containers=shared",
			Why: "it is made anew in each run, since this one has a store of its own"})
	}
	env := map[string]string{}
	var pass []string
	for _, e := range in.Env {
		k, v, _ := strings.Cut(e, "=")
		_, set := s.Env.Set[k]
		if env[k] = v; set || k == "TERM" || k == "SBX_SID" || r.Given(k) {
			pass = append(pass, k)
		}
	}
	at := devcontainer.Place{File: file, Project: in.Project, Dir: in.Project, Text: text,
		Pass: slices.Compact(slices.Sorted(slices.Values(pass))),
		Env:  func(name string) (string, bool) { v, ok := env[name]; return v, ok }}
	if host.Within(in.Facts.Cwd, in.Project) {
		at.Dir = in.Facts.Cwd
	}
	if dirs := at.Project + f.Folder(at); strings.Contains(dirs, ":") {
		return &planner.Refusal{What: quoting.Quote(file) + " is not carried out: the project or its workspaceFolder has " +
			"a colon in its name", Hint: Engine + " takes what follows for options of a mount"}
	}
	in.Argv = append([]string{"/bin/sh", "-c", f.Script(at), "sh"}, in.Argv...)
	return nil
}

// devFiles are where a project has its file.
func devFiles() []string { return []string{".devcontainer/devcontainer.json", ".devcontainer.json"} }

func devFile(in *planner.Input) (file string, text []byte, err error) {
	for _, name := range devFiles() {
		file := path.Join(in.Project, name)
		if text, err = in.FS.Peek(file, 0, devcontainer.MaxFile+1); err == nil {
			return file, text, nil
		}
	}
	return "", nil, &planner.Refusal{What: "the backend devcontainer found no " + strings.Join(devFiles(), " and no ") +
		" in " + quoting.Quote(in.Project), Err: err, Hint: "leave --backend out, or write one"}
}
