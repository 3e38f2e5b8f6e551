package explain

import (
	"net"
	"net/netip"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/internal/decide"
	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/option"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/pathname"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
)

// socket explains connecting to a socket of the host.
func (x *Explainer) socket(p, canon string) Answer {
	row := Answer{Access: "connect"}
	for _, name := range []string{p, canon} {
		h := policy.HiddenBy(x.Env.Hidden, policy.KindSocket, name)
		if h == nil {
			continue
		}
		rule, ok := x.Env.Policy(policy.Query{Kind: policy.KindSocket, Path: name, Access: policy.Connect, Now: x.Env.Now})
		if ok && h.Explicit(rule) {
			continue
		}
		row.Decision, row.Layer, row.Reason, row.Rule = "deny", "socket", h.Reason, h.Pattern
		row.from(h.Origin)
		if h.OrgOnly {
			row.Change = `only the organisation can: [[rule]] socket = "` + pathname.Escape(canon) +
				`" decision = "allow" in ` + request.OrgDir + "/policy.toml"
			return row
		}
		row.Change, row.Once = "sbx policy add allow --kind socket "+quoting.Shell(pathname.Escape(canon)),
			"sbx run --socket "+quoting.Shell(canon)
		return row
	}
	if rule, ok := x.Env.Policy(policy.Query{Kind: policy.KindSocket, Path: canon, Access: policy.Connect,
		Now: x.Env.Now}); ok {
		row.rule(rule)
		if row.Decision = rule.Decision.String(); rule.Decision != policy.Allow {
			row.Change = x.overrule(rule, canon, policy.Connect)
		}
		return row
	}
	for _, g := range x.Input.Grants {
		if g.Socket && (g.Path == canon || g.Path == p) {
			row.Decision, row.Layer, row.Reason, row.Scope = "allow", "mount", g.Why, "command line"
			return row
		}
	}
	row.Decision, row.Layer, row.Reason, row.Scope = "absent", "default",
		"sockets of the host are not part of the sandbox", "default"
	row.Change, row.Once = "sbx policy add allow --kind socket "+quoting.Shell(pathname.Escape(canon)),
		"sbx run --socket "+quoting.Shell(canon)
	if v := decide.Decide(decide.Ask{Kind: policy.KindSocket, Path: canon, Op: "connect"},
		x.Env); v.Decision == decide.AskHuman {
		row.Decision, row.Reason = "ask", v.Reason
	}
	return row
}

// host explains a connection to host, on any port where port is 0.
func (x *Explainer) host(name string, port int) Answer {
	row := Answer{Access: "connect"}
	h, err := peer.Parse(name)
	if err != nil {
		row.Decision, row.Layer, row.Reason = "deny", "network", err.Error()
		return row
	}
	subject := h.String()
	if port != 0 {
		subject = net.JoinHostPort(subject, strconv.Itoa(port))
	}
	change := "sbx policy add allow " + quoting.Shell(subject) + kindOf(subject)
	if port == 0 {
		port = x.likelyPort(h)
	}
	rule, ruled := x.Env.Policy(policy.Query{Kind: policy.KindHost, Host: h, Port: port, Access: policy.Connect,
		Now: x.Env.Now})
	if ruled && rule.Decision == policy.Deny {
		row.rule(rule)
		row.Decision, row.Change = "deny", x.overruleHost(rule, change)
		return row
	}
	if reach, _ := x.Settings.Reach(!x.Static); reach == policy.NoHosts {
		x.noNetwork(&row, subject)
		return row
	}
	_, about := rule.Host().Prefix() // one about everybody opens nothing that is closed
	if h.Addr.IsValid() && network.Closed(h.Addr, x.Env.Hosts) && !(about && rule.Decision == policy.Allow) {
		row.Decision, row.Layer, row.Scope = "deny", "network", "default"
		row.Reason = "an address of the host or of a private network, which only its own name in the list opens"
		row.Change, row.Once = change, "sbx run --allow-host "+quoting.Shell(subject)
		return row
	}
	if ruled {
		row.rule(rule)
		if row.Decision = rule.Decision.String(); rule.Decision == policy.Ask {
			switch row.Change = change; {
			case x.Static:
				row.Decision, row.Reason = "deny", row.Reason+"; static mode asks nobody"
			case x.Env.AllHosts:
				row.Decision, row.Reason = "deny", row.Reason+"; nobody is asked while every other address is open"
			}
		}
		x.heard(rule.Accepts, &row)
		return row
	}
	x.decided(&row, h, name, port)
	if row.Decision != decide.Allow.String() {
		row.Change, row.Once = change, "sbx run --allow-host "+quoting.Shell(subject)
	}
	return row
}

// noNetwork answers for a sandbox that reaches no host.
func (x *Explainer) noNetwork(row *Answer, subject string) {
	row.Decision, row.Layer, row.Scope = "deny", "network", "default"
	row.Reason = "the sandbox has no network but a loopback of its own: neither network.hosts nor network.allow gives " +
		"it one"
	for _, key := range [...]string{"network.allow", "network.hosts", "network.mode"} {
		if o := x.Settings.Origins[key]; len(o) > 0 {
			row.from(o[len(o)-1])
		}
	}
	row.Once, row.Change = "sbx run --allow-host "+quoting.Shell(subject), "hosts = [\""+subject+"\"] in [network] of "+
		x.Sources.UserDir+"/config.toml"
	for _, key := range [...]string{"network.allow", "network.hosts", "network.mode"} {
		if lock, locked := x.Settings.Locked[key]; locked {
			row.Once, row.Change = "", "only the administrator can: "+lock.String()
		}
	}
}

// decided answers for a host that no rule is about: by the listed hosts, and by whether somebody can be asked.
func (x *Explainer) decided(row *Answer, h peer.Host, name string, port int) {
	v := decide.Decide(decide.Ask{Kind: policy.KindHost, Host: name, Port: port, Op: "connect"}, x.Env)
	row.Decision, row.Layer, row.Reason, row.Scope = v.Decision.String(), "network", v.Reason, "default"
	if v.Decision == decide.Allow && x.mustName(h, port) {
		row.Reason += "; its connections must name it (tls=sni)"
	}
	x.heard(nil, row)
	if o := x.Settings.Origins["network.hosts"]; len(o) > 0 {
		row.from(o[len(o)-1])
	} else if o := x.Settings.Origins["network.allow"]; len(o) > 0 {
		row.from(o[len(o)-1])
	}
}

// likelyPort is a port at which a listed host is open, the commonest first.
func (x *Explainer) likelyPort(h peer.Host) int {
	for _, p := range x.Env.Hosts {
		for _, port := range [...]int{443, 80} {
			if p.Match(h, port, false) {
				return port
			}
		}
		if lo, _ := p.Ports(); lo != 0 && p.Match(h, int(lo), false) {
			return int(lo)
		}
	}
	return 443
}

// mustName says whether connections to a listed host are looked at for its name.
func (x *Explainer) mustName(h peer.Host, port int) bool {
	for _, p := range x.Env.Hosts {
		if p.MatchHost(h) && (p.SNI() || x.Settings.Network.TLS == "sni" && p.WithSNI().SNI() && (port == 80 ||
			port == 443)) {
			return true
		}
	}
	return false
}

func (x *Explainer) overruleHost(r policy.Rule, change string) string {
	if r.Origin.Scope == policy.ScopeSession {
		return change
	}
	return x.overrule(r, "", policy.Connect)
}

// splitHostPort takes HOST, HOST:PORT, [V6]:PORT or the address of a page apart.
func splitHostPort(s string) (string, int) {
	if _, rest, page := strings.Cut(s, "://"); page {
		s, _, _ = strings.Cut(rest, "/")
	}
	h, p, err := net.SplitHostPort(s)
	if err != nil {
		return strings.Trim(s, "[]"), 0
	}
	n, err := strconv.ParseUint(p, 10, 16)
	if err != nil {
		return s, 0
	}
	return h, int(n)
}

// KindOf says what a word without a --kind is: by its form, or by what is there. It is not sure of a name that could be
// a host's and is here too, which then is a path; nor of one that is not here and has no form of a host's, which is "".
func KindOf(word, cwd string) (kind policy.Kind, sure bool) {
	switch {
	case strings.HasPrefix(word, "@"):
		return policy.KindSocket, true
	case word == "" || word == "." || word == ".." || strings.ContainsRune("/~$", rune(word[0])),
		strings.HasPrefix(word, "./"), strings.HasPrefix(word, "../"):
		return policy.KindPath, true
	}
	_, err := peer.ParsePattern(word)
	switch {
	case isHere(word, cwd):
		return policy.KindPath, err != nil
	case err == nil && peer.HasForm(word), err != nil && wrongHost(word):
		return policy.KindHost, true
	case err == nil:
		return "", false
	}
	return policy.KindPath, true
}

// kindOf is the option that a command about a host needs where its name does not say that it is one.
func kindOf(pattern string) string {
	if peer.HasForm(pattern) {
		return ""
	}
	return " --kind host"
}

// isHere says whether a directory has a name, or one that *.x is about.
func isHere(word, dir string) bool {
	if !strings.HasPrefix(word, "*.") {
		return host.Exists(path.Join(dir, word))
	}
	list, _ := os.ReadDir(dir)
	return slices.ContainsFunc(list, func(e os.DirEntry) bool { return strings.HasSuffix(e.Name(), word[1:]) })
}

// wrongHost says whether a word that no host has is nonetheless one that was meant so; the parser says what is wrong.
func wrongHost(word string) bool {
	first, _, slash := strings.Cut(word, "/")
	if _, err := netip.ParseAddr(first); err == nil || strings.Contains(word, "://") {
		return true
	}
	return !slash && word[0] != '.' && strings.ContainsAny(word, ".:")
}

// Ambiguous is the error about a word of which KindOf is not sure.
func Ambiguous(word string) error {
	return option.Wrong(quoting.Quote(word)+" may be a file or a host",
		"write "+quoting.Shell("./"+word)+" for what is here, or --kind host for a host of that name")
}
