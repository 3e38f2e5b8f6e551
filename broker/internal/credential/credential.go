//go:build linux

// Package credential grants a run the use of credentials that are never inside: from settings and --with to what
// sbx-proxy is told, what stands for the credentials inside, and the record of their use. It must never let a value
// into the sandbox, into an argument list or into an environment, nor parse what a program inside has sent: sbx-proxy
// does. live makes the grants of a run, hands them to its network, and closes them.
package credential

import (
	"cmp"
	"crypto/rand"
	"fmt"
	"net/netip"
	"path"
	"slices"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/internal/host"
	"sbx.example/sbx/broker/internal/launch"
	"sbx.example/sbx/broker/internal/network"
	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/program"
	"sbx.example/sbx/broker/internal/quoting"
	"sbx.example/sbx/broker/internal/request"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/mark"
	"sbx.example/sbx/shared/proxied"
)

// Caller is what of a run its credentials follow from, besides the settings.
type Caller struct {
	Env     []string
	Denied  func(h peer.Host, port int) bool
	Warn    func(string)
	Refused func(line string, failed bool) // is told what was turned away, and what did not work
	Asks    bool                           // each request is decided about, see Decide
	Record  string                         // the file for what endpoints are asked; empty: none
	Marks   []mark.Mark                    // of decoys: a request that has one is refused
	Marked  func(decoy, server string)     // is told of such a request
	Sets    func(variable string) bool     // somebody gives it to the program by its name
}

// Grants are the credentials of one run. Nil ones are none.
type Grants struct {
	by      Caller
	known   map[string]policy.Credential
	file    program.Program
	shell   []string // the environment of commands that print a value
	list    []granted
	sealed  string   // the folder of values that sbx keeps itself
	java    string   // the host's list of whom Java trusts; "": none that can be added to
	names   []string // for the status line
	files   []shown
	gitKeys [][2]string
	sockets []socket
	folders []folder
	ports   uint16 // that were given away from firstPort on
	sites   []proxied.Site
	listen  []proxied.Listener
	at      []netip.AddrPort // where each of them listens
	Service
}

// granted is one credential.
type granted struct {
	policy.Credential
	placeholder string
	key         string // of an access key: what stands for its secret, where placeholder stands for its id
}

// shown is a file of tools with what stands in it.
type shown struct {
	*file
	list []entry
}

// firstPort is where the first service that is reached by an address of its own listens inside.
const firstPort = 48480

// Names of files in the session's folder, which are below /run/sbx inside.
const (
	inside     = "/run/sbx/"
	caFile     = "ca.pem"        // the session's authority alone
	bundleFile = "ca-bundle.pem" // the same behind the host's list
	javaFile   = "ca-java"       // the same behind the list of the host's Java
)

// New grants what the settings name, and shows the placeholders. Nothing is started.
func New(by Caller, s request.Settings, in *planner.Input) (*Grants, error) {
	if by.Record != "" && len(s.Network.Endpoints) == 0 {
		return nil, &planner.Refusal{What: "--record writes down what endpoints are asked, and this run has none",
			Hint: "--endpoint NAME grants one"}
	}
	if len(s.Network.With)+len(s.Network.Endpoints) == 0 {
		return nil, nil
	}
	if s.Network.Mode == "none" {
		return nil, &planner.Refusal{What: "--with and --endpoint let a run reach hosts, and network.mode = none (" +
			s.Origin("network.mode") + ") forbids all", Hint: "leave one of the two out; without --net nothing else is open"}
	}
	from := request.Programs(by.Env, s, in)
	g := &Grants{by: by, known: s.Credentials, sealed: s.Vars.XDGStateHome + "/sbx/" + policy.SecretsFolder,
		shell: program.Environment(by.Env)}
	var err error
	if g.file, err = launch.FindProxy(from); err != nil {
		return nil, &planner.Refusal{What: "--with and --endpoint need sbx-proxy", Err: err,
			Hint: "install it beside sbx (make install)"}
	}
	for _, name := range distinct(s.Network.With) {
		first := len(g.sites)
		err := g.add(name, s.Origin("network.with"), in)
		if err == nil {
			err = g.bound(s, first, "credential "+name, g.known[name].Origin)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, name := range distinct(s.Network.Endpoints) {
		e, ok := s.Endpoints[name]
		if !ok {
			return nil, &planner.Refusal{What: "no endpoint is called " + quoting.Quote(name) + " (" +
				s.Origin("network.endpoints") + ")", Hint: "[endpoint." + name +
				"] in ~/.config/sbx/config.toml makes one (docs/credentials.md)"}
		}
		first := len(g.sites)
		err := g.addEndpoint(e, in)
		if err == nil {
			err = g.bound(s, first, "endpoint "+name, e.Origin)
		}
		if err != nil {
			return nil, err
		}
	}
	for _, site := range g.sites {
		if h, err := peer.Parse(site.Host); err != nil || by.Denied(h, int(site.Port)) {
			return nil, &planner.Refusal{What: "a rule denies " + quoting.Quote(site.Host) +
				", to which a credential of this run goes",
				Hint: "sbx why " + quoting.Quote(site.Host) + " says which"}
		}
	}
	g.showFiles(in)
	g.showGit(in)
	g.trust(in)
	return g, nil
}

func distinct(names []string) []string { return slices.Compact(slices.Sorted(slices.Values(names))) }

// secret makes a credential known to sbx-proxy, and returns it with what stands for it inside.
func (g *Grants) secret(name, why string, in *planner.Input) (granted, kind, error) {
	c, ok := g.known[name]
	if !ok {
		return granted{}, kind{}, &planner.Refusal{What: "no credential is called " + quoting.Quote(name) + " (" + why + ")",
			Hint: "sbx secret list shows those that there are, sbx secret add makes one"}
	}
	k := kindOf(cmp.Or(c.Kind, c.Name))
	if len(c.AWSSigV4) > 0 {
		k = kind{} // whatever it is called
	}
	if c.Kind != "" && len(k.at) == 0 {
		return granted{}, k, &planner.Refusal{What: "credential " + c.Name + " (" + c.Origin.String() + "): kind " +
			quoting.Quote(c.Kind) + " is not known"}
	}
	if len(c.Hosts) == 0 && len(k.at) > 0 && k.at[0].host == anyHost {
		return granted{}, k, &planner.Refusal{What: "credential " + c.Name + " (" + c.Origin.String() + ") has no host",
			Hint: `hosts = ["registry.example"] says where it goes`}
	}
	if c.FromEnv != "" { // its value is not inside
		unsetEnv(in, c.FromEnv)
	}
	i := slices.IndexFunc(g.list, func(x granted) bool { return x.Name == name })
	if i < 0 {
		i = len(g.list)
		x := granted{Credential: c}
		switch {
		case len(c.AWSSigV4) > 0:
			x.placeholder, x.key = accessKey()
		case c.Login == "":
			x.placeholder = placeholder(k.prefix, c.Name)
		}
		g.list = append(g.list, x)
	}
	return g.list[i], k, nil
}

// add grants one credential and shows what stands for it.
func (g *Grants) add(name, why string, in *planner.Input) error {
	x, k, err := g.secret(name, why, in)
	if err != nil {
		return err
	}
	list := places(x.Credential, k)
	if len(list) == 0 {
		return &planner.Refusal{What: "credential " + x.Name + " (" + x.Origin.String() + ") names no host and no place",
			Hint: `hosts = ["api.example"] and header = "Authorization: Bearer {}" say where it goes`}
	}
	g.names = append(g.names, "credential "+x.Name)
	for i, p := range list {
		if p.basic && p.user == "" {
			return &planner.Refusal{What: "credential " + x.Name + " (" + x.Origin.String() +
				") is a password and names no user", Hint: `basic = "USER" says whose it is`}
		}
		site, err := g.site(p.host)
		if err != nil {
			return err
		}
		s := &g.sites[site]
		s.Places = append(s.Places, p.proxied(x.Name))
		if x.Login != "" { // its placeholder is not known here
			if p.basic && k.helper != "" {
				g.git(p.host, k.helper)
			}
			continue
		}
		if p.basic {
			g.git(p.host, printing(p.user, x.placeholder))
			g.show(netrc(), entry{p, x})
		}
		if k.file != nil && p.basic == k.at[0].basic { // its table may name another place
			g.show(k.file, entry{p, x})
		}
		if i == 0 && len(k.base) > 0 {
			s.Versioned = k.versioned
			address := "http://" + g.own(site).String()
			for _, b := range k.base {
				setEnv(in, b.variable, address+b.path)
			}
		}
	}
	switch {
	case x.Login != "":
		return g.addLogin(x, cmp.Or(x.LoginFolder, k.folder), in)
	case x.key != "":
		g.showKey(x, in)
		return nil
	}
	for _, name := range append(slices.Clone(x.Env), k.env...) {
		setEnv(in, name, x.placeholder)
	}
	for _, v := range k.fixed {
		setEnv(in, v[0], v[1])
	}
	return nil
}

func (p place) proxied(secret string) proxied.Place {
	return proxied.Place{Secret: secret, Header: p.header, Format: p.format, Basic: p.basic, User: p.user,
		AnyUser: p.anyUser, Query: p.query, AWS: p.aws}
}

// show puts a credential into a file of tools.
func (g *Grants) show(f *file, e entry) {
	i := slices.IndexFunc(g.files, func(x shown) bool { return x.name == f.name })
	if i < 0 {
		i = len(g.files)
		g.files = append(g.files, shown{file: f})
	}
	g.files[i].list = append(g.files[i].list, e)
}

// showFiles has the files of tools stand inside.
func (g *Grants) showFiles(in *planner.Input) {
	for _, f := range g.files {
		in.Copies = append(in.Copies, planner.Copy{Path: inside + f.name,
			Text: plan.Text{Name: strings.ReplaceAll(f.name, "/", "-"), Text: f.text(f.list)}})
		for _, v := range f.variables {
			setEnv(in, v[0], inside+v[1])
		}
	}
}

// git has git find the password of a host. What git is told elsewhere about that host's passwords is not asked first.
func (g *Grants) git(host, helper string) {
	key := "credential.https://" + host + ".helper"
	g.gitKeys = append(g.gitKeys, [2]string{key, ""}, [2]string{key, helper})
}

// printing is a helper of git's that says one password.
func printing(user, placeholder string) string {
	return "!f() { test \"$1\" = get && echo username=" + user + " && echo password=" + placeholder + "; }; f"
}

// showGit passes what git is told in the environment, behind what is there already.
func (g *Grants) showGit(in *planner.Input) {
	if len(g.gitKeys) == 0 {
		return
	}
	n, _ := strconv.Atoi(host.Lookup(in.Env, "GIT_CONFIG_COUNT"))
	for _, kv := range g.gitKeys {
		setEnv(in, fmt.Sprintf("GIT_CONFIG_KEY_%d", n), kv[0])
		setEnv(in, fmt.Sprintf("GIT_CONFIG_VALUE_%d", n), kv[1])
		n++
	}
	setEnv(in, "GIT_CONFIG_COUNT", strconv.Itoa(n))
}

// places are where a credential goes: what its table says before what is known of its kind.
func places(c policy.Credential, k kind) []at {
	var own place
	switch {
	case c.Header != "":
		name, format, _ := strings.Cut(c.Header, ":")
		own = header(name, strings.TrimSpace(format))
	case c.Basic != "":
		own = place{basic: true, user: c.Basic}
	case c.Query != "":
		own = place{query: c.Query}
	case len(c.AWSSigV4) > 0:
		own = place{aws: true}
	case c.Login != "" && !(k.login && len(c.Hosts) == 0): // RFC 6750, 2.1
		own = header("Authorization", "Bearer {}")
	default:
		if len(c.Hosts) == 0 || len(k.at) == 0 {
			if len(c.Hosts) == 0 {
				return k.at
			}
			own = header("Authorization", "Bearer {}")
			break
		}
		own = k.at[0].place
	}
	hosts := c.Hosts
	if len(hosts) == 0 {
		for _, a := range k.at {
			hosts = append(hosts, a.host)
		}
	}
	var out []at
	for _, h := range slices.Compact(hosts) {
		out = append(out, at{h, own})
	}
	return out
}

// usualPort is that of a server whose name stands alone.
const usualPort = 443

// site finds or makes the one of "host" or "host:port", with a listener at its port.
func (g *Grants) site(server string) (int, error) {
	name, port, has := strings.Cut(server, ":")
	n := uint16(usualPort)
	if has {
		var err error
		if n, err = peer.ParsePort(port); err != nil {
			return 0, err
		}
	}
	if i := slices.IndexFunc(g.sites, func(s proxied.Site) bool {
		return s.Budget == nil && s.Host == name && s.Port == n
	}); i >= 0 {
		return i, nil
	}
	g.sites = append(g.sites, proxied.Site{Host: name, Port: n})
	if !slices.ContainsFunc(g.listen, func(l proxied.Listener) bool { return l.Site == proxied.AnySite && l.Port == n }) {
		g.listen = append(g.listen, proxied.Listener{Port: n, Site: proxied.AnySite})
		g.at = append(g.at, netip.AddrPortFrom(netip.MustParseAddr(network.ServedAddress), n))
	}
	return len(g.sites) - 1, nil
}

// own gives a site an address inside at which it is spoken to without TLS. It is 127.0.0.1: some tools take no other
// for their own machine.
func (g *Grants) own(site int) netip.AddrPort {
	a := netip.AddrPortFrom(netip.AddrFrom4([4]byte{127, 0, 0, 1}), firstPort+g.ports)
	g.ports++
	g.listen = append(g.listen, proxied.Listener{Port: a.Port(), Site: site})
	g.at = append(g.at, a)
	return a
}

// placeholder is another one in each session.
func placeholder(prefix, name string) string {
	return prefix + "sbx-placeholder-" + name + "-" + strings.ToLower(rand.Text())
}

// setEnv sets a variable of the program's.
func setEnv(in *planner.Input, name, value string) {
	unsetEnv(in, name)
	in.Env = append(in.Env, name+"="+value)
}

func unsetEnv(in *planner.Input, name string) {
	in.Env = slices.DeleteFunc(in.Env, func(v string) bool { return strings.HasPrefix(v, name+"=") })
}

// trust has tools inside trust the session's certificate authority. The files are written once sbx-proxy has made it.
func (g *Grants) trust(in *planner.Input) {
	if !slices.ContainsFunc(g.sites, func(s proxied.Site) bool { return s.Budget == nil }) {
		return // no connection inside is TLS
	}
	for _, name := range []string{caFile, bundleFile} {
		in.Copies = append(in.Copies, planner.Copy{Path: inside + name, Text: plan.Text{Name: name}})
	}
	for _, file := range bundles() {
		if canon, _, st, err := host.Resolve(in.FS, file); err == nil && st.Type == host.File {
			in.Copies = append(in.Copies, planner.Copy{Path: canon, Text: plan.Text{Name: bundleFile}, Over: true})
			break
		}
	}
	if g.java = javaStore(in.FS); g.java != "" {
		in.Copies = append(in.Copies, planner.Copy{Path: g.java, Text: plan.Text{Name: javaFile}, Over: true})
	}
	for _, name := range caVariables() {
		setEnv(in, name, inside+bundleFile)
	}
	setEnv(in, "NODE_EXTRA_CA_CERTS", inside+caFile)
}

// Names are for the status line.
func (g *Grants) Names() []string {
	if g == nil {
		return nil
	}
	return g.names
}

// Served is what the run's network serves; nil is nothing.
func (g *Grants) Served() *network.Served {
	if g == nil {
		return nil
	}
	s := &network.Served{Listen: g.at, Start: g.start, Changed: g.changed}
	for _, x := range g.sites {
		if x.Budget == nil {
			s.Names = append(s.Names, x.Host)
		}
	}
	return s
}

// server is a site as people write it.
func server(host string, port uint16) string {
	if port == usualPort {
		return host
	}
	return host + ":" + strconv.Itoa(int(port))
}

func etc(dir, name string) string { return path.Join(dir, "etc", name) }
