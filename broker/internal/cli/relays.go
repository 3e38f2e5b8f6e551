package cli

import (
	"net"
	"path"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"sbx/broker/internal/decide"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/session"
	"sbx/broker/internal/sshagent"
)

// relay is a socket that the broker serves in the session's folder and the sandbox finds elsewhere: a grant with a
// filter instead of a socket of the host.
type relay struct {
	name  string // in the session's folder
	serve func(l *net.UnixListener, asks *asking)
}

// openRelays makes the sockets, which must exist before the sandbox is built. What it returns starts serving them.
func openRelays(s *session.Session, relays []relay) (start func(*asking), err error) {
	type open struct {
		l *net.UnixListener
		r relay
	}
	var all []open
	for _, r := range relays {
		dir, err := unix.Open(s.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return nil, &planner.Refusal{What: "opening the session's folder", Err: err, Hint: recordHint}
		}
		// by descriptor: a socket's name has room for 107 bytes
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "/proc/self/fd/" + strconv.Itoa(dir) + "/" + r.name, Net: "unix"})
		unix.Close(dir)
		if err != nil {
			return nil, &planner.Refusal{What: "making the socket " + r.name + " in the session's folder", Err: err, Hint: recordHint}
		}
		l.SetUnlinkOnClose(false) // the descriptor in its name is closed; closeRelays knows the path
		all = append(all, open{l, r})
	}
	return func(asks *asking) {
		for _, o := range all {
			go o.r.serve(o.l, asks)
		}
	}, nil
}

// closeRelays takes the sockets' names away.
func closeRelays(s *session.Session, relays []relay) {
	for _, r := range relays {
		_ = unix.Unlink(path.Join(s.Dir, r.name))
	}
}

const (
	sshAgentRelay  = "ssh-agent"               // in the session's folder
	sshAgentInside = "/run/sbx/ssh-agent.sock" // inside
)

// setSSHAgent reads --ssh-agent, --ssh-agent=KEY,... and --ssh-agent=sign-git.
func setSSHAgent(r *request, v string) error {
	r.sshAgent = true
	for _, k := range strings.Split(v, ",") {
		if k != "" {
			r.sshKeys = append(r.sshKeys, k)
		}
	}
	return nil
}

// sshRelay serves the SSH agent at socket through the filter.
func (t *term) sshRelay(r *request, socket string) relay {
	opt := sshagent.Options{Agent: socket}
	for _, k := range r.sshKeys {
		if k == "sign-git" {
			opt.Mode = sshagent.SignGit
		} else {
			opt.Keys = append(opt.Keys, k)
		}
	}
	return relay{sshAgentRelay, func(l *net.UnixListener, asks *asking) {
		opt.Refused = func(q sshagent.Request) {
			if asks != nil {
				asks.arb.Refused(askAgent(q), decide.Verdict{Errno: int(unix.EACCES), Reason: q.Reason})
			} else if !r.quiet {
				t.warn("blocked: " + quote(q.What) + " of the SSH agent by " + caller(uint32(q.PID)) + ": " + q.Reason)
			}
		}
		if opt.Mode == sshagent.SignGit && asks != nil {
			opt.Ask = func(q sshagent.Request) bool { return asks.ask(askAgent(q)) }
		}
		sshagent.New(opt).Serve(l)
	}}
}

// askAgent is a request to the agent as an access that is decided, asked about and recorded: a name below the socket, so that
// "this one" means this text and "the directory" means every signature.
func askAgent(q sshagent.Request) decide.Ask {
	name := q.What
	if q.Key != "" {
		name += " with key " + firstOf(q.Comment, q.Key)
	}
	if q.Summary != "" {
		name += ": " + q.Summary
	}
	a := decide.Ask{PID: q.PID, Op: "connect", Kind: policy.KindSocket, Path: path.Join(sshAgentInside, strings.ReplaceAll(name, "/", "|"))}
	a.Exe, a.Cwd = procLinks(q.PID)
	return a
}

func firstOf(list ...string) string {
	for _, s := range list {
		if s != "" {
			return s
		}
	}
	return ""
}
