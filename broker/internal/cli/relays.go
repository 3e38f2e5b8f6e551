package cli

import (
	"net"
	"os"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sbx/audit"
	"sbx/broker/internal/decide"
	"sbx/broker/internal/gate"
	"sbx/broker/internal/planner"
	"sbx/broker/internal/policy"
	"sbx/broker/internal/program"
	server "sbx/broker/internal/relay"
	"sbx/broker/internal/session"
	"sbx/broker/internal/sshagent"
)

// relay is a socket in the session's folder that the sandbox finds elsewhere: a grant with a filter instead of a socket of
// the host. One of the two functions is set.
type relay struct {
	name  string // in the session's folder
	of    string // what it filters: "the SSH agent"
	serve func(l *net.UnixListener, asks *asking, refused refuser)
	spawn func(path string) (stop func(), err error) // by a program that makes the socket before spawn returns
}

// relays are the sockets of one session.
type relays struct {
	list   []relay
	dir    string
	start  []func(*asking, refuser)
	served []string // what each of start filters
	stop   []func()
	doors  []door
	log    *audit.Writer // of a session that has none for another reason
}

// door is something outside that the sandbox was given to talk to.
type door struct{ name, path, why string }

// refuser is told what a filter refused: an access named below its socket, and why.
type refuser func(a decide.Ask, reason string)

// add notes that path, with or without a filter before it, is there inside.
func (rs *relays) add(name, path, why string) { rs.doors = append(rs.doors, door{name, path, why}) }

// names are for the status line.
func (rs *relays) names() (out []string) {
	for _, d := range rs.doors {
		out = append(out, d.name)
	}
	return out
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
		l, err := listenUnix(path.Join(s.Dir, r.name))
		if err != nil {
			return &planner.Refusal{What: "making the socket " + r.name + " in the session's folder", Err: err, Hint: recordHint}
		}
		rs.served = append(rs.served, r.of)
		rs.start = append(rs.start, func(asks *asking, refused refuser) { go r.serve(l, asks, refused) })
	}
	return nil
}

// serve writes down what the sandbox was given, and starts answering. rec is for sessions that keep no record of questions.
func (rs *relays) serve(asks, rec *asking, s *session.Session, planHash string) error {
	if len(rs.doors) == 0 {
		return nil
	}
	log := (*audit.Writer)(nil)
	if asks != nil {
		log = asks.log
		for _, d := range rs.doors {
			asks.report.filters = append(asks.report.filters, d.path)
		}
	} else {
		var err error
		if rec.log, err = rec.openLog(s, planHash, time.Time{}); err != nil {
			return &planner.Refusal{What: "starting the session's audit log", Err: err, Hint: recordHint}
		}
		log, rs.log = rec.log, rec.log
	}
	for _, d := range rs.doors {
		if _, err := log.Note(audit.Event{Kind: audit.KindGrant, UID: os.Getuid(), Op: "connect", Path: d.path, Decision: "allow", Scope: "file", Life: "session", Reason: d.name + ", " + d.why}); err != nil {
			return &planner.Refusal{What: "writing the session's audit log", Err: err, Hint: recordHint}
		}
	}
	for i, f := range rs.start {
		f(asks, rs.refuser(asks, rec, rs.served[i]))
	}
	return nil
}

// refuser records what a filter refused as the session's other refusals are; there is a summary of questions or there is not.
func (rs *relays) refuser(asks, rec *asking, of string) refuser {
	n := new(atomic.Int32)
	return func(a decide.Ask, reason string) {
		a.Op, a.Kind = "connect", policy.KindSocket
		a.Exe, a.Cwd = program.Links(a.PID)
		if asks != nil {
			asks.arb.Refused(a, decide.Verdict{Errno: int(unix.EACCES), Reason: reason})
			return
		}
		if n.Add(1) <= maxRefused {
			_, _ = rs.log.Note(audit.Event{Kind: audit.KindDeny, UID: os.Getuid(), PID: a.PID, Exe: a.Exe, Cwd: a.Cwd, Op: a.Op, Path: a.Path, Decision: "deny", Reason: reason, Errno: "EACCES"})
			if !rec.r.Quiet {
				rec.t.warn("blocked: " + quote(path.Base(a.Path)) + " of " + of + " by " + caller(uint32(a.PID)) + ": " + reason)
			}
		}
	}
}

// maxRefused bounds what is recorded and printed of one filter where no arbiter counts.
const maxRefused = 1000

// close ends what was spawned and takes the sockets' names away.
func (rs *relays) close() {
	for _, f := range rs.stop {
		f()
	}
	if rs.log != nil {
		_ = rs.log.Close()
	}
	for _, r := range rs.list {
		if rs.dir != "" {
			_ = unix.Unlink(path.Join(rs.dir, r.name))
		}
	}
}

const (
	sshAgentRelay  = "ssh-agent"           // in the session's folder
	sshAgentInside = "/run/ssh-agent.sock" // inside; not below /run/sbx, about which nobody is ever asked
)

// sshRelay serves the SSH agent at socket through the filter.
func (t *term) sshRelay(r *run, socket string) relay {
	opt := sshagent.Options{Agent: socket}
	for _, k := range r.SSHKeys {
		if k == "sign-git" {
			opt.Mode = sshagent.SignGit
		} else {
			opt.Keys = append(opt.Keys, k)
		}
	}
	return relay{name: sshAgentRelay, of: "the SSH agent", serve: func(l *net.UnixListener, asks *asking, refused refuser) {
		opt.Refused = func(q sshagent.Request) { refused(askAgent(q), q.Reason) }
		if opt.Mode == sshagent.SignGit && asks != nil {
			opt.Ask = func(q sshagent.Request) bool { return asks.ask(askAgent(q)) }
		}
		opt.Door = asks.doorAt(path.Join(r.relays.dir, sshAgentRelay))
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
	a.Exe, a.Cwd = program.Links(q.PID)
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

// doors are the sockets of relays to which the notification engine connects for those inside.
type doors struct {
	mu   sync.Mutex
	open map[gate.File]*server.Door
}

// doorAt is the door of a relay's socket; nil where programs connect themselves.
func (a *asking) doorAt(socket string) *server.Door {
	var st unix.Stat_t
	if a == nil || a.files != nil || unix.Lstat(socket, &st) != nil {
		return nil
	}
	a.doors.mu.Lock()
	defer a.doors.mu.Unlock()
	if a.doors.open == nil {
		a.doors.open = map[gate.File]*server.Door{}
	}
	d := &server.Door{}
	a.doors.open[gate.File{Dev: st.Dev, Ino: st.Ino}] = d
	return d
}

// connect notes for whom a connection is made, if it is to a relay.
func (d *doors) connect(socket gate.File, pid uint32, connect func() bool) {
	d.mu.Lock()
	door := d.open[socket]
	d.mu.Unlock()
	if door == nil {
		connect()
		return
	}
	door.Connect(int(pid), connect)
}
