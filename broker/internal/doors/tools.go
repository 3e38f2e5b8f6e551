//go:build linux

package doors

import (
	"maps"
	"net"
	"path"
	"slices"
	"strings"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/internal/tools"
)

const toolsRelay = "tools" // in the session's folder

// Tools grants the tools of the settings. One that cannot be had is a loss, and so are all where they would stand over
// something or have no sandbox to run in.
func (d *Doors) Tools() {
	if len(d.Settings.Tools) == 0 || d.Request.ToolsStay(d.Settings) {
		return
	}
	client, why := d.toolClient()
	if why != "" {
		d.loseTool("tools", why)
		return
	}
	from := request.Programs(d.Env, d.Settings, d.In)
	d.Found = map[string]tools.Tool{}
	for _, name := range slices.Sorted(maps.Keys(d.Settings.Tools)) {
		t := d.Settings.Tools[name]
		found, err := tools.Find(t, from)
		missing := slices.IndexFunc(t.Credential, func(c string) bool { _, ok := d.Settings.Credentials[c]; return !ok })
		switch {
		case err != nil:
			d.loseTool("tool "+name, err.Error())
			continue
		case missing >= 0:
			d.loseTool("tool "+name, "no credential is called "+t.Credential[missing])
			continue
		}
		d.Found[name] = found
		at := path.Join(decide.Tools, name)
		d.In.Tools = append(d.In.Tools, planner.Tool{Path: at, Client: client, Why: "tool, " + t.Origin.String()})
		d.add(Door{name: "tool " + name, path: at, why: t.Origin.String()})
	}
	if len(d.Found) == 0 {
		return
	}
	d.relayed("tools", Door{path: tools.Socket, file: toolsRelay, of: "the tools",
		serve: func(l *net.UnixListener, x Session, _ Refuser) {
			x.Tools.Serve(l, x.door(path.Join(d.dir, toolsRelay)))
		}})
	for i, v := range d.In.Env { // last: no name of a tool stands before another
		if strings.HasPrefix(v, "PATH=") {
			d.In.Env[i] = v + ":" + decide.Tools
		}
	}
	if d.Request.Ephemeral {
		d.In.Losses = append(d.In.Losses, planner.Loss{What: "tools", Price: true,
			Why: "they work on the project as it is outside, without what is written over it here"})
	}
}

func (d *Doors) loseTool(what, why string) {
	d.In.Losses = append(d.In.Losses, planner.Loss{What: what, Why: why})
}

// toolClient is the program that stands for tools, or says why there are none.
func (d *Doors) toolClient() (client, why string) {
	if d.Helper {
		return "", "they run in sandboxes beside this one, which takes user namespaces"
	}
	if _, err := d.In.FS.Lstat(decide.Tools); err == nil {
		return "", "this host has a " + decide.Tools + " of its own, over which they would stand"
	}
	client, err := ownFile()
	if err != nil {
		return "", err.Error()
	}
	return client, ""
}
