//go:build linux

package network

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/netns"
	"sbx.example/sbx/broker/internal/network/nameserver"
	"sbx.example/sbx/broker/internal/network/nft"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/plan"
)

// Options say what a sandbox may reach.
type Options struct {
	All       bool           // every public address; Hosts are what is open beyond them
	Hosts     []peer.Pattern // names and ranges that are listed
	Ruled     []peer.Pattern // what rules allow at the start
	HostPorts []uint16       // of the host's loopback
	SNI       bool           // connections to names must name them on ports 80 and 443, whatever their patterns say
	Publish   []Publish
	// pasta, slirp4netns or veth; "" for the first program that works; "none" for doors without a way out
	Carrier  string
	Programs program.Source // where the carrier comes from
	Helper   string         // sbx-helper's path, for veth
	Servers  []netip.AddrPort
	NoPing   bool // echo requests are refused: nothing here could carry them, see MayPing
	// Maps writes the identity maps of the network's user namespace; nil: it has one user, see netns.New.
	Maps func(pid int) error
	// Denied says whether a rule denies a name at a port, 0 for any; or asks about it, and nobody is asked. May be nil.
	Denied func(h peer.Host, port int, asks bool) bool
	// Rules are the rules of this moment, for what they say of addresses. May be nil.
	Rules func() Rules
	// Ask is called for what is not listed and blocks until it is decided. nil: it is refused.
	Ask func(context.Context, decide.Ask) decide.Verdict
	// Cut ends connections that are open when the session begins to carry labels; else what they send is asked about.
	Cut bool
	// Stands says how it would be decided now without asking. May be nil.
	Stands func(decide.Ask) decide.Verdict
	// Note is told of everything that was refused or failed, and of what was asked. It must not block.
	Note func(Event)
	// Say tells the user.
	Say func(string)
	// Marked says whether a name has the mark of a decoy: it is not looked up. by finds who wants it. May be nil.
	Marked func(name string, by func() int) bool
	// Sent is told of the head of each request whose name is compared. May be nil.
	Sent func(host, head string)
	// Served is what sbx serves inside by itself. May be nil.
	Served *Served
}

// Event is one thing that the record should have.
type Event struct {
	Op             string // lookup, connect, or OpCarry
	Host           string
	Addr           netip.Addr
	Port           uint16
	Proto          string
	By             Program // whose doing it was, where that is known
	Denied, Failed bool
	Reason         string
}

// OpCarry is the Op of what happens to the process that carries packets.
const OpCarry = "carry"

// Network is the way out of one sandbox.
type Network struct {
	o       Options
	ns      *netns.Network
	rules   *rules
	names   *resolver
	log     *nft.Listener
	carried func() error // starts what carries packets, once, and waits for it; nil before there is a namespace
	car     *carrier
	veth    *veth
	probe   *os.File
	raw     [2]*os.File  // send packets as they are, by IPv4 and IPv6
	back    [2]*os.File  // the same, for packets that are to be refused
	init    atomic.Int64 // process 1 of the sandbox
	mu      sync.Mutex
	held    map[netip.AddrPort][][]byte
	passed  counts
	sought  bucket // searches for refused programs, in milliseconds
	notes   notes
	closed  atomic.Pointer[[]netip.Prefix]
	decided atomic.Pointer[[]decided]
	// one change of what is decided at a time
	deciding sync.Mutex
	ctx      context.Context
	cancel   context.CancelFunc
	once     sync.Once
	limits   sync.Mutex // one Limit at a time
	limited  atomic.Bool
	past     []Traffic                      // from before it. Guarded by mu, like live and through
	live     map[net.Conn]func() decide.Ask // connections that this process carries, and to whom
	through  map[uint16]bool                // ports of the host's that were connected to or from
	open     []interface{ Close() error }   // guarded by mu
	served   []*os.File
}

// Resolver is where the sandbox's resolver listens.
const Resolver = plan.Resolver

// Start makes the namespace and everything around it. Nothing is in it, and so nothing is open, before the rules are in
// force; what carries packets starts meanwhile, see Carried.
func Start(o Options) (_ *Network, err error) {
	n := &Network{o: o, held: map[netip.AddrPort][][]byte{}, live: map[net.Conn]func() decide.Ask{},
		through: map[uint16]bool{}}
	n.o.SNI = o.SNI && !o.All // nothing is looked at for its name then
	n.ctx, n.cancel = context.WithCancel(context.Background())
	defer func() {
		if err != nil {
			n.Close()
		}
	}()
	if n.o.Note == nil {
		n.o.Note = func(Event) {}
	}
	n.notes.to = n.o.Note
	n.o.Note = n.notes.take
	if n.o.Say == nil {
		n.o.Say = func(string) {}
	}
	addresses, err := watchAddresses(n.ctx)
	if err != nil {
		n.o.Say("network: addresses that this host is given later are not closed: " + err.Error())
	}
	closed := append(closedPrefixes(), hostAddresses()...)
	n.closed.Store(&closed)
	var listeners [][]net.Listener
	for _, p := range o.Publish {
		l, err := net.Listen("tcp", p.Host.String())
		if err != nil {
			return nil, fmt.Errorf("publishing %s: %w", p.Host, err)
		}
		n.keep(l)
		listeners = append(listeners, []net.Listener{l})
	}
	if err := n.build(); err != nil {
		return nil, err
	}
	if addresses != nil {
		go n.closeAddresses(addresses)
	}
	for i, l := range listeners {
		go n.publish(l[0], o.Publish[i].Port)
	}
	return n, nil
}

// keep closes c with the network.
func (n *Network) keep(c interface{ Close() error }) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = append(n.open, c)
}

// The sockets that are made in the namespace, by their places among those that it is made with. More stand behind
// these: see wanted.
const (
	forRules = iota
	forLog
	forNames
	forNamesTCP
	forProbe
	forRaw
	forBack
	forRaw6 // only with IPv6
	forBack6
)

// wanted are the sockets that are made in the namespace. From passing on they lead connections through that must name
// their host, from doors on they are the ports that lead to the host.
func (n *Network) wanted(v6, sni bool) (list []netns.Socket, passing, doors int) {
	at := netip.AddrPortFrom(netip.MustParseAddr(Resolver), 53)
	list = []netns.Socket{
		forRules:    {Family: unix.AF_NETLINK, Type: unix.SOCK_RAW, Proto: unix.NETLINK_NETFILTER},
		forLog:      {Family: unix.AF_NETLINK, Type: unix.SOCK_RAW, Proto: unix.NETLINK_NETFILTER},
		forNames:    {Family: unix.AF_INET, Type: unix.SOCK_DGRAM, Bind: at},
		forNamesTCP: {Family: unix.AF_INET, Type: unix.SOCK_STREAM, Bind: at, Backlog: 64},
		forProbe:    {Family: unix.AF_INET, Type: unix.SOCK_DGRAM},
		forRaw:      {Family: unix.AF_INET, Type: unix.SOCK_RAW, Proto: unix.IPPROTO_RAW},
		forBack:     {Family: unix.AF_INET, Type: unix.SOCK_RAW, Proto: unix.IPPROTO_RAW, Options: refuseIt[:]},
	}
	if v6 {
		list = append(list, netns.Socket{Family: unix.AF_INET6, Type: unix.SOCK_RAW, Proto: unix.IPPROTO_RAW},
			netns.Socket{Family: unix.AF_INET6, Type: unix.SOCK_RAW, Proto: unix.IPPROTO_RAW, Options: refuseIt[:]})
	}
	passing = len(list)
	if sni {
		list = append(list, loopbackSockets(passPort, v6)...)
	}
	doors = len(list)
	for _, p := range n.o.HostPorts {
		list = append(list, loopbackSockets(p, v6)...)
	}
	if n.o.Served != nil { // these stand at the end
		for _, at := range n.o.Served.Listen {
			list = append(list, netns.Socket{Family: unix.AF_INET, Type: unix.SOCK_STREAM, Bind: at, Backlog: 128})
		}
	}
	return list, passing, doors
}

// loopbackSockets are the sockets that listen at a port inside.
func loopbackSockets(port uint16, v6 bool) []netns.Socket {
	list := []netns.Socket{{Family: unix.AF_INET, Type: unix.SOCK_STREAM,
		Bind: netip.AddrPortFrom(netip.MustParseAddr("127.0.0.1"), port), Backlog: 128}}
	if v6 {
		list = append(list, netns.Socket{Family: unix.AF_INET6, Type: unix.SOCK_STREAM,
			Options: [][3]int{{unix.IPPROTO_IPV6, unix.IPV6_V6ONLY, 1}}, Bind: netip.AddrPortFrom(netip.IPv6Loopback(), port),
			Backlog: 128})
	}
	return list
}

// build makes namespace, rules and resolver.
func (n *Network) build() error {
	v6 := haveIPv6()
	classes := classesOf(slices.Concat(n.o.Hosts, n.o.Ruled), n.o.SNI)
	if n.o.All {
		classes = nil
	}
	list, passing, doors := n.wanted(v6, hasSNI(classes))
	ns, files, err := netns.New(uint32(os.Geteuid()), uint32(os.Getegid()), list, n.o.Maps, len(n.o.Publish) > 0)
	if err != nil {
		return fmt.Errorf("making the sandbox's network: %w", err)
	}
	n.ns = ns
	if n.o.Served != nil {
		at := len(files) - len(n.o.Served.Listen)
		files, n.served = files[:at], files[at:]
	}
	for _, f := range files {
		n.keep(f)
	}
	n.probe, n.raw[0], n.back[0] = files[forProbe], files[forRaw], files[forBack]
	n.carried = sync.OnceValue(n.carry)
	go n.carried()
	if v6 {
		n.raw[1], n.back[1] = files[forRaw6], files[forBack6]
	}
	if err := n.setRules(files[forRules], files[forLog], classes); err != nil {
		return err
	}
	if err := n.serveNames(files[forNames], files[forNamesTCP]); err != nil {
		return err
	}
	for i := passing; i < len(files); i++ {
		l, err := n.listener(files[i])
		if err != nil {
			return err
		}
		if i < doors {
			go n.accept(l, n.pass)
		} else {
			go n.hostPort(l, list[i].Bind.Port())
		}
	}
	return nil
}

// setRules puts the rules in force and listens to what they turn away.
func (n *Network) setRules(to, log *os.File, classes []ports) error {
	conn, err := nft.Open(to)
	if err != nil {
		return err
	}
	n.rules = &rules{c: conn, classes: classes, open: map[string]time.Time{}}
	if n.o.Ask != nil {
		n.rules.classes = append(n.rules.classes, ports{lo: 1, hi: 65535})
	}
	list, everybody := n.decidedNow()
	n.decided.Store(&list)
	n.rules.decided, n.rules.everybody = list, everybody
	if err := n.rules.setUp(&n.o, *n.closed.Load()); err != nil {
		return fmt.Errorf("setting the sandbox's network rules: %w", err)
	}
	if n.log, err = nft.Listen(log, groupRefused, groupHeld, groupTurned); err != nil {
		return err
	}
	n.keep(n.log)
	go n.readLog()
	return nil
}

// serveNames answers questions about names.
func (n *Network) serveNames(udp, tcp *os.File) error {
	n.names = newResolver()
	if n.o.Served != nil {
		n.names.served = n.o.Served.Names
	}
	n.names.up = &nameserver.Servers{List: n.o.Servers, Timeout: patience}
	n.names.why = n.whyClosed
	n.names.judge, n.names.closed, n.names.note, n.names.by = n.judgeName, n.isClosed, n.o.Note, n.refusedBy
	n.names.denied = func(h peer.Host) bool { return n.denies(h, 0) }
	n.names.admit = func(a []netip.Addr, j judgement, life time.Duration) error {
		if err := n.redecide(); err != nil || n.all() { // before it is open
			return err
		}
		return n.rules.admit(a, j.ports, life, j.made)
	}
	n.names.shut = n.shut
	pc, err := net.FilePacketConn(udp)
	if err != nil {
		return fmt.Errorf("serving names: %w", err)
	}
	n.keep(pc)
	go n.serveUDP(pc)
	l, err := n.listener(tcp)
	if err != nil {
		return err
	}
	go n.serveTCP(l)
	return nil
}

func (n *Network) listener(f *os.File) (net.Listener, error) {
	l, err := net.FileListener(f)
	if err != nil {
		return nil, fmt.Errorf("listening inside: %w", err)
	}
	n.keep(l)
	return l, nil
}

// Stage is what the sandbox joins.
func (n *Network) Stage() *netns.Network { return n.ns }

// Close ends everything and returns what went where.
func (n *Network) Close() (out []Traffic) {
	n.once.Do(func() {
		if n.carried != nil {
			_ = n.carried() // what has started is ended below
		}
		if n.rules != nil {
			out, _ = n.rules.traffic()
			out = n.passed.take(append(out, n.past...))
		}
		n.cancel()
		n.notes.end()
		if n.car != nil {
			n.car.close()
		}
		if n.veth != nil {
			n.veth.close()
		}
		for _, c := range n.open {
			c.Close()
		}
		n.closeServed()
		if n.ns != nil {
			n.ns.Close()
		}
	})
	return out
}

// MayPing says whether this user's programs may send echo requests on this host, as those that carry packets do for the
// sandbox: by sockets that net.ipv4.ping_group_range opens to groups.
func MayPing() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, unix.IPPROTO_ICMP)
	if err != nil {
		return false
	}
	unix.Close(fd)
	return true
}

// refuseIt marks packets that the rules refuse at once. Nobody inside can mark any.
var refuseIt = [1][3]int{{unix.SOL_SOCKET, unix.SO_MARK, markRefused}}

// Inside tells who process 1 of the sandbox is, so that questions can name the program that asks.
func (n *Network) Inside(pid int) { n.init.Store(int64(pid)) }

// NameOf is the name that led to an address, "" if none did.
func (n *Network) NameOf(a netip.Addr) string { return n.names.nameOf(a) }
