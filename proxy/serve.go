//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"log"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"sbx.example/sbx/shared/proxied"
)

// proxy serves the listeners of one session.
type proxy struct {
	conf    *proxied.Config
	out     *reports
	orders  *orders
	secrets []secret
	logins  []*login
	ca      *authority
	sites   []*site
	record  *recorder // of endpoints; nil: none
	bodies  bodies
	crowd   crowd
	// upstream asks the server of a site
	upstream func(*proxied.Site) http.RoundTripper
}

// prepare makes the sites and the certificate authority.
func (p *proxy) prepare() error {
	var hosts []string
	p.bodies, p.crowd = newBodies(), newCrowd()
	for i := range p.conf.Sites {
		s := &p.conf.Sites[i]
		for _, at := range s.Places {
			if p.secret(at.Secret) == nil {
				return errors.New("BUG(sbx): a site names a secret that was not handed over")
			}
		}
		for _, at := range s.Logins {
			if p.login(at.Secret) == nil {
				return errors.New("BUG(sbx): a site names a login that was not handed over")
			}
		}
		if s.Budget == nil { // the others are endpoints, which have an address each and no name
			hosts = append(hosts, s.Host)
		}
		p.sites = append(p.sites, newSite(p, s, i))
	}
	if len(hosts) == 0 {
		return nil
	}
	var err error
	p.ca, err = newAuthority(hosts)
	return err
}

// read takes the value of a secret, or what was kept of a login.
func (p *proxy) read(f *os.File, s proxied.Secret) error {
	if len(s.Fields) > 0 {
		l, err := readLogin(f, s, p.out, p.orders.over)
		p.logins = append(p.logins, l)
		return err
	}
	defer f.Close()
	x, err := readSecret(f, s)
	p.secrets = append(p.secrets, x)
	return err
}

// secret finds one by its name; of a login it is the token that requests carry.
func (p *proxy) secret(name string) *secret {
	for i := range p.secrets {
		if p.secrets[i].Name == name {
			return &p.secrets[i]
		}
	}
	if l := p.login(name); l != nil {
		return l.secrets()[0]
	}
	return nil
}

func (p *proxy) login(name string) *login {
	for _, l := range p.logins {
		if l.Name == name {
			return l
		}
	}
	return nil
}

// known are all secrets and tokens.
func (p *proxy) known() (out []*secret) {
	for i := range p.secrets {
		out = append(out, &p.secrets[i])
	}
	for _, l := range p.logins {
		out = append(out, l.secrets()...)
	}
	return out
}

// site finds the one of a host at a port.
func (p *proxy) site(host string, port uint16) *site {
	for _, s := range p.sites {
		if s.Budget == nil && s.Port == port && strings.EqualFold(s.Host, host) {
			return s
		}
	}
	return nil
}

// maxHeader bounds the head of a request.
const maxHeader = 64 << 10

// listen serves one listener.
func (p *proxy) listen(l net.Listener, at proxied.Listener) {
	s := &http.Server{ReadHeaderTimeout: time.Minute, IdleTimeout: 5 * time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: log.New(nowhere{}, "", 0), ConnState: p.crowd.left,
		HTTP2: &http.HTTP2Config{MaxConcurrentStreams: maxStreams}}
	l = admitted{l, p.crowd.conns}
	if at.Site != proxied.AnySite {
		s.Handler = p.sites[at.Site].versioned()
		if name := p.sites[at.Site].endpoint(); name != "" {
			s.Handler = p.record.around(name, s.Handler)
		}
		s.Handler = p.crowd.around(s.Handler)
		_ = s.Serve(l)
		return
	}
	s.Handler = p.crowd.around(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.route(w, r, at.Port)
	}))
	hands := &handshakes{Listener: l, p: p, port: at.Port, ready: make(chan *tls.Conn), done: make(chan struct{})}
	go hands.run()
	_ = s.Serve(hands)
}

// route sends a request to the site that its connection was made to, and no other: a client that names another host
// now has read the certificate of the first.
func (p *proxy) route(w http.ResponseWriter, r *http.Request, port uint16) {
	name := r.TLS.ServerName
	host, named := r.Host, port
	if h, n, err := net.SplitHostPort(r.Host); err == nil {
		k, err := strconv.ParseUint(n, 10, 16)
		if host, named = h, uint16(k); err != nil {
			named = 0
		}
	} else if port != 443 {
		named = 443
	}
	s := p.site(name, port)
	switch {
	case r.Method == http.MethodConnect:
		p.refuse(w, proxied.Use{Host: name, Port: port, Method: r.Method, Status: http.StatusMethodNotAllowed,
			Refused: "CONNECT to " + r.Host + " over a connection to " + name})
	case s == nil || !strings.EqualFold(host, name) || named != port:
		p.refuse(w, proxied.Use{Host: name, Port: port, Method: r.Method, Status: http.StatusMisdirectedRequest,
			Refused: "a request for " + r.Host + " over a connection to " + name})
	default:
		s.ServeHTTP(w, r)
	}
}

// refuse answers in sbx's own words, and has it recorded.
func (p *proxy) refuse(w http.ResponseWriter, u proxied.Use) {
	p.out.use(u)
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	http.Error(w, "sbx: refused: "+u.Refused, u.Status)
}

// nowhere is where the server's own messages go: what matters of them is reported.
type nowhere struct{}

func (nowhere) Write(b []byte) (int, error) { return len(b), nil }

// handshakes are the connections of a listener once TLS stands.
type handshakes struct {
	net.Listener
	p     *proxy
	port  uint16
	ready chan *tls.Conn
	done  chan struct{}
}

// maxHandshakes bounds those that are under way.
const maxHandshakes = 256

// handshakePatience is how long a client may take.
const handshakePatience = 30 * time.Second

func (h *handshakes) run() {
	slots := make(chan struct{}, maxHandshakes)
	defer close(h.done)
	for {
		c, err := h.Listener.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // too many files are open: some will be closed
			time.Sleep(10 * time.Millisecond)
			continue
		}
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			t := h.shake(c)
			if t != nil {
				select {
				case h.ready <- t:
					return
				case <-h.done:
					t.Close()
				}
			}
			<-h.p.crowd.conns
		}()
	}
}

// shake answers for a host that was granted, and for no other.
func (h *handshakes) shake(c net.Conn) *tls.Conn {
	name := ""
	t := tls.Server(c, &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		GetCertificate: func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
			name = hello.ServerName
			s := h.p.site(name, h.port)
			if s == nil {
				return nil, errors.New("no such site")
			}
			return h.p.ca.leaf(s.Host)
		}})
	ctx, cancel := context.WithTimeout(context.Background(), handshakePatience)
	defer cancel()
	err := t.HandshakeContext(ctx)
	if err == nil {
		return t
	}
	c.Close()
	switch {
	case h.p.site(name, h.port) == nil:
		h.p.out.use(proxied.Use{Host: name, Port: h.port, Refused: "a connection that names no host that was granted"})
	case distrusts(err):
		h.p.out.use(proxied.Use{Host: name, Port: h.port, Failed: "the client does not trust this session's certificates: " +
			"it brings its own list or pins " + name + " (SSL_CERT_FILE inside names the list that has them)"})
	}
	return nil
}

// distrusts says whether the client has ended the handshake because of the certificate.
func distrusts(err error) bool {
	text := err.Error()
	return strings.HasPrefix(text, "remote error: ") && (strings.Contains(text, "certificate") ||
		strings.Contains(text, "unknown authority"))
}

func (h *handshakes) Accept() (net.Conn, error) {
	select {
	case t := <-h.ready:
		return t, nil
	case <-h.done:
		return nil, net.ErrClosed
	}
}
