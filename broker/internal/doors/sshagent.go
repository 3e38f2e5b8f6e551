//go:build linux

package doors

import (
	"cmp"
	"context"
	"net"
	"path"
	"strings"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/relay"
	"sbx.example/sbx/broker/internal/sshagent"
)

const (
	sshAgentRelay  = "ssh-agent"           // in the session's folder
	sshAgentInside = "/run/ssh-agent.sock" // inside; not below /run/sbx, about which nobody is ever asked
)

// sshAgent grants the SSH agent behind its filter.
func (d *Doors) sshAgent() error {
	p := host.Lookup(d.Env, "SSH_AUTH_SOCK")
	if p == "" {
		return &planner.Refusal{What: "--ssh-agent: SSH_AUTH_SOCK is not set, so there is no agent",
			Hint: "start one with ssh-agent, or leave the option out"}
	}
	_, agent, err := d.hold("--ssh-agent", p)
	if err != nil {
		return err
	}
	d.In.Env = append(d.In.Env, "SSH_AUTH_SOCK="+sshAgentInside)
	d.sshFiles()
	d.relayed("--ssh-agent", Door{name: strings.Join(append([]string{"ssh-agent"}, d.Request.SSHKeys...), " "),
		path: sshAgentInside, why: d.Settings.Origin("features.ssh_agent"), file: sshAgentRelay, of: "the SSH agent",
		serve: d.sshRelay(agent)})
	return nil
}

// sshRelay serves the SSH agent through the filter.
func (d *Doors) sshRelay(agent *relay.Upstream) func(*net.UnixListener, Session, Refuser) {
	opt := sshagent.Options{Agent: agent}
	for _, k := range d.Request.SSHKeys {
		if k == "sign-git" {
			opt.Mode = sshagent.SignGit
		} else {
			opt.Keys = append(opt.Keys, k)
		}
	}
	return func(l *net.UnixListener, x Session, refused Refuser) {
		opt.Refused = func(q sshagent.Request) { refused(askAgent(q), q.Reason) }
		if opt.Mode == sshagent.SignGit && x.Ask != nil {
			opt.Ask = func(q sshagent.Request) bool { return x.Ask(context.Background(), askAgent(q)) }
		}
		opt.Door = x.door(path.Join(d.dir, sshAgentRelay))
		sshagent.New(opt).Serve(l)
	}
}

// askAgent is a request to the agent as an access that is decided, asked about and recorded: a name below the socket,
// so that "this one" means this text and "the directory" means every signature.
func askAgent(q sshagent.Request) decide.Ask {
	name := q.What
	if q.Key != "" {
		name += " with key " + cmp.Or(q.Comment, q.Key)
	}
	if q.Summary != "" {
		name += ": " + q.Summary
	}
	if q.Signed != "" {
		name += " (" + q.Signed + ")"
	}
	a := decide.Ask{PID: q.PID, Op: "connect", Kind: policy.KindSocket, Path: decide.Below(sshAgentInside, name)}
	a.Exe, a.Cwd = program.Links(q.PID)
	return a
}
