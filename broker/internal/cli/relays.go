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

// relay is a socket in the session's folder that the sandbox finds elsewhere: a grant with a filter instead of a socket of
// the host. One of the two functions is set.
type relay struct {
	name  string                                     // in the session's folder
	serve func(l *net.UnixListener, asks *asking)    // by the broker
	spawn func(path string) (stop func(), err error) // by a program that makes the socket before spawn returns
}

// relays are the sockets of one session.
type relays struct {
	list  []relay
	dir   string
	start []func(*asking)
	stop  []func()
}

// open makes the sockets, which must exist before the sandbox is built.
func (rs *relays) open(s *session.Session) error {
	rs.dir = s.Dir
	for _, r := range rs.list {
		if r.spawn != nil {
			stop, err := r.spawn(path.Join(s.Dir, r.name))
			if err != nil {
				return err
			}
			rs.stop = append(rs.stop, stop)
			continue
		}
		dir, err := unix.Open(s.Dir, unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		if err != nil {
			return &planner.Refusal{What: "opening the session's folder", Err: err, Hint: recordHint}
		}
		// by descriptor: a socket's name has room for 107 bytes
		l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "/proc/self/fd/" + strconv.Itoa(dir) + "/" + r.name, Net: "unix"})
		unix.Close(dir)
		if err != nil {
			return &planner.Refusal{What: "making the socket " + r.name + " in the session's folder", Err: err, Hint: recordHint}
		}
		l.SetUnlinkOnClose(false) // the descriptor in its name is closed; close knows the path
		rs.start = append(rs.start, func(asks *asking) { go r.serve(l, asks) })
	}
	return nil
}

// serve starts answering, once there is somebody to ask.
func (rs *relays) serve(asks *asking) {
	for _, f := range rs.start {
		f(asks)
	}
}

// close ends what was spawned and takes the sockets' names away.
func (rs *relays) close() {
	for _, f := range rs.stop {
		f()
	}
	for _, r := range rs.list {
		if rs.dir != "" {
			_ = unix.Unlink(path.Join(rs.dir, r.name))
		}
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
	return relay{name: sshAgentRelay, serve: func(l *net.UnixListener, asks *asking) {
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
