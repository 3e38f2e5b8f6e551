//go:build linux

package egress

import (
	"cmp"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// leadsIn says whether ports lead from or to the host, for which there is a network without a carrier.
func leadsIn(s request.Settings) bool {
	return s.Network.Mode != "none" && len(s.Network.HostPorts)+len(s.Network.Publish) > 0
}

// carrier is who carries packets, by the setting; "" is the best that there is.
func carrier(mode string, reach policy.Reach) string {
	switch {
	case reach == policy.NoHosts:
		return "none"
	case mode == "auto":
		return ""
	}
	return mode
}

// implied says whether nobody asked for the network but a profile: that of the sandbox, or an agent's.
func implied(s request.Settings) bool {
	for _, key := range []string{"network.allow", "network.hosts", "network.mode"} {
		for _, o := range s.Origins[key] {
			if s.Agent == nil || o.File != s.Agent.Origin() {
				return false
			}
		}
	}
	return s.Agent != nil || !leadsIn(s)
}

// list reads the hosts that the settings name.
func (o *Network) list(hosts []string, store policy.Store) error {
	for _, h := range hosts {
		p, err := peer.ParsePattern(h)
		if err != nil {
			return &planner.Refusal{What: err.Error()}
		}
		if p.SNI() && o.opt.All {
			return &planner.Refusal{What: "tls=sni of " + quoting.Quote(h) + " means nothing while every address is open",
				Hint: "leave --allow-network away"}
		}
		if err := o.denied(p, h, store); err != nil {
			return err
		}
		o.opt.Hosts = append(o.opt.Hosts, p)
	}
	o.listed = slices.Clone(o.opt.Hosts)
	return nil
}

// losses names what the carrier cannot carry of it.
func (o *Network) losses(s request.Settings, in *planner.Input) {
	veth := s.Network.Mode == "veth"
	if veth {
		withIPv6(&o.opt, in)
	}
	if o.opt.NoPing = !network.MayPing(); o.opt.NoPing && !veth &&
		slices.ContainsFunc(o.opt.Hosts, peer.Pattern.ICMP) {
		in.Losses = append(in.Losses, planner.Loss{What: "ping",
			Why: "this host gives you no sockets for it, by which alone echo requests could leave, so they are refused",
			Fix: NoPingFix})
	}
}

// ending says which rules end too late: nobody looks at them again in a static session.
func ending(store policy.Store, now time.Time, in *planner.Input) {
	for _, r := range store.InForce() {
		if r.Kind == policy.KindHost && r.Decision == policy.Allow && r.Expires.After(now) {
			what := "rule " + quoting.ASCII(r.String()) + " (" + r.Origin.String() + ")"
			in.Losses = append(in.Losses, planner.Loss{What: what,
				Why: "what is open from the start stays until the session ends, also when the rule has ended before"})
		}
	}
}

// denied refuses an address or a range of this run's options, all of which the organisation denies.
func (o *Network) denied(p peer.Pattern, text string, store policy.Store) error {
	at, ok := p.Prefix()
	if !ok || !slices.Contains(o.by.Request.AllowHosts, text) {
		return nil
	}
	port, last := p.Ports()
	r, ok := store.Match(policy.Query{Kind: policy.KindHost, Host: peer.Host{Addr: at.Addr()},
		Port: cmp.Or(int(port), 443), Access: policy.Connect, Now: time.Now()})
	of, address := r.Host().Prefix()
	if lo, hi := r.Host().Ports(); !ok || r.Decision != policy.Deny || r.Origin.Scope != policy.ScopeOrg ||
		address && of.Bits() > at.Bits() ||
		lo != 0 && (lo > cmp.Or(port, 80) || hi < cmp.Or(last, 443) || p.ICMP() && (lo > 1 || hi < 65535)) {
		return nil // not of all of it
	}
	return &planner.Refusal{What: "--allow-host " + quoting.Quote(text) + " is refused by the organisation: " +
		quoting.ASCII(r.String()) + ", " + r.Origin.String(), Hint: "ask the administrator of this machine"}
}

// allowedByRules are the hosts that rules allow now: those of a project only where it is trusted.
func allowedByRules(store policy.Store, now time.Time) (out []peer.Pattern) {
	for _, rule := range store.InForce() {
		if rule.Kind == policy.KindHost && rule.Decision == policy.Allow && (rule.Expires.IsZero() ||
			now.Before(rule.Expires)) {
			out = append(out, rule.Host())
		}
	}
	return out
}

// lead reads which ports lead to the host, and from it.
func (o *Network) lead(s request.Settings) error {
	for _, p := range s.Network.HostPorts {
		o.opt.HostPorts = append(o.opt.HostPorts, uint16(p))
	}
	for _, p := range s.Network.Publish {
		pub, err := network.ParsePublish(p)
		if err != nil {
			return &planner.Refusal{What: err.Error()}
		}
		o.opt.Publish = append(o.opt.Publish, pub)
	}
	return nil
}

// NoPingFix is what lets programs inside ping.
const NoPingFix = "as root: sysctl -w net.ipv4.ping_group_range='0 2147483647'; or --net veth"

// Denied says whether a rule denies the host at the port, or, with port 0, at the ports that are meant when none is
// named. Where nobody asks, a rule that wants to be asked denies.
func Denied(match func(policy.Query) (policy.Rule, bool), h peer.Host, port int, asks bool) bool {
	ports := []int{port}
	if port == 0 {
		ports = []int{443, 80}
	}
	for _, p := range ports {
		rule, ok := match(policy.Query{Kind: policy.KindHost, Host: h, Port: p, Access: policy.Connect,
			Now: time.Now()})
		if !ok || rule.Decision != policy.Deny && (asks || rule.Decision != policy.Ask) {
			return false
		}
	}
	return true
}

// proxyVars are how programs are told of a proxy.
var proxyVars = [...]string{"http_proxy", "https_proxy", "ftp_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY",
	"FTP_PROXY", "ALL_PROXY"}

// proxies passes the user's proxies on where everything may be reached, or where the list names them: through a proxy a
// program reaches whatever the proxy reaches. Passwords in them stay outside.
func (o *Network) proxies(s request.Settings, in *planner.Input) {
	passed := false
	for _, name := range proxyVars {
		v := host.Lookup(o.by.Env, name)
		if v == "" || host.Lookup(in.Env, name) != "" {
			continue
		}
		u, err := url.Parse(v)
		if err != nil || u.Hostname() == "" || u.User != nil {
			continue
		}
		port, _ := strconv.Atoi(u.Port())
		h, err := peer.Parse(u.Hostname())
		if err != nil || port <= 0 {
			continue
		}
		if h.Name == "localhost" || h.Addr.IsValid() && h.Addr.IsLoopback() {
			if !slices.Contains(s.Network.HostPorts, port) {
				continue
			}
		} else if !o.opt.All &&
			!slices.ContainsFunc(slices.Concat(o.opt.Hosts, o.opt.Ruled), func(p peer.Pattern) bool {
				return p.Match(h, port, false)
			}) {
			continue
		}
		if o.opt.All && h.Addr.IsValid() {
			if p, err := peer.ParsePattern(netip.AddrPortFrom(h.Addr, uint16(port)).String()); err == nil {
				o.opt.Hosts = append(o.opt.Hosts, p)
			}
		}
		in.Env = append(in.Env, name+"="+v)
		passed = true
	}
	for _, name := range []string{"no_proxy", "NO_PROXY"} {
		v := host.Lookup(o.by.Env, name)
		if o.by.Served != nil { // through the proxy a program would reach them as they are outside
			v = strings.Trim(v+","+strings.Join(o.by.Served.Names, ",")+",127.0.0.1", ",")
		}
		if v != "" && passed && host.Lookup(in.Env, name) == "" {
			in.Env = append(in.Env, name+"="+v)
		}
	}
}
