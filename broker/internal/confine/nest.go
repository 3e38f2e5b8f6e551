//go:build linux

package confine

import (
	"os"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/resources"
)

// keepApart puts a session that makes user namespaces, and for which there is no group that holds limits, in one below
// this process's own. From its own group it could mount that, and freeze or end all that is in there: sbx, the shell.
func (c *Confined) keepApart(in *planner.Input) {
	parent, ok := resources.Host{UID: os.Getuid()}.Apart()
	if !ok {
		return // its files are not the user's, inside or outside
	}
	g, err := parent.Make(in.Session)
	if err == nil {
		c.apart = g
		c.inside, _, err = g.Nest(false)
	}
	if err != nil {
		in.Losses = append(in.Losses, planner.Loss{What: "control groups", Why: err.Error() +
			", so what makes namespaces inside can end or freeze what is in the group of sbx", Fix: "run without --nested"})
	}
}

// Placed is the group in which process 1 is, nil for that of this process.
func (c *Confined) Placed() *resources.Group {
	switch {
	case c == nil:
		return nil
	case c.Group != nil:
		return c.Group
	}
	return c.apart
}

// nest gives the program a control group of its own to divide, below that with the session's limits. err says why there
// is no such group.
func (c *Confined) nest(in *planner.Input, parent resources.Parent, err error, dry bool) error {
	dir, controllers := parent.InnerDir(in.Session)
	if err == nil && !dry {
		c.inside, controllers, err = c.Group.Nest(true)
	}
	why := "their control group has no "
	if err != nil {
		why = err.Error()
	} else {
		if len(controllers) > 0 {
			in.Containers.Group, in.Containers.Handed = dir, controllers
		}
		var lacks []string
		for _, k := range []string{"cpu", "memory", "pids"} {
			if !slices.Contains(controllers, k) {
				lacks = append(lacks, k)
			}
		}
		if why += strings.Join(lacks, " and no ") + " controller"; len(lacks) == 0 {
			return nil
		}
	}
	in.Losses = append(in.Losses, planner.Loss{What: "limits of single containers", Why: why +
		", so the sandbox's limits hold for all containers together", Fix: groupHint()})
	return err
}
