package sniff

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// hello is what a client of the standard library sends first.
func hello(t testing.TB, conf *tls.Config) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer b.Close()
	conf.InsecureSkipVerify = true
	go func() { _ = tls.Client(a, conf).Handshake() }()
	_ = b.SetReadDeadline(time.Now().Add(time.Minute))
	record, err := Record(bufio.NewReader(b))
	a.Close()
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// extended puts an extension into a ClientHello of one record.
func extended(h []byte, kind uint16, data string) []byte {
	out := append([]byte(nil), h...)
	out = append(out, byte(kind>>8), byte(kind), byte(len(data)>>8), byte(len(data)))
	out = append(out, data...)
	grow := len(out) - len(h)
	add := func(at, size int) {
		for i := range size {
			carry := grow >> (8 * i) & 0xff
			for j := at + size - 1 - i; carry > 0 && j >= at; j-- {
				carry += int(out[j])
				out[j] = byte(carry)
				carry >>= 8
			}
		}
	}
	add(3, 2)
	add(6, 3)
	at := 9 + 34
	at += 1 + int(out[at])
	at += 2 + int(out[at])<<8 + int(out[at+1])
	at += 1 + int(out[at])
	add(at, 2)
	return out
}

// split cuts the message of one record into records of n bytes.
func split(h []byte, n int) []byte {
	var out []byte
	for b := h[5:]; len(b) > 0; b = b[min(n, len(b)):] {
		k := min(n, len(b))
		out = append(append(out, h[0], h[1], h[2], byte(k>>8), byte(k)), b[:k]...)
	}
	return out
}

func TestReadHello(t *testing.T) {
	plain := hello(t, &tls.Config{ServerName: "One.test"})
	nameless := hello(t, &tls.Config{ServerName: ""})
	sni := "\x00\x0b\x00\x00\x08one.test"
	for what, c := range map[string]struct {
		in   []byte
		name string
		err  string
	}{
		"plain":           {plain, "one.test", ""},
		"older":           {hello(t, &tls.Config{ServerName: "one.test", MaxVersion: tls.VersionTLS12}), "one.test", ""},
		"in pieces":       {split(plain, 7), "one.test", ""},
		"by an extension": {extended(nameless, 0, sni), "one.test", ""},
		"no name":         {nameless, "", "names no host"},
		"address":         {extended(nameless, 0, "\x00\x0c\x00\x00\x091.2.3.4.5"), "", "not the name"},
		"numbers":         {extended(nameless, 0, "\x00\x0a\x00\x00\x071.2.3.4"), "", "not the name"},
		"two names": {extended(nameless, 0, "\x00\x16\x00\x00\x08one.test\x00\x00\x08two.test"), "",
			"more than one"},
		"other kind":          {extended(nameless, 0, "\x00\x0b\x01\x00\x08one.test"), "", "no well-formed"},
		"list too short":      {extended(nameless, 0, sni+"x"), "", "no well-formed"},
		"zero in the name":    {extended(nameless, 0, "\x00\x0b\x00\x00\x08one.te\x00t"), "", "not the name"},
		"last dot":            {extended(nameless, 0, "\x00\x0c\x00\x00\x09one.test."), "", "not the name"},
		"twice":               {extended(plain, 0, sni), "", "no well-formed"},
		"encrypted":           {extended(plain, extECH, "\x00"), "", "ECH"},
		"encrypted, as drawn": {extended(plain, extESNI, ""), "", "ECH"},
		"cut":                 {plain[:len(plain)-1], "", "not complete"},
		"nothing":             {nil, "", "not complete"},
		"old framing":         {[]byte{0x80, 0x2e, 1, 0, 2}, "", "no well-formed"},
		"empty record":        {append([]byte{22, 3, 1, 0, 0}, plain...), "", "no well-formed"},
		"more in the record": {func() []byte { b := append([]byte(nil), plain...); b = append(b, 0); b[4]++; return b }(),
			"", "no well-formed"},
		"HTTP": {[]byte("GET / HTTP/1.1\r\n"), "", "no well-formed"},
	} {
		name, size, err := readHello(c.in)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%s: %q, %v, want %q", what, name, err, c.err)
			}
			continue
		}
		if err != nil || name != c.name || size != len(c.in) {
			t.Errorf("%s: %q of %d bytes of %d, %v", what, name, size, len(c.in), err)
		}
		if _, size, err := readHello(append(append([]byte(nil), c.in...), 23, 3, 3, 0, 1, 0)); err != nil ||
			size != len(c.in) {
			t.Errorf("%s, and more: %d bytes, %v", what, size, err)
		}
	}
}

func FuzzReadHello(f *testing.F) {
	plain := hello(f, &tls.Config{ServerName: "one.test"})
	f.Add(plain)
	f.Add(split(plain, 50))
	f.Add(hello(f, &tls.Config{}))
	f.Add(extended(plain, extECH, "abc"))
	f.Fuzz(func(t *testing.T, b []byte) {
		name, size, err := readHello(b)
		if err != nil {
			return
		}
		if size > len(b) || size < 40 {
			t.Fatalf("%d bytes of %d", size, len(b))
		}
		if again, err := plainName(name); err != nil || again != name {
			t.Fatalf("%q is no plain name: %v", name, err)
		}
		// What another reader sees in the same bytes, if it takes them at all.
		var seen string
		server := tls.Server(&fixed{r: bytes.NewReader(b[:size])},
			&tls.Config{GetConfigForClient: func(i *tls.ClientHelloInfo) (*tls.Config, error) {
				seen = i.ServerName
				return nil, errors.New("seen")
			}})
		if _ = server.Handshake(); seen != "" && !strings.EqualFold(seen, name) {
			t.Fatalf("%q is %q for another reader", name, seen)
		}
	})
}

// fixed is a connection that has said all it will say.
type fixed struct {
	net.Conn
	r io.Reader
}

func (f *fixed) Read(b []byte) (int, error)       { return f.r.Read(b) }
func (f *fixed) Write(b []byte) (int, error)      { return len(b), nil }
func (f *fixed) Close() error                     { return nil }
func (f *fixed) SetWriteDeadline(time.Time) error { return nil }

func FuzzRequests(f *testing.F) {
	for _, s := range []string{"GET / HTTP/1.1\r\nHost: one.test\r\n\r\n",
		"POST /x HTTP/1.1\r\nHost: one.test:80\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\nGET / " +
			"HTTP/1.1\r\nHost: two.test\r\n\r\n",
		"PUT http://one.test/ HTTP/1.1\r\nHost: one.test\r\nContent-Length: 3\r\n\r\nabc"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		var names []string
		_ = Requests(bufio.NewReader(bytes.NewReader(b)), func(name string, _ []byte) (io.Writer, error) {
			names = append(names, name)
			return &out, nil
		})
		// The standard library, reading what was passed, must see the same hosts and no more requests.
		r := bufio.NewReader(&out)
		for i := 0; ; i++ {
			q, err := http.ReadRequest(r)
			if err != nil {
				return
			}
			h := q.Host
			if host, _, err := net.SplitHostPort(h); err == nil {
				h = host
			}
			if i >= len(names) || !strings.EqualFold(h, names[i]) {
				t.Fatalf("request %d is for %q: %q", i, q.Host, names)
			}
			if _, err := io.Copy(io.Discard, q.Body); err != nil {
				return
			}
		}
	})
}

func TestRequests(t *testing.T) {
	const get = "GET / HTTP/1.1\r\nHost: one.test\r\n"
	for what, c := range map[string]struct{ in, names, err string }{
		"one":       {get + "\r\n", "one.test", ""},
		"two hosts": {get + "\r\n" + "GET / HTTP/1.1\r\nHost: two.test\r\n\r\n", "one.test two.test", ""},
		"body": {"POST / HTTP/1.1\r\nHost: ONE.test:80\r\nContent-Length: 5\r\n\r\nGET /" + get + "\r\n",
			"one.test one.test", ""},
		"chunks": {"POST / HTTP/1.1\r\nHost: one.test\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nX: " +
			"y\r\n\r\n" + get + "\r\n", "one.test one.test", ""},
		"absolute":         {"GET http://one.test/x HTTP/1.1\r\nHost: one.test\r\n\r\n", "one.test", ""},
		"offer":            {get + "Upgrade: h2c\r\n\r\n", "one.test", ""},
		"absolute, other":  {"GET http://two.test/x HTTP/1.1\r\nHost: one.test\r\n\r\n", "", "two hosts"},
		"no host":          {"GET / HTTP/1.0\r\n\r\n", "", "not one Host"},
		"two Hosts":        {get + "host: two.test\r\n\r\n", "", "not one Host"},
		"folded":           {get + " two.test\r\n\r\n", "", "no well-formed"},
		"space in a name":  {get + "Host : two.test\r\n\r\n", "", "no well-formed"},
		"bare line feed":   {"GET / HTTP/1.1\nHost: one.test\n\n", "", "no well-formed"},
		"carriage return":  {get + "X: a\rHost: two.test\r\n\r\n", "", "no well-formed"},
		"both lengths":     {get + "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n", "", "no well-formed"},
		"two lengths":      {get + "Content-Length: 3\r\nContent-Length: 3\r\n\r\n", "", "no well-formed"},
		"signed length":    {get + "Content-Length: +3\r\n\r\n", "", "no well-formed"},
		"other coding":     {get + "Transfer-Encoding: gzip, chunked\r\n\r\n", "", "no well-formed"},
		"chunk extension":  {get + "Transfer-Encoding: chunked\r\n\r\n3;x\r\nabc\r\n", "one.test", "no well-formed"},
		"tunnel":           {"CONNECT two.test:443 HTTP/1.1\r\nHost: one.test\r\n\r\n", "", "elsewhere"},
		"socket":           {get + "Upgrade: websocket\r\n\r\n", "", "cannot be followed"},
		"HTTP/2":           {"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", "no well-formed"},
		"address for name": {"GET / HTTP/1.1\r\nHost: 198.51.100.10\r\n\r\n", "", "not the name"},
		"user in the name": {"GET / HTTP/1.1\r\nHost: one.test@two.test\r\n\r\n", "", "not the name"},
		"too long":         {get + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 70) + "\r\n", "", "too long"},
	} {
		var names []string
		var out bytes.Buffer
		err := Requests(bufio.NewReader(strings.NewReader(c.in)), func(name string, _ []byte) (io.Writer, error) {
			names = append(names, name)
			return &out, nil
		})
		if got := strings.Join(names, " "); got != c.names {
			t.Errorf("%s: for %q, want %q", what, got, c.names)
		}
		if c.err == "" && (err != nil || out.String() != strings.ReplaceAll(c.in, "Upgrade: h2c\r\n", "")) {
			t.Errorf("%s: %v, passed %q", what, err, out.String())
		} else if c.err != "" && (err == nil || !strings.Contains(err.Error(), c.err)) {
			t.Errorf("%s: %v, want %q", what, err, c.err)
		}
	}
}
