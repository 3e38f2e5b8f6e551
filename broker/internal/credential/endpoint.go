//go:build linux

package credential

import (
	"cmp"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"

	"sbx.example/sbx/broker/internal/planner"
	"sbx.example/sbx/broker/internal/policy"
	"sbx.example/sbx/broker/internal/policy/peer"
	"sbx.example/sbx/broker/internal/relay"
	"sbx.example/sbx/broker/plan"
	"sbx.example/sbx/shared/proxied"
)

// socket is one of an endpoint, in the session's folder.
type socket struct{ file string }

// addEndpoint gives an endpoint an address inside, and tells tools of it in the words of its API.
func (g *Grants) addEndpoint(e policy.Endpoint, in *planner.Input) error {
	u, err := e.Parse()
	if err != nil {
		return &planner.Refusal{What: "endpoint " + e.Name + " (" + e.Origin.String() + ")", Err: err}
	}
	api := e.API
	for _, k := range kinds() { // the host says it
		if api == "" && len(k.base) > 0 && k.at[0].host == u.Hostname() {
			api = k.name
		}
	}
	k := kindOf(cmp.Or(api, "openai"))
	site := proxied.Site{Host: strings.ToLower(u.Hostname()), Port: usualPort, Plain: u.Scheme == "http",
		Prefix: strings.TrimSuffix(u.EscapedPath(), "/"), Inject: true, Budget: budget(e, k.name),
		Versioned: k.versioned}
	if site.Plain {
		site.Port = 80
	}
	if p := u.Port(); p != "" {
		if site.Port, err = peer.ParsePort(p); err != nil {
			return &planner.Refusal{What: "endpoint " + e.Name + " (" + e.Origin.String() + ")", Err: err}
		}
	}
	key := placeholder(k.prefix, "endpoint-"+e.Name)
	if site.Plain && !loopback(site.Host) {
		return &planner.Refusal{What: "endpoint " + e.Name + " (" + e.Origin.String() +
			"): http:// is for servers of this machine", Hint: "https:// is for others"}
	}
	if e.Credential != "" {
		x, own, err := g.secret(e.Credential, "endpoint "+e.Name+", "+e.Origin.String(), in)
		if err != nil {
			return err
		}
		if x.Login != "" {
			return &planner.Refusal{What: "endpoint " + e.Name + " (" + e.Origin.String() + ") has credential " + x.Name +
				", which is a login", Hint: "--with " + x.Name + " grants it"}
		}
		if x.key != "" {
			return &planner.Refusal{What: "endpoint " + e.Name + " (" + e.Origin.String() + ") has credential " + x.Name +
				", which signs what a program has signed", Hint: "--with " + x.Name + " grants it"}
		}
		x.Hosts = []string{site.Host}
		if x.Header == "" && x.Basic == "" && x.Query == "" && len(own.at) == 0 {
			own = k
		}
		site.Places = []proxied.Place{places(x.Credential, own)[0].proxied(x.Name)}
	}
	g.names = append(g.names, "endpoint "+e.Name)
	g.sites = append(g.sites, site)
	address := "http://" + g.own(len(g.sites)-1).String()
	for _, b := range k.base {
		setEnv(in, b.variable, address)
	}
	for _, name := range k.env {
		setEnv(in, name, key)
	}
	s := socket{file: "endpoint-" + strconv.Itoa(len(g.sockets))}
	g.sockets = append(g.sockets, s)
	g.listen = append(g.listen, proxied.Listener{Site: len(g.sites) - 1})
	in.Grants = append(in.Grants, planner.Grant{Path: plan.EndpointPlace + e.Name, Source: s.file, Mode: planner.Write,
		Explicit: true, Socket: true, Why: "--endpoint"})
	return nil
}

func loopback(name string) bool {
	h, err := peer.Parse(name)
	return err == nil && (h.Name == "localhost" || h.Addr.IsValid() && h.Addr.IsLoopback())
}

// budget is what of an endpoint may be used.
func budget(e policy.Endpoint, api string) *proxied.Budget {
	b := &proxied.Budget{Name: e.Name, API: api, Models: e.Models, Requests: int64(e.Requests), Tokens: int64(e.Tokens),
		Rate: int64(e.Rate)}
	b.Cents, _ = policy.Cents(cmp.Or(e.Money, "0")) // looked at when it was read, like prices
	for model, price := range e.Prices {
		if b.Prices == nil {
			b.Prices = map[string]proxied.Price{}
		}
		in, out, _ := strings.Cut(price, "/")
		var p proxied.Price
		p.In, _ = policy.Cents(in)
		p.Out, _ = policy.Cents(out)
		b.Prices[model] = p
	}
	return b
}

// open makes the sockets of endpoints in the session's folder.
func (g *Grants) open(dir string) (files []*os.File, err error) {
	for _, s := range g.sockets {
		l, err := relay.Listen(path.Join(dir, s.file)) // the session's folder goes as a whole
		if err != nil {
			return files, err
		}
		f, err := l.File()
		l.Close()
		if err != nil {
			return files, err
		}
		files = append(files, f)
	}
	return files, nil
}

// Totals is what this session has used of all endpoints.
func (g *Grants) Totals() (requests, in, out, cents int64) {
	if g == nil {
		return 0, 0, 0, 0
	}
	_, all := g.Spent()
	for _, x := range all {
		requests, in, out, cents = requests+x.Requests, in+x.In, out+x.Out, cents+x.Cents
	}
	return requests, in, out, cents
}

// Spent is what this session has used of each endpoint, by name.
func (s *Service) Spent() (names []string, all map[string]proxied.Spent) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all = map[string]proxied.Spent{}
	for name, x := range s.spent {
		names, all[name] = append(names, name), x
	}
	slices.Sort(names)
	return names, all
}
