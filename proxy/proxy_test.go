//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"filippo.io/age"

	"sbx.example/sbx/shared/mark"
	"sbx.example/sbx/shared/proxied"
)

const (
	real  = "REAL/value+0123456789"
	ghost = "sbx-placeholder-one-abcdefgh"
)

// outside is one server of the world outside that notes what it is asked.
type outside struct {
	*httptest.Server
	mu   sync.Mutex
	seen []*http.Request
	body []string
}

func (o *outside) requests() []*http.Request {
	o.mu.Lock()
	defer o.mu.Unlock()
	return append([]*http.Request(nil), o.seen...)
}

// lab is a proxy between a client inside and servers outside.
type lab struct {
	t       testing.TB
	p       *proxy
	addr    string              // where it listens
	tlsAddr string              // where it listens for all sites
	servers map[string]*outside // by host
	mu      sync.Mutex
	uses    []proxied.Use
	pool    *x509.CertPool // whom a client inside trusts
	key     *age.X25519Identity
	kept    []byte // of a login, sealed to the key
	dir     string // where logins are kept
	keeper  *keeper
	up      *http.Transport
	conf    *proxied.Config
}

// newLab has a credential for one.test; two.test was granted with another one, and three.test with none.
func newLab(t testing.TB, change func(*proxied.Config), answer http.HandlerFunc) *lab {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{t: t, servers: map[string]*outside{}, key: key, dir: t.TempDir()}
	roots := x509.NewCertPool()
	for _, host := range []string{"one.test", "two.test", "three.test"} {
		o := &outside{}
		o.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			b, _ := io.ReadAll(r.Body)
			o.mu.Lock()
			o.seen, o.body = append(o.seen, r), append(o.body, string(b))
			o.mu.Unlock()
			if answer != nil {
				answer(w, r)
			}
		}))
		ca, err := newAuthority([]string{host})
		if err != nil {
			t.Fatal(err)
		}
		leaf, err := ca.leaf(host)
		if err != nil {
			t.Fatal(err)
		}
		roots.AddCert(ca.cert)
		o.TLS = &tls.Config{Certificates: []tls.Certificate{*leaf}}
		o.EnableHTTP2 = true
		o.StartTLS()
		t.Cleanup(o.Close)
		l.servers[host] = o
	}
	conf := &proxied.Config{Sites: []proxied.Site{
		{Host: "one.test", Port: 443, Places: []proxied.Place{{Secret: "one", Header: "Authorization", Format: "Bearer {}"}}},
		{Host: "two.test", Port: 443, Places: []proxied.Place{{Secret: "two", Basic: true, User: "me"}}},
	}, Listeners: []proxied.Listener{{Port: 443, Site: proxied.AnySite}}}
	if change != nil {
		change(conf)
	}
	l.conf, l.up = conf, (&gate{}).transport("", roots)
	l.up.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, _ := net.SplitHostPort(address)
		o := l.servers[host]
		if o == nil {
			return nil, fmt.Errorf("connecting to %s, which nobody was granted", address)
		}
		return (&net.Dialer{}).DialContext(ctx, network, o.Listener.Addr().String())
	}
	t.Cleanup(l.up.CloseIdleConnections)
	l.start()
	return l
}

// start starts a session.
func (l *lab) start() {
	t, conf := l.t, l.conf
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	l.pool = x509.NewCertPool()
	l.p = &proxy{conf: conf, out: &reports{to: w}, upstream: func(*proxied.Site) http.RoundTripper { return l.up },
		orders: newOrders(&reports{to: w}, false), secrets: []secret{
			{proxied.Secret{Name: "one", Placeholder: ghost}, real, nil},
			{proxied.Secret{Name: "two", Placeholder: "sbx-placeholder-two-abcdefgh"}, "SECOND", nil}}}
	for _, s := range conf.Secrets {
		if s.Key != "" {
			l.p.secrets = append(l.p.secrets, secret{Secret: s, aws: &realKey})
			continue
		}
		l.p.logins = append(l.p.logins, l.login(s))
	}
	heard := make(chan struct{})
	go func() {
		defer close(heard)
		l.hear(r)
	}()
	t.Cleanup(func() {
		w.Close()
		<-heard
	})
	if err := l.p.prepare(); err != nil {
		t.Fatal(err)
	}
	l.pool.AddCert(l.p.ca.cert)
	for i, at := range conf.Listeners {
		in, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { in.Close() })
		if i == 0 {
			l.addr = in.Addr().String()
			l.tlsAddr = l.addr
		}
		if at.Site != proxied.AnySite {
			l.addr = in.Addr().String()
		}
		go l.p.listen(in, at)
	}
}

// hear does what sbx does about reports.
func (l *lab) hear(from io.Reader) {
	for s := bufio.NewScanner(from); s.Scan(); {
		var x proxied.Report
		if json.Unmarshal(s.Bytes(), &x) != nil {
			continue
		}
		l.mu.Lock()
		if x.Use != nil {
			l.uses = append(l.uses, *x.Use)
		}
		if x.Issued != nil {
			l.kept = x.Issued.Sealed
		}
		k := l.keeper
		l.mu.Unlock()
		switch {
		case x.Issued != nil:
			l.p.told(k.issued(x.Issued))
		case x.Newer != nil:
			l.p.told(k.newer(x.Newer))
		}
	}
}

// client is one inside that resolves every name to the proxy.
func (l *lab) client(h2 bool) *http.Client {
	tr := &http.Transport{ForceAttemptHTTP2: h2, TLSClientConfig: &tls.Config{RootCAs: l.pool},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, l.addr)
		}}
	if !h2 {
		tr.TLSNextProto = map[string]func(string, *tls.Conn) http.RoundTripper{}
	}
	l.t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
}

// dialTo leads every connection to one address.
func dialTo(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}

// connect speaks TLS to a name without a library in between.
func (l *lab) connect(name string) *tls.Conn {
	l.t.Helper()
	c, err := tls.Dial("tcp", l.addr, &tls.Config{ServerName: name, RootCAs: l.pool})
	if err != nil {
		l.t.Fatal(err)
	}
	l.t.Cleanup(func() { c.Close() })
	_ = c.SetDeadline(time.Now().Add(30 * time.Second))
	return c
}

func (l *lab) do(c *http.Client, method, url string, head map[string]string, body io.Reader) (int, http.Header,
	string) {
	l.t.Helper()
	r, err := http.NewRequest(method, url, body)
	if err != nil {
		l.t.Fatal(err)
	}
	for k, v := range head {
		r.Header.Set(k, v)
	}
	resp, err := c.Do(r)
	if err != nil {
		l.t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		l.t.Fatal(err)
	}
	return resp.StatusCode, resp.Header, string(b)
}

// used waits until a use is reported that is as want says.
func (l *lab) used(what string, want func(proxied.Use) bool) proxied.Use {
	l.t.Helper()
	for end := time.Now().Add(20 * time.Second); ; time.Sleep(time.Millisecond) {
		l.mu.Lock()
		for _, u := range l.uses {
			if want(u) {
				l.mu.Unlock()
				return u
			}
		}
		all := fmt.Sprintf("%+v", l.uses)
		l.mu.Unlock()
		if time.Now().After(end) {
			l.t.Fatalf("%s is not reported: %s", what, all)
		}
	}
}

// unasked wants that no server outside was asked anything, but for those in asked.
func (l *lab) unasked(asked ...string) {
	l.t.Helper()
	for host, o := range l.servers {
		for _, r := range o.requests() {
			if !strings.Contains(strings.Join(asked, " "), host) {
				l.t.Errorf("%s was asked: %s %s %v", host, r.Method, r.URL, r.Header)
			}
		}
	}
}

// The value is put in at its own host, where it belongs, over HTTP/1.1 and HTTP/2.
func TestPutsInWhereItBelongs(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		l := newLab(t, nil, nil)
		c := l.client(h2)
		if status, _, _ := l.do(c, "GET", "https://one.test/a?b=%20c;d", map[string]string{"Authorization": "Bearer " +
			ghost},
			nil); status != 200 {
			t.Fatalf("status %d", status)
		}
		got := l.servers["one.test"].requests()[0]
		if got.Header.Get("Authorization") != "Bearer "+real || got.Host != "one.test" || got.URL.RawQuery != "b=%20c;d" {
			t.Errorf("h2 %v: %s %s %v", h2, got.Host, got.URL, got.Header)
		}
		if h2 != (got.ProtoMajor == 2) && h2 {
			t.Errorf("HTTP/2 inside became %s", got.Proto)
		}
		u := l.used("the use", func(u proxied.Use) bool { return u.Secret == "one" && !u.Sent })
		if u.Host != "one.test" || u.Method != "GET" || u.Status != 200 || u.Strayed {
			t.Errorf("%+v", u)
		}
		l.unasked("one.test")
	}
}

// What stands anywhere else, or at another host, stays a placeholder, and is reported.
func TestStrays(t *testing.T) {
	for name, x := range map[string]struct {
		url  string
		head map[string]string
	}{
		"another host":    {"https://two.test/", map[string]string{"Authorization": "Bearer " + ghost}},
		"another header":  {"https://one.test/", map[string]string{"X-Other": ghost}},
		"the query":       {"https://one.test/?token=" + ghost, nil},
		"the path":        {"https://one.test/" + ghost, nil},
		"basic elsewhere": {"https://two.test/", map[string]string{"Authorization": basic("x", ghost)}},
	} {
		l := newLab(t, nil, nil)
		l.do(l.client(true), "GET", x.url, x.head, nil)
		l.used(name, func(u proxied.Use) bool { return u.Strayed && u.Secret == "one" })
		for host, o := range l.servers {
			for _, r := range o.requests() {
				var b bytes.Buffer
				_ = r.Header.Write(&b)
				if strings.Contains(b.String()+r.URL.String(), real) || strings.Contains(b.String(), basic("x", real)) {
					t.Errorf("%s: %s was sent the value: %s", name, host, b.String())
				}
			}
		}
	}
}

// TestMarks: what has the mark of a decoy in it is not sent, wherever it stands, and is reported; anything else is.
func TestMarks(t *testing.T) {
	const decoy = "ABCDEFGH234567QZ"
	body := func(text string) io.Reader {
		return io.MultiReader(strings.NewReader(text[:9]), strings.NewReader(text[9:]))
	}
	for name, x := range map[string]struct {
		url  string
		head map[string]string
		body io.Reader
		want bool
	}{
		"the query":  {"https://one.test/?q=" + strings.ToLower(decoy), nil, nil, true},
		"the path":   {"https://one.test/" + decoy, nil, nil, true},
		"a header":   {"https://one.test/", map[string]string{"X-Key": "AKIA" + decoy}, nil, true},
		"basic":      {"https://one.test/", map[string]string{"Authorization": basic("x", decoy)}, nil, true},
		"a body":     {"https://one.test/", nil, body("key=" + decoy), true},
		"no mark":    {"https://one.test/?q=" + decoy[1:], nil, body("key=" + decoy[1:]), false},
		"other host": {"https://two.test/", nil, body(strings.Repeat("x", 1<<20) + decoy), true},
	} {
		l := newLab(t, func(c *proxied.Config) { c.Marks = []mark.Mark{{Path: "/h/key", Text: decoy}} }, nil)
		method := "GET"
		if x.body != nil {
			method = "POST"
		}
		status, _, _ := l.do(l.client(false), method, x.url, x.head, x.body)
		if refused := status != http.StatusOK; refused != x.want {
			t.Errorf("%s: status %d", name, status)
		}
		if x.want {
			l.used(name, func(u proxied.Use) bool { return u.Decoy == "/h/key" && u.Refused != "" })
		}
		for host, o := range l.servers {
			for i, r := range o.requests() {
				if strings.Contains(r.URL.String()+o.body[i], decoy) {
					t.Errorf("%s: %s was sent the mark", name, host)
				}
			}
		}
	}
}

// Basic authentication, a query and an address of its own.
func TestPlaces(t *testing.T) {
	l := newLab(t, func(c *proxied.Config) {
		c.Sites[0].Places = []proxied.Place{{Secret: "one", Query: "key"}}
	}, nil)
	c := l.client(false)
	l.do(c, "GET", "https://one.test/?a=1&key="+ghost+"&b=2", nil, nil)
	if q := l.servers["one.test"].requests()[0].URL.RawQuery; q != "a=1&key=REAL%2Fvalue%2B0123456789&b=2" {
		t.Errorf("query %s", q)
	}
	l.do(c, "GET", "https://two.test/", map[string]string{"Authorization": basic("me", "sbx-placeholder-two-abcdefgh")},
		nil)
	if user, pass, _ := l.servers["two.test"].requests()[0].BasicAuth(); user != "me" || pass != "SECOND" {
		t.Errorf("basic %s %s", user, pass)
	}
}

// A connection belongs to the host that its certificate was for. Whatever a request names, nobody else is asked.
func TestOneConnectionOneHost(t *testing.T) {
	auth := "Authorization: Bearer " + ghost + "\r\n"
	for name, x := range map[string]struct {
		text   string
		status string
	}{
		"control":            {"GET / HTTP/1.1\r\nHost: one.test\r\n" + auth, "200"},
		"with its port":      {"GET / HTTP/1.1\r\nHost: one.test:443\r\n" + auth, "200"},
		"another Host":       {"GET / HTTP/1.1\r\nHost: two.test\r\n" + auth, "421"},
		"a host not granted": {"GET / HTTP/1.1\r\nHost: three.test\r\n" + auth, "421"},
		"another port":       {"GET / HTTP/1.1\r\nHost: one.test:8443\r\n" + auth, "421"},
		"absolute form":      {"GET https://three.test/ HTTP/1.1\r\nHost: one.test\r\n" + auth, "421"},
		"absolute, plain":    {"GET http://two.test/ HTTP/1.1\r\nHost: one.test\r\n" + auth, "421"},
		"opaque":             {"GET x:" + ghost + " HTTP/1.1\r\nHost: one.test\r\n" + auth, "400"},
		"opaque, with host":  {"GET https:" + ghost + " HTTP/1.1\r\nHost: one.test\r\n" + auth, "400"},
		"CONNECT":            {"CONNECT three.test:443 HTTP/1.1\r\nHost: three.test:443\r\n" + auth, "405"},
		"CONNECT to itself":  {"CONNECT one.test:443 HTTP/1.1\r\nHost: one.test:443\r\n" + auth, "405"},
		"two hosts":          {"GET / HTTP/1.1\r\nHost: one.test\r\nHost: two.test\r\n" + auth, "400"},
		"no host":            {"GET / HTTP/1.1\r\n" + auth, "400"},
	} {
		l := newLab(t, nil, nil)
		c := l.connect("one.test")
		in := bufio.NewReader(c)
		// twice on the connection, the second time after one that is in order
		for i, text := range []string{"GET /first HTTP/1.1\r\nHost: one.test\r\n", x.text} {
			fmt.Fprintf(c, "%s\r\n", text)
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			if i == 1 && !strings.HasPrefix(resp.Status, x.status) {
				t.Errorf("%s: %s, want %s", name, resp.Status, x.status)
			}
		}
		if x.status == "421" || x.status == "405" || strings.HasPrefix(name, "opaque") {
			l.used(name, func(u proxied.Use) bool { return u.Refused != "" })
		}
		l.unasked("one.test")
		if n := len(l.servers["one.test"].requests()); x.status != "200" && n != 1 {
			t.Errorf("%s: one.test was asked %d times", name, n)
		}
	}
}

// HTTP/2 clients may use a connection for every name that leads to the same address; here it is one for one name.
func TestCoalescing(t *testing.T) {
	l := newLab(t, nil, nil)
	c := l.client(true)
	l.do(c, "GET", "https://one.test/", nil, nil)
	r, _ := http.NewRequest("GET", "https://one.test/", nil)
	r.Host = "two.test" // becomes :authority
	r.Header.Set("Authorization", "Bearer "+ghost)
	resp, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusMisdirectedRequest {
		t.Errorf("%s %s", resp.Proto, resp.Status)
	}
	l.unasked("one.test")
	if n := len(l.servers["one.test"].requests()); n != 1 {
		t.Errorf("%d requests", n)
	}
}

// A name that was not granted gets no certificate, nor does none at all.
func TestNamesThatWereNotGranted(t *testing.T) {
	l := newLab(t, nil, nil)
	for _, name := range []string{"three.test", "", "sub.one.test"} {
		conf := &tls.Config{ServerName: name, InsecureSkipVerify: true}
		if c, err := tls.Dial("tcp", l.addr, conf); err == nil {
			c.Close()
			t.Errorf("%q got a certificate", name)
		}
		l.used("a connection to "+name, func(u proxied.Use) bool { return u.Host == name && u.Refused != "" })
	}
	c := l.connect("one.test") // the control
	if got := c.ConnectionState().PeerCertificates[0].DNSNames; len(got) != 1 || got[0] != "one.test" {
		t.Errorf("a certificate for %q", got)
	}
}

// A client that pins, or brings a list of its own, is named as such.
func TestClientThatPins(t *testing.T) {
	l := newLab(t, nil, nil)
	for _, max := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
		if c, err := tls.Dial("tcp", l.addr, &tls.Config{ServerName: "one.test", RootCAs: x509.NewCertPool(),
			MaxVersion: max}); err == nil {
			c.Close()
			t.Fatal("a client trusts what it does not know")
		}
		l.used("the distrust", func(u proxied.Use) bool { return strings.Contains(u.Failed, "does not trust") })
		l.mu.Lock()
		l.uses = nil
		l.mu.Unlock()
	}
}

// What a request says about its own length in two ways is one request, or none, to the server outside.
func TestSmuggling(t *testing.T) {
	hidden := "GET /hidden HTTP/1.1\r\nHost: one.test\r\nAuthorization: Bearer " + ghost + "\r\n\r\n"
	post := "POST / HTTP/1.1\r\nHost: one.test\r\n"
	for name, text := range map[string]string{
		"length and chunks": post + fmt.Sprintf("Content-Length: %d\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n%s",
			5+len(hidden), hidden),
		"chunks twice":      post + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n0\r\n\r\n",
		"chunked, spelled":  post + "Transfer-Encoding: xchunked\r\nContent-Length: 4\r\n\r\nbody",
		"two lengths":       post + "Content-Length: 4\r\nContent-Length: 5\r\n\r\nbody!",
		"a signed length":   post + "Content-Length: +4\r\n\r\nbody",
		"a space before it": post + "Content-Length : 4\r\n\r\nbody",
		"folded":            post + "X: a\r\n Content-Length: 4\r\n\r\n",
		"a bare feed":       post + "Content-Length: 0\nX: y\r\n\r\n",
		"a size too long":   post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\nx",
		"a size with more": post + "Transfer-Encoding: chunked\r\n\r\n4;" + strings.Repeat("x", 9000) +
			"\r\nbody\r\n0\r\n\r\n",
	} {
		l := newLab(t, nil, nil)
		c := l.connect("one.test")
		_, _ = io.WriteString(c, text)
		_ = c.CloseWrite()
		_, _ = io.Copy(io.Discard, c)
		for _, r := range l.servers["one.test"].requests() {
			if r.URL.Path == "/hidden" && name != "length and chunks" {
				t.Errorf("%s: what was hidden in it was asked", name)
			}
			if len(r.Header["Content-Length"]) > 1 || len(r.TransferEncoding) > 0 && r.Header.Get("Content-Length") != "" {
				t.Errorf("%s: it left with two lengths: %v", name, r.Header)
			}
		}
		l.unasked("one.test")
	}
}

// Heads without end are refused, and the value is in none of them.
func TestLongHeads(t *testing.T) {
	l := newLab(t, nil, nil)
	c := l.connect("one.test")
	go func() {
		fmt.Fprintf(c, "GET / HTTP/1.1\r\nHost: one.test\r\n")
		line := "X-Long: " + strings.Repeat("x", 8000) + "\r\n"
		for range 1 << 17 { // a gigabyte
			if _, err := io.WriteString(c, line); err != nil {
				return
			}
		}
	}()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err == nil && resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("%s", resp.Status)
	}
	l.unasked()
}

// What a server sends back of the value is covered: in a redirect, in a header, in a body, packed or not.
func TestNothingComesBack(t *testing.T) {
	l := newLab(t, func(c *proxied.Config) {
		c.Sites[0].Places = append(c.Sites[0].Places, proxied.Place{Secret: "one", Query: "key"})
	}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "https://three.test/?stolen="+real)
		w.Header().Set("X-Echo", r.Header.Get("Authorization"))
		w.WriteHeader(302)
		for i := range real {
			_, _ = io.WriteString(w, real[i:i+1])
			w.(http.Flusher).Flush()
		}
		_, _ = io.WriteString(w, " tail "+real)
	})
	for _, enc := range []string{"", "gzip", "identity"} {
		head := map[string]string{"Authorization": "Bearer " + ghost}
		if enc != "" {
			head["Accept-Encoding"] = enc
		}
		status, got, body := l.do(l.client(false), "GET", "https://one.test/", head, nil)
		if status != 302 || got.Get("Location") != "https://three.test/?stolen="+ghost ||
			got.Get("X-Echo") != "Bearer "+ghost {
			t.Errorf("%d %v", status, got)
		}
		if strings.Contains(body, real) || !strings.Contains(body, " tail sbx-hidden-") || len(body) != 2*len(real)+6 {
			t.Errorf("body %q", body)
		}
	}
	l.unasked("one.test") // nobody followed it
}

// Nor does it come back as it was spelled in the request, or behind the body.
func TestSpellingsDoNotComeBack(t *testing.T) {
	token := strings.TrimPrefix(basic("me", "SECOND-VALUE"), "Basic ")
	l := newLab(t, func(c *proxied.Config) {
		c.Sites[0].Places = []proxied.Place{{Secret: "one", Query: "key"}}
	}, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Trailer", "X-Behind")
		w.Header().Set("Location", "https://three.test/?"+r.URL.RawQuery)
		w.WriteHeader(302)
		_, _ = io.WriteString(w, r.URL.RawQuery+" "+r.Header.Get("Authorization"))
		w.Header().Set("X-Behind", r.URL.RawQuery+r.Header.Get("Authorization"))
	})
	l.p.secrets[1].value = "SECOND-VALUE"
	for _, x := range []struct{ url, auth, leak string }{
		{"https://one.test/?key=" + ghost, "", "REAL%2Fvalue"},
		{"https://two.test/", basic("me", "sbx-placeholder-two-abcdefgh"), token},
	} {
		r, _ := http.NewRequest("GET", x.url, nil)
		r.Header.Set("Authorization", x.auth)
		resp, err := l.client(true).Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		all := fmt.Sprint(resp.Header, string(body), resp.Trailer)
		if err != nil || strings.Contains(all, x.leak) || len(resp.Trailer["X-Behind"]) == 0 {
			t.Errorf("%s: %s (%v)", x.url, all, err)
		}
	}
}

// An answer goes on as it comes, while what is held back of it could be the value's beginning only.
func TestStreams(t *testing.T) {
	next := make(chan string)
	l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream")
		for s := range next {
			_, _ = io.WriteString(w, s)
			w.(http.Flusher).Flush()
		}
	})
	r, _ := http.NewRequest("GET", "https://one.test/", nil)
	r.Header.Set("Authorization", "Bearer "+ghost)
	go func() { next <- "data: 1\n\n" }()
	resp, err := l.client(true).Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	in := bufio.NewReader(resp.Body)
	for i := 1; i <= 3; i++ {
		if i > 1 {
			next <- fmt.Sprintf("data: %d\n\n", i)
		}
		line, err := in.ReadString('\n')
		if err != nil || line != fmt.Sprintf("data: %d\n", i) {
			t.Fatalf("%q %v", line, err)
		}
		_, _ = in.ReadString('\n')
	}
	close(next)
}

// A server that answers before it has all of a body is heard at once, and gets the rest. The connection has no other
// request: if the rest does not come, nobody knows where one begins.
func TestAnswersBeforeTheBodyEnds(t *testing.T) {
	for _, h2 := range []bool{false, true} {
		l := newLab(t, nil, nil)
		l.up.ForceAttemptHTTP2 = h2
		l.servers["one.test"].Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			_ = http.NewResponseController(w).EnableFullDuplex()
			_, _ = io.WriteString(w, "early\n")
			w.(http.Flusher).Flush()
			body, err := io.ReadAll(r.Body)
			fmt.Fprintln(w, r.ProtoMajor, string(body), err)
		})
		for range 2 {
			c := l.connect("one.test")
			in := bufio.NewReader(c)
			_, _ = io.WriteString(c, "POST / HTTP/1.1\r\nHost: one.test\r\nContent-Length: 8\r\n\r\nhalf")
			resp, err := http.ReadResponse(in, nil)
			if err != nil {
				t.Fatal("HTTP/2", h2, err)
			}
			body := bufio.NewReader(resp.Body)
			early, err := body.ReadString('\n')
			_, _ = io.WriteString(c, "rest")
			rest, err2 := io.ReadAll(body)
			if want := map[bool]string{false: "1", true: "2"}[h2] + " halfrest <nil>\n"; early != "early\n" ||
				string(rest) != want || err != nil || err2 != nil || !resp.Close {
				t.Errorf("HTTP/2 %v: %q %v, %q %v; want the rest %q", h2, early, err, rest, err2, want)
			}
		}
	}
}

// A request that was cut is not answered, also where its server has made something of the part that it got.
func TestWhatWasCutIsNotAnswered(t *testing.T) {
	s := newLab(t, nil, nil).p.site("one.test", 443)
	ctx, cut := context.WithCancel(context.WithValue(t.Context(), exchangeKey{}, &exchange{}))
	answer := func() error {
		r := (&http.Request{Method: "POST", Header: http.Header{}}).WithContext(ctx)
		return s.answered(&http.Response{StatusCode: 200, Body: http.NoBody, Header: http.Header{}, Request: r})
	}
	if err := answer(); err != nil {
		t.Errorf("control: %v", err)
	}
	if cut(); !errors.Is(answer(), context.Canceled) {
		t.Error("it was answered")
	}
}

// The server outside is verified: without that nothing is sent.
func TestBadCertificateOutside(t *testing.T) {
	l := newLab(t, nil, nil)
	l.p.upstream(nil).(*http.Transport).TLSClientConfig.RootCAs = x509.NewCertPool()
	status, _, body := l.do(l.client(true), "GET", "https://one.test/", map[string]string{"Authorization": "Bearer " +
		ghost},
		nil)
	if status != http.StatusBadGateway || !strings.Contains(body, "certificate is not trusted") || strings.Contains(body,
		real) {
		t.Errorf("%d %s", status, body)
	}
	l.used("it", func(u proxied.Use) bool { return strings.Contains(u.Failed, "not trusted") })
	l.unasked()
}

// An upgrade passes to websockets, and to nothing else.
func TestUpgrades(t *testing.T) {
	l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
		c, rw, err := w.(http.Hijacker).Hijack()
		if err != nil {
			return
		}
		defer c.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\n\r\n",
			r.Header.Get("Upgrade"))
		rw.Flush()
		line, _ := rw.ReadString('\n')
		fmt.Fprintf(rw, "echo %s", line)
		rw.Flush()
	})
	l.servers["one.test"].TLS.NextProtos = nil
	for proto, want := range map[string]string{"websocket": "echo hello\n", "h2c": "", "raw": ""} {
		c := l.connect("one.test")
		fmt.Fprintf(c,
			"GET / HTTP/1.1\r\nHost: one.test\r\nConnection: Upgrade\r\nUpgrade: %s\r\nAuthorization: Bearer %s\r\n\r\n",
			proto, ghost)
		in := bufio.NewReader(c)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatal(err)
		}
		if want == "" {
			if resp.StatusCode != http.StatusNotImplemented {
				t.Errorf("%s: %s", proto, resp.Status)
			}
			continue
		}
		fmt.Fprintf(c, "hello\n")
		if got, err := in.ReadString('\n'); err != nil || got != want || resp.StatusCode != 101 {
			t.Errorf("%s: %s %q %v", proto, resp.Status, got, err)
		}
		if got := l.servers["one.test"].requests()[0].Header.Get("Authorization"); got != "Bearer "+real {
			t.Errorf("%s: %s", proto, got)
		}
	}
}

// An upload is handed on as it is read: nothing keeps it.
func TestUploads(t *testing.T) {
	const size = 64 << 20
	got := make(chan int64, 1)
	l := newLab(t, nil, nil)
	l.servers["one.test"].Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		got <- n
	})
	status, _, _ := l.do(l.client(true), "POST", "https://one.test/", map[string]string{"Authorization": "Bearer " +
		ghost},
		io.LimitReader(zeros{}, size))
	if n := <-got; n != size || status != 200 {
		t.Errorf("%d bytes, status %d", n, status)
	}
}

type zeros struct{}

func (zeros) Read(b []byte) (int, error) { clear(b); return len(b), nil }

// A site with an address of its own is spoken to without TLS, and is that one site whatever Host says.
func TestOwnAddress(t *testing.T) {
	l := newLab(t, func(c *proxied.Config) {
		c.Listeners = append(c.Listeners, proxied.Listener{Port: 48480, Site: 0})
		c.Sites[0].Prefix = "/base"
	}, nil)
	for _, host := range []string{"127.0.0.1:48480", "three.test", "two.test"} {
		r, _ := http.NewRequest("GET", "http://"+l.addr+"/v1/x%2Fy?q=1", nil)
		r.Host = host
		r.Header.Set("Authorization", "Bearer "+ghost)
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	for _, r := range l.servers["one.test"].requests() {
		if r.Host != "one.test" || r.URL.EscapedPath() != "/base/v1/x%2Fy" ||
			r.Header.Get("Authorization") != "Bearer "+real {
			t.Errorf("%s %s %v", r.Host, r.URL, r.Header)
		}
	}
	l.unasked("one.test")
}

// Some tools take the API's version for the end of the address, and others put it behind that: both are answered, and
// what has no version is left as it is. Over TLS the client has named the path itself.
func TestVersions(t *testing.T) {
	l := newLab(t, func(c *proxied.Config) {
		c.Listeners = append(c.Listeners, proxied.Listener{Port: 48480, Site: 0})
		c.Sites[0].Versioned = []string{"/v1/messages"}
	}, nil)
	l.p.secrets[0].Allow = []string{"GET /v1/**", "GET /api/**", "GET /messages"}
	for _, path := range []string{"/messages", "/messages/a%2Fb?q", "/v1/messages", "/messagesx", "/api/messages"} {
		resp, err := http.Get("http://" + l.addr + path)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
	}
	l.addr = l.tlsAddr
	if status, _, _ := l.do(l.client(false), "GET", "https://one.test/messages", nil, nil); status != 200 {
		t.Error(status)
	}
	var got []string
	for _, r := range l.servers["one.test"].requests() {
		got = append(got, r.URL.RequestURI())
	}
	// the path that is asked for is the one that rules are about
	want := "/v1/messages /v1/messages/a%2Fb?q /v1/messages /api/messages /messages"
	if strings.Join(got, " ") != strings.Replace(want, "/v1/messages/a%2Fb?q ", "", 1) {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// What no rule allows is refused, and not asked outside.
func TestRules(t *testing.T) {
	l := newLab(t, nil, nil)
	l.p.secrets[0].Allow = []string{"GET /repos/**", "POST /repos/me/*/pulls", "* /any"}
	c := l.connect("one.test")
	in := bufio.NewReader(c)
	asked := 0
	for _, x := range []struct {
		line, head string
		ok         bool
	}{
		{"GET /repos/a", "", true}, {"GET /repos/a/b/c?x=/../y", "", true}, {"POST /repos/me/x/pulls", "", true},
		{"DELETE /any", "", true}, {"GET /repos/a%20b", "", true}, {"GET /repos/", "", true},
		{"GET /repos", "", false}, {"POST /repos/me/pulls", "", false}, {"POST /repos/you/x/pulls", "", false},
		{"POST /repos/me//pulls", "", false}, {"GET /user", "", false}, {"get /repos/a", "", false},
		{"GET /repos/../user", "", false}, {"GET /repos/%2e%2e/user", "", false}, {"GET /repos/..%2fuser", "", false},
		{"GET //repos/a", "", false}, {"GET /repos/./a", "", false}, {"GET /repos/a%5c..%5cuser", "", false},
		{"GET /repos/..;/user", "", false}, {"GET /repos/%252e%252e/user", "", false}, {"GET /REPOS/a", "", false},
		{"GET /repos/a", "X-HTTP-Method-Override: DELETE\r\n", false},
		{"GET /repos/a", "X-HTTP-Method-Override:\r\nX-HTTP-Method-Override: DELETE\r\n", false},
		{"GET /repos/a", "x_http_method: DELETE\r\n", false}, {"GET /repos/a", "X_Original-URL: /user\r\n", false},
		{"GET /repos/a?_method=DELETE", "", false}, {"GET /repos/a?x=1;_METHOD=delete", "", false},
		{"GET /repos/a?method=flickr.search&q=_method", "", true},
	} {
		fmt.Fprintf(c, "%s HTTP/1.1\r\nHost: one.test\r\n%sContent-Length: 0\r\n\r\n", x.line, x.head)
		resp, err := http.ReadResponse(in, nil)
		if err != nil {
			t.Fatalf("%s: %v", x.line, err)
		}
		b, _ := io.ReadAll(resp.Body)
		if (resp.StatusCode == 200) != x.ok || !x.ok && (resp.StatusCode != 403 || !strings.Contains(string(b),
			"sbx: refused: ")) {
			t.Errorf("%s: %s %s", x.line, resp.Status, b)
		}
		if x.ok {
			asked++
		}
	}
	if n := len(l.servers["one.test"].requests()); n != asked {
		t.Errorf("%d requests left, want %d", n, asked)
	}
	l.used("a refusal", func(u proxied.Use) bool { return u.Status == 403 && u.Refused == "no rule allows GET /user" })
}

// Of two credentials of one host each is put in where its own rules allow it, whatever those of the other say. What
// carries none passes where one of them allows it.
func TestRulesOfEachCredential(t *testing.T) {
	const first, second = ghost, "sbx-placeholder-two-abcdefgh"
	encoded := "%73" + first[1:]
	for name, x := range map[string]struct {
		one, two []string // rules
		request  string
		carried  []string
		want     int
	}{
		"its own rule":           {[]string{"GET /**"}, []string{"POST /gists"}, "GET /x", []string{first}, 200}, // controls
		"the other's own":        {[]string{"GET /**"}, []string{"POST /gists"}, "POST /gists", []string{second}, 200},
		"another's rule":         {[]string{"GET /**"}, []string{"POST /gists"}, "POST /gists", []string{first}, 403},
		"another without rules":  {[]string{"GET /**"}, nil, "POST /gists", []string{first}, 403},
		"beside one with rules":  {[]string{"GET /**"}, nil, "POST /gists", []string{second}, 200},
		"both":                   {[]string{"GET /**"}, nil, "POST /gists", []string{second, first}, 403},
		"an empty list":          {[]string{}, nil, "GET /x", []string{first}, 403},
		"encoded in the address": {[]string{"GET /**"}, nil, "POST /gists?key=" + encoded, nil, 403},
		"none, in the union":     {[]string{"GET /**"}, []string{"POST /gists"}, "POST /gists", nil, 200},
		"none, outside of it":    {[]string{"GET /**"}, []string{"POST /gists"}, "PUT /gists", nil, 403},
		"none, and no rules":     {[]string{}, nil, "PUT /gists", nil, 200},
		"none, and empty lists":  {[]string{}, []string{}, "GET /x", nil, 403},
	} {
		l := newLab(t, func(c *proxied.Config) {
			c.Sites[0].Places = append(c.Sites[0].Places, proxied.Place{Secret: "one", Query: "key"},
				proxied.Place{Secret: "two", Header: "X-Two", Format: "{}"})
		}, nil)
		l.p.secrets[0].Allow, l.p.secrets[1].Allow = x.one, x.two
		head := map[string]string{}
		for _, p := range x.carried {
			head[map[string]string{first: "Authorization", second: "X-Two"}[p]] = map[string]string{first: "Bearer "}[p] + p
		}
		method, path, _ := strings.Cut(x.request, " ")
		status, _, text := l.do(l.client(false), method, "https://one.test"+path, head, nil)
		if status != x.want {
			t.Errorf("%s: %d %s", name, status, text)
		}
		if asked := len(l.servers["one.test"].requests()); (asked == 1) != (x.want == 200) {
			t.Errorf("%s: %d requests left", name, asked)
		}
	}
}

// A credential that is wrong or has expired is the server's to refuse, and on record so.
func TestWrongCredential(t *testing.T) {
	l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusUnauthorized) })
	status, _, _ := l.do(l.client(true), "GET", "https://one.test/", map[string]string{"Authorization": "Bearer " + ghost},
		nil)
	if status != http.StatusUnauthorized {
		t.Errorf("status %d", status)
	}
	l.used("it", func(u proxied.Use) bool { return u.Secret == "one" && u.Status == http.StatusUnauthorized })
}

// Streams that are left half closed, on either side, end, and leak nothing.
func TestHalfClosed(t *testing.T) {
	l := newLab(t, nil, func(w http.ResponseWriter, r *http.Request) {
		if c, _, err := w.(http.Hijacker).Hijack(); err == nil && r.URL.Path == "/cut" {
			_, _ = io.WriteString(c, "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n"+real[:5])
			c.Close()
		}
	})
	l.servers["one.test"].TLS.NextProtos = nil
	c := l.connect("one.test")
	fmt.Fprintf(c, "GET /cut HTTP/1.1\r\nHost: one.test\r\nAuthorization: Bearer %s\r\n\r\n", ghost)
	b, err := io.ReadAll(c)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) || strings.Contains(string(b), real) ||
		!strings.HasPrefix(string(b), "HTTP/1.1 200") {
		t.Errorf("%q %v", b, err)
	}
	c = l.connect("one.test")
	fmt.Fprintf(c, "POST /never HTTP/1.1\r\nHost: one.test\r\nContent-Length: 100\r\n\r\nhalf")
	_ = c.CloseWrite()
	if _, err := io.ReadAll(c); err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("a request that is cut off: %v", err)
	}
}
