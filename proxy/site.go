//go:build linux

package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"sbx.example/sbx/proxy/sigv4"
	"sbx.example/sbx/shared/proxied"
)

// site hands requests on to one server outside.
type site struct {
	*proxied.Site
	p         *proxy
	index     int
	authority string // of its URLs
	forward   *httputil.ReverseProxy
	meter     *meter // nil: nobody counts
}

func newSite(p *proxy, conf *proxied.Site, index int) *site {
	s := &site{Site: conf, p: p, index: index, authority: conf.Host}
	if usual := uint16(443); conf.Plain && conf.Port != 80 || !conf.Plain && conf.Port != usual {
		s.authority = net.JoinHostPort(conf.Host, strconv.Itoa(int(conf.Port)))
	}
	s.forward = &httputil.ReverseProxy{Rewrite: s.rewrite, Transport: p.upstream(conf), FlushInterval: -1,
		BufferPool: &buffers{}, ModifyResponse: s.answered, ErrorHandler: s.failed,
		ErrorLog: log.New(nowhere{}, "", 0)}
	if conf.Budget != nil {
		s.meter = &meter{Budget: conf.Budget, clocked: time.Now}
	}
	return s
}

// exchange is what is known of one request while it is under way.
type exchange struct {
	site   int
	used   []*secret
	sent   []string  // the credentials whose uses are on record without what came of them
	cover  []covered // what must not come back of this request
	login  *login    // whose token endpoint is asked; nil: none
	issued bool      // it has issued tokens
	leave  func()    // gives the turn to ask it to others; nil: there was none to take
	digest string    // of the request to it, where others may make the same
	charge *charge   // of an endpoint that counts
	piece  *piece    // of the answer; nil: all

	signer   *secret         // the access key whose placeholder has signed it; nil: none
	verified *sigv4.Verified // its signature, if that is right and for what was granted
	unsigned string          // else why it is not signed anew
	places   places          // for its body
}

type exchangeKey struct{}

// ServeHTTP carries out what the site's rules allow.
func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	refuse := func(status int, why string) { s.refuse(w, r, status, why) }
	if status, why := s.unfit(r); why != "" {
		refuse(status, why)
		return
	}
	if s.marked(w, r) {
		return
	}
	x := &exchange{site: s.index, login: s.loginAt(r)}
	ctx, end, why := s.p.orders.begin(w, r, x)
	defer end()
	defer x.places.leave()
	if why != "" {
		refuse(http.StatusForbidden, why)
		return
	}
	ctx = context.WithValue(ctx, exchangeKey{}, x)
	r = r.WithContext(ctx)
	if s.meter != nil {
		var ok bool
		if ctx, ok = s.admit(ctx, w, r, x); !ok {
			return
		}
		defer s.end(x)
	}
	if x.login != nil {
		if !x.ask(s, w, r) {
			return
		}
		defer x.leave()
		ctx, end = s.p.orders.alone(ctx, x)
		defer end()
	} else if why := s.newest(ctx, r); why != "" {
		refuse(http.StatusForbidden, why)
		return
	}
	if r = r.WithContext(ctx); s.signed(w, r, x) {
		s.carry(w, r)
	}
}

// unfit says why a request is not made whatever has been used and decided; "" if nothing in its head is against it.
func (s *site) unfit(r *http.Request) (status int, why string) {
	refused := s.unallowed(r)
	switch {
	case r.Method == http.MethodConnect:
		return http.StatusMethodNotAllowed, "CONNECT to " + r.Host
	case r.URL.Opaque != "" || !strings.HasPrefix(r.URL.Path, "/"): // what is in it would not be looked at
		return http.StatusBadRequest, "a target that has no path"
	case refused != "":
		return http.StatusForbidden, refused
	case upgrades(r) && !strings.EqualFold(r.Header.Get("Upgrade"), "websocket"):
		return http.StatusNotImplemented, "a change of the protocol to another than websocket"
	case len(s.Logins) > 0 && ambiguousPath(r) != "":
		return http.StatusForbidden, ambiguousPath(r) + ", and the host has a token endpoint"
	case s.meter != nil && ambiguous(r) != "":
		return http.StatusForbidden, ambiguous(r) + ", and endpoint " + s.meter.Name + " counts requests by them"
	case s.meter != nil && s.meter.bounded() && upgrades(r):
		return http.StatusNotImplemented, "a websocket: what it uses of endpoint " + s.meter.Name + " cannot be counted"
	}
	return 0, ""
}

// newest has the tokens of logins be those that were issued last, and says why the request is not made. What cannot be
// had, the token endpoint will be asked for.
func (s *site) newest(ctx context.Context, r *http.Request) (why string) {
	for _, at := range s.Places {
		l := s.p.login(at.Secret)
		if l == nil {
			continue
		}
		_ = l.newest(ctx, true)
		if !l.hasEnded() {
			continue
		}
		for _, t := range l.secrets() {
			if mentions(r, t.Placeholder) {
				return "credential " + l.Name + " was removed"
			}
		}
	}
	return ""
}

// refuse answers a request that is not made.
func (s *site) refuse(w http.ResponseWriter, r *http.Request, status int, why string) {
	s.p.refuse(w, proxied.Use{Host: s.Host, Port: s.Port, Method: r.Method, Status: status, Refused: why})
}

// fail answers a request that could not be made.
func (s *site) fail(w http.ResponseWriter, r *http.Request, status int, why string) {
	u := proxied.Use{Host: s.Host, Port: s.Port, Method: r.Method, Status: status, Failed: why}
	if !s.came(r, u) {
		s.p.out.use(u)
	}
	http.Error(w, "sbx: "+s.Host+": "+why, status)
}

// versioned serves the site to clients that were told its address. Tools disagree on whether that ends in the API's
// version: paths from which it is missing get it. What is judged from here on is the path that leaves.
func (s *site) versioned() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		for _, full := range s.Versioned {
			version, rest, _ := strings.Cut(full[1:], "/")
			if short := "/" + rest; r.URL.Path == short || strings.HasPrefix(r.URL.Path, short+"/") {
				r.URL.Path = "/" + version + r.URL.Path
				if r.URL.RawPath != "" {
					r.URL.RawPath = "/" + version + r.URL.RawPath
				}
				break
			}
		}
		if s.Prefix != "" && strings.HasPrefix(r.URL.Path, "/") {
			raw := s.Prefix + r.URL.EscapedPath()
			whole, err := url.PathUnescape(raw)
			if err != nil {
				s.refuse(w, r, http.StatusBadRequest, "its path cannot be read")
				return
			}
			r.URL.Path, r.URL.RawPath = whole, raw
		}
		s.ServeHTTP(w, r)
	})
}

// endpoint is the name of the one that the site is; "" for none.
func (s *site) endpoint() string {
	if s.meter == nil {
		return ""
	}
	return s.meter.Name
}

func upgrades(r *http.Request) bool { return r.Header.Get("Upgrade") != "" }

// rewrite makes the request that leaves.
func (s *site) rewrite(r *httputil.ProxyRequest) {
	scheme := "https"
	if s.Plain {
		scheme = "http"
	}
	out := r.Out
	out.URL.Scheme, out.URL.Host, out.Host = scheme, s.authority, s.authority
	out.URL.RawQuery = r.In.URL.RawQuery // as the client wrote it
	x := out.Context().Value(exchangeKey{}).(*exchange)
	x.used = s.p.put(s, out)
	if !slices.Equal(out.Header["Accept-Encoding"], []string{"identity"}) {
		// Go asks for gzip then and unpacks it: what the server sends back can be looked at.
		out.Header.Del("Accept-Encoding")
	}
	out.Header.Del("Sec-Websocket-Extensions") // which pack what is sent
	x.widen(out, s.p.known())
	if x.verified != nil { // last: what is signed does not change any more
		x.cover = covering(x.cover, x.signer, x.sign(out))
		x.used = append(x.used, x.signer)
	}
	use := func(k *secret) proxied.Use {
		return proxied.Use{Secret: k.Name, Host: s.Host, Port: s.Port, Method: out.Method, Strayed: true}
	}
	for _, k := range s.p.strayed(out) {
		u := use(k)
		if k == x.signer {
			u.Unsigned = x.unsigned
		}
		s.p.out.use(u)
	}
	if out.Body != nil && out.Body != http.NoBody {
		out.Body = &watched{ReadCloser: out.Body, list: s.p.known(), found: func(k *secret) { s.p.out.use(use(k)) }}
	}
	for _, k := range x.used {
		s.sends(x, out, k.Name)
	}
	x.spell(out)
}

// sends reports that a request has the value of a credential, before any of it leaves.
func (s *site) sends(x *exchange, r *http.Request, name string) {
	if slices.Contains(x.sent, name) {
		return
	}
	x.sent = append(x.sent, name)
	s.p.out.use(proxied.Use{Secret: name, Host: s.Host, Port: s.Port, Method: r.Method, Endpoint: s.endpoint(),
		Sent: true})
}

// came reports what has come of a request, for each credential that was sent with it, and says whether any was.
func (s *site) came(r *http.Request, u proxied.Use) bool {
	x := r.Context().Value(exchangeKey{}).(*exchange)
	sent := x.sent
	x.sent = nil
	u.Host, u.Port, u.Method = s.Host, s.Port, r.Method
	for _, name := range sent {
		u.Secret, u.Issued = name, x.issued && name == x.login.Name
		s.p.out.use(u)
	}
	return len(sent) > 0
}

// answered looks at what comes back, before any of it goes on.
func (s *site) answered(r *http.Response) error {
	x := r.Request.Context().Value(exchangeKey{}).(*exchange)
	if x.login != nil { // first: a token that is covered could not be kept
		err := x.tokens(s, r)
		x.leave() // however long the client takes to read
		if err != nil {
			return err
		}
	}
	s.came(r.Request, proxied.Use{Status: r.StatusCode, Endpoint: s.endpoint()})
	if err := r.Request.Context().Err(); err != nil { // it was cut: what the server makes of a part is no answer
		return err
	}
	x.hide(r, s.p.known())
	if x.piece != nil {
		if err := x.piece.cut(r); err != nil {
			return err
		}
	}
	if s.meter != nil {
		s.count(r, x)
	}
	return nil
}

// failed answers where the server could not be asked.
func (s *site) failed(w http.ResponseWriter, r *http.Request, err error) {
	if x := r.Context().Value(exchangeKey{}).(*exchange); x.leave != nil {
		x.leave()
	}
	if errors.Is(err, errMarked) { // which is reported
		s.came(r, proxied.Use{Left: errMarked.Error()})
		http.Error(w, "sbx: refused: "+errMarked.Error(), http.StatusForbidden)
		return
	}
	var chunk sigv4.ChunkError
	if errors.As(err, &chunk) {
		s.came(r, proxied.Use{Left: chunk.Error()})
		s.refuse(w, r, http.StatusForbidden, chunk.Error())
		return
	}
	if errors.Is(err, context.Canceled) {
		s.came(r, proxied.Use{Left: "the program has left, or the request was cut"})
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	s.fail(w, r, http.StatusBadGateway, s.why(err))
}

// why words an error of the connection outside. It must hold nothing of the request.
func (s *site) why(err error) string {
	var cert *tls.CertificateVerificationError
	var name *net.DNSError
	var op *net.OpError
	var token tokenError
	var unknown x509.UnknownAuthorityError
	switch {
	case errors.As(err, &token):
		return token.Error()
	case errors.As(err, &cert):
		return "its certificate is not trusted by this host: " + cert.Err.Error()
	case errors.As(err, &unknown):
		return "its certificate is not trusted by this host"
	case errors.Is(err, errPiece):
		return errPiece.Error()
	case errors.Is(err, errDenied):
		return "it leads to " + errDenied.Error()
	case errors.Is(err, errClosed):
		return "it leads to " + errClosed.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "it has not answered in time"
	case errors.As(err, &name):
		return "its name cannot be looked up: " + name.Err
	case errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	}
	return "the connection to it ended"
}

// buffers are what bodies are copied through.
type buffers struct{ pool sync.Pool }

const bufferSize = 64 << 10

func (b *buffers) Get() []byte {
	if x, ok := b.pool.Get().(*[]byte); ok {
		return *x
	}
	return make([]byte, bufferSize)
}

func (b *buffers) Put(x []byte) { b.pool.Put(&x) }
