//go:build linux

package egress

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/audit"
	"sbx.example/sbx/broker/internal/arbiter"
	"sbx.example/sbx/broker/internal/child"
	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/netns"
	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/network/nameserver"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
)

// Asked is what of a run its network follows from, besides the settings.
type Asked struct {
	Request *request.Request
	Dynamic bool // somebody can be asked
	Labels  bool // what is read may have a label
	Strict  bool
	Env     []string
	Maps    func(pid int) error            // writes the maps of the network's user namespace; nil: one user
	Served  *network.Served                // nil: nothing
	Say     func(string)                   // tells the user, unless that is not wanted
	Refused func(line string, failed bool) // is told what was turned away, and what did not work
	Marked  func(name string, by func() int) bool
	Sent    func(host, head string) // is told of requests that are read on their way
}

// Network is the network that a run asks for. A nil one is none.
type Network struct {
	by      Asked
	opt     network.Options
	implied bool // by a profile: without it the run goes on
	ask     atomic.Pointer[func(context.Context, decide.Ask) decide.Verdict]
	arb     atomic.Pointer[arbiter.Arbiter]
	listed  []peer.Pattern // by the settings
	store   policy.Store   // of the start
	stop    chan struct{}
	over    sync.Once
	mu      sync.Mutex
	log     *audit.Writer
	own     bool          // the record is of the network alone
	built   chan struct{} // closed when there is a namespace to join, or none is to be had
	carried chan struct{} // closed when there is a way out of it, or none is to be had
	net     *network.Network
	err     error // why there is no namespace
	failed  error // why there is no way out
}

// New reads from the configuration what is to be reachable, and says so in the input. Nothing is started.
func New(by Asked, s request.Settings, in *planner.Input) (*Network, error) {
	reach, hosts := s.Reach(by.Dynamic)
	if reach == policy.NoHosts && !leadsIn(s) && by.Served == nil || in.ShareNet {
		return nil, nil
	}
	if in.NoLoopback {
		return nil, &planner.Refusal{What: "network.loopback = false (" + s.Origin("network.loopback") +
			") closes 127.0.0.1, where a sandbox with a network asks for names and finds its ports",
			Hint: "leave one of the two out; --net none says that no network is wanted"}
	}
	helper := ""
	if s.Network.Mode == "veth" {
		var err error
		if helper, err = netHelper(by.Request); err != nil {
			return nil, err
		}
	}
	o := &Network{by: by, built: make(chan struct{}), carried: make(chan struct{}), stop: make(chan struct{})}
	o.opt = network.Options{All: reach == policy.AllHosts, Carrier: carrier(s.Network.Mode, reach), Helper: helper,
		Programs: request.Programs(by.Env, s, in), Servers: nameserver.Read("/etc/resolv.conf"), Note: o.note,
		Say: by.Say, SNI: s.Network.TLS == "sni", Maps: by.Maps, Served: by.Served, Marked: by.Marked, Sent: by.Sent}
	o.implied = !by.Strict && reach != policy.NoHosts && implied(s)
	if o.implied {
		// Seen before anything is made for it: a profile's network that cannot be had must not cost the start.
		if err := unix.Access("/dev/net/tun", unix.R_OK|unix.W_OK); err != nil {
			o.by.Say("network: the profile's cannot be had here: opening /dev/net/tun: " + err.Error() +
				" (--net none says that none is wanted)")
			if !leadsIn(s) && by.Served == nil {
				return nil, nil
			}
			o.opt.Carrier = "none"
		}
	}
	store := s.Layers.Policy
	if err := o.list(hosts, store); err != nil {
		return nil, err
	}
	o.losses(s, in)
	o.store, o.opt.Ruled = store, allowedByRules(store, time.Now())
	if o.opt.SNI && o.opt.All {
		by.Say("network: connections need not name their host (network.tls) while every address is open")
	}
	o.opt.Cut = s.Network.Labelled == "cut"
	o.opt.Rules = o.rules
	o.opt.Denied = func(h peer.Host, port int, asks bool) bool { return Denied(o.rules().Match, h, port, asks) }
	if err := o.lead(s); err != nil {
		return nil, err
	}
	o.proxies(s, in)
	if !by.Dynamic {
		o.keepAccepting(store, in)
		ending(store, time.Now(), in)
	}
	if by.Dynamic && (reach != policy.AllHosts || by.Labels) && (reach != policy.NoHosts || leadsIn(s)) {
		o.opt.Ask, o.opt.Stands = o.question, o.stands
	}
	in.JoinNet = true
	return o, nil
}

// Begin starts the network while the broker plans.
func (o *Network) Begin(dir string, in *planner.Input) {
	if o == nil {
		return
	}
	go func() {
		defer close(o.carried)
		if o.err = o.files(dir, in); o.err == nil {
			o.net, o.err = network.Start(o.opt)
		}
		close(o.built)
		if o.err != nil {
			return
		}
		o.failed = o.net.Carried()
		if o.failed != nil && o.implied {
			o.by.Say("network: the profile's cannot be had here: " + o.failed.Error() + " (sbx doctor says what is missing)")
			o.failed = nil
		}
		if o.failed == nil && o.by.Served != nil {
			o.failed = o.net.Serve(dir)
		}
	}()
}

// Stage waits until the network's namespace stands and returns what the sandbox joins.
func (o *Network) Stage() (*netns.Network, error) {
	if o == nil {
		return nil, nil
	}
	<-o.built
	if o.err != nil {
		return nil, o.refusal(o.err)
	}
	return o.net.Stage(), nil
}

// AwaitCarrier waits until there is a way out. No program is to be started before.
func (o *Network) AwaitCarrier() error {
	if o == nil {
		return nil
	}
	<-o.carried
	if o.failed != nil {
		return o.refusal(o.failed)
	}
	return nil
}

// refusal says why the network is not to be had.
func (o *Network) refusal(err error) *planner.Refusal {
	r := new(planner.Refusal)
	if errors.As(err, &r) {
		return r
	}
	r = &planner.Refusal{What: "making the sandbox's network", Err: err}
	var none *network.NoCarrier
	switch {
	case publishing(err) && errors.Is(err, syscall.EACCES):
		r.Hint = "ports below 1024 are root's on this host; publish a higher one"
	case publishing(err) && errors.Is(err, syscall.EADDRINUSE):
		r.Hint = "another program has that port; publish another one"
	case publishing(err):
		r.Hint = "the address has to be one of this host's"
	case o.opt.Helper != "":
		r.Hint = vethHint(err)
	case errors.Is(err, syscall.EACCES), errors.Is(err, syscall.ENOENT):
		r.Hint = "the device must exist and be open to you (as root: modprobe tun; chmod 0666 /dev/net/tun)"
	case errors.As(err, &none):
		r.Hint = "install pasta (package passt) or slirp4netns; sbx doctor says what is missing"
	default:
		r.Hint = "sbx doctor says what is missing"
	}
	return r
}

// files writes what names the resolver inside, into the session's folder.
func (o *Network) files(dir string, in *planner.Input) error {
	nsswitch, _ := os.ReadFile("/etc/nsswitch.conf")
	return nameFiles(dir, append(copiedFiles(in), planner.Hosts(in.Hostname),
		plan.Text{Name: "resolv.conf", Text: "# the resolver of this sandbox\nnameserver " + network.Resolver +
			"\noptions timeout:30 attempts:5\n"},
		plan.Text{Name: "nsswitch.conf", Text: nsswitchText(string(nsswitch))},
	)).Make()
}

// nameFiles are files of the sandbox's own in the session's folder dir.
func nameFiles(dir string, files []plan.Text) child.Folder {
	dir = path.Join(dir, "etc")
	f := child.Folder{Dirs: []child.Dir{{Path: dir, Mode: 0o755}}}
	for _, x := range files {
		f.Files = append(f.Files, child.File{Path: path.Join(dir, string(x.Name)), Text: string(x.Text)})
	}
	return f
}

// copiedFiles are files of the host's as they are shown.
func copiedFiles(in *planner.Input) []plan.Text {
	var out []plan.Text
	for _, m := range in.Masked {
		out = append(out, m.Text)
	}
	for _, c := range in.Copies {
		out = append(out, c.Text)
	}
	return out
}

// OwnFiles are the sandbox's own files that p, a plan, mounts: of names where it has no network, and copies of files of
// the host's. What stands on top of layers is in the plan itself.
func OwnFiles(p *plan.Plan, in *planner.Input) child.Folder {
	files := copiedFiles(in)
	if in.OwnNames {
		files = append(files, planner.OwnNames(in.Hostname)...)
	}
	if slices.ContainsFunc(p.Mounts, func(m plan.Mount) bool {
		return strings.HasPrefix(m.Source, in.SessionDir+"/etc/")
	}) {
		return nameFiles(in.SessionDir, files)
	}
	return child.Folder{}
}

// nsswitchText is the host's, with names looked up in files and by DNS only: other services are sockets of the host.
func nsswitchText(s string) string {
	var b strings.Builder
	seen := false
	for line := range strings.Lines(s) {
		if f := strings.Fields(line); len(f) > 0 && f[0] == "hosts:" {
			line, seen = "hosts: files dns\n", true
		}
		b.WriteString(line)
	}
	if !seen {
		b.WriteString("hosts: files dns\n")
	}
	return b.String()
}

func (o *Network) question(ctx context.Context, q decide.Ask) decide.Verdict {
	if f := o.ask.Load(); f != nil {
		return (*f)(ctx, q)
	}
	return decide.Verdict{Errno: int(syscall.EACCES), Reason: "nobody is there to be asked"}
}

// stands says how a host would be decided about now, without asking.
func (o *Network) stands(q decide.Ask) decide.Verdict {
	if a := o.arb.Load(); a != nil {
		return a.Current(q)
	}
	return decide.Verdict{Decision: decide.Allow} // nothing runs yet
}

// followEvery is how often it is looked whether policy files have changed: what a name has opened is not asked about
// again.
const followEvery = 2 * time.Second

// rules are those of this moment: of the start as long as nothing runs that reads the files again.
func (o *Network) rules() network.Rules {
	if a := o.arb.Load(); a != nil {
		if list, match := a.Rules(); match != nil {
			return network.Rules{List: list, Match: match}
		}
	}
	return network.Rules{List: o.store.InForce(), Match: o.store.Match}
}

// nextEnd is when the next rule about a host ends; zero: none does.
func nextEnd(list []policy.Rule, now time.Time) (end time.Time) {
	for _, r := range list {
		if r.Kind == policy.KindHost && r.Expires.After(now) && (end.IsZero() || r.Expires.Before(end)) {
			end = r.Expires
		}
	}
	return end
}

// follow closes what changed policy files do not allow any more, and what has ended.
func (o *Network) follow(a *arbiter.Arbiter) {
	tick := time.NewTicker(followEvery)
	defer tick.Stop()
	end := nextEnd(o.store.InForce(), time.Now())
	for seen := a.Refreshed(); ; {
		select {
		case <-o.stop:
			return
		case <-tick.C:
		}
		now := time.Now()
		if n := a.Refreshed(); n != seen || !end.IsZero() && !now.Before(end) {
			seen, end = n, nextEnd(o.rules().List, now)
			<-o.carried
			if o.net != nil {
				o.net.Reconsider()
			}
		}
	}
}

// Reaches is what nobody need be asked about.
func (o *Network) Reaches() (hosts []peer.Pattern, all bool) { return o.listed, o.opt.All }

// Limit has all that leaves decided about anew, with the labels that the session carries.
func (o *Network) Limit() error {
	if o == nil {
		return nil
	}
	<-o.carried
	if o.net == nil {
		return nil
	}
	return o.net.Limit()
}

// Doors are the ports that lead to and from the host.
func (o *Network) Doors() (out []decide.Contact) {
	add := func(port uint16) {
		out = append(out, decide.Contact{Kind: policy.KindHost, Name: network.DoorHost, Port: int(port)})
	}
	for _, port := range o.opt.HostPorts {
		add(port)
	}
	for _, p := range o.opt.Publish {
		add(p.Host.Port())
	}
	return out
}

// Contacts are those with whom somebody inside has been in contact.
func (o *Network) Contacts() []decide.Contact {
	if o == nil || o.net == nil {
		return nil
	}
	return o.net.Contacts()
}

// Forget closes what an answer has opened.
func (o *Network) Forget(host string) {
	if o.net != nil {
		o.net.Forget(host)
	}
}

// Start connects the network's questions with whoever decides, from when the program can make any; nil is nobody. init
// is process 1 of the sandbox, by which programs are found that ask.
func (o *Network) Start(a *arbiter.Arbiter, log *audit.Writer, init int) {
	o.net.Inside(init)
	o.mu.Lock()
	o.log = log
	o.mu.Unlock()
	if a == nil {
		return
	}
	ask := a.Ask
	o.ask.Store(&ask)
	o.arb.Store(a)
	go o.follow(a)
}

// OwnLog is Start where the record is of the network alone, and ends with it.
func (o *Network) OwnLog(log *audit.Writer, init int) {
	o.net.Inside(init)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.log, o.own = log, true
}

// Close ends the network and writes down what went where.
func (o *Network) Close() {
	if o == nil {
		return
	}
	<-o.carried
	o.over.Do(func() { close(o.stop) })
	if o.net == nil {
		return
	}
	traffic := o.net.Close()
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.log == nil {
		return
	}
	o.noteTraffic(traffic)
	if o.own {
		if err := o.log.Close(); err != nil {
			o.by.Say(fmt.Sprintf("sealing the audit log: %v", err))
		}
	}
	o.log = nil
}
