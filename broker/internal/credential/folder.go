//go:build linux

package credential

import (
	"fmt"
	"os"
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/plan"
)

// A program that signs in inside keeps what it has, placeholders, in a folder of the login's: below sbx's own state,
// and not the one that the program has outside. Whatever is in it comes from inside, so outside nothing reads it.

// folder is one of them.
type folder struct {
	login, variable string
	dir             string // outside
}

// keepFolder shows the folder of a login, and has a variable name it. Who gives that to the program names another one.
func (g *Grants) keepFolder(c policy.Credential, variable string, in *planner.Input) error {
	if i := slices.IndexFunc(g.folders, func(f folder) bool { return f.variable == variable }); i >= 0 {
		return &planner.Refusal{What: "the credentials " + g.folders[i].login + " and " + c.Name +
			" have a folder each, and " + variable + " names one",
			Hint: "grant one of the two, or name a folder of yours for both: --rw DIR --env " + variable + "=DIR"}
	}
	has := slices.ContainsFunc(in.Env, func(v string) bool { return strings.HasPrefix(v, variable+"=") })
	if variable == "" || has && g.by.Sets(variable) {
		return nil
	}
	at := plan.LoginPlace + c.Name
	f := folder{c.Name, variable, path.Join(path.Dir(g.sealed), policy.LoginsFolder, c.Name)}
	g.folders = append(g.folders, f)
	in.Folders = append(in.Folders, planner.Folder{Path: at, Source: f.dir, Why: "credential " + c.Name})
	setEnv(in, variable, at)
	return nil
}

// MakeFolders makes those that are not there yet: nobody has signed in, or the login was removed.
func (g *Grants) MakeFolders() error {
	if g == nil {
		return nil
	}
	for _, f := range g.folders {
		if err := os.MkdirAll(f.dir, 0o700); err != nil {
			return fmt.Errorf("making the folder of credential %s: %w", f.login, err)
		}
	}
	return nil
}
