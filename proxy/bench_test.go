//go:build linux

package main

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"sbx.example/sbx/shared/proxied"
)

// benchLab is a lab whose server answers with as many bytes as the path says.
func benchLab(b *testing.B) *lab {
	chunk := make([]byte, 1<<20)
	return newLab(b, func(c *proxied.Config) {
		c.Listeners = append(c.Listeners, proxied.Listener{Port: 48480, Site: 0})
	}, func(w http.ResponseWriter, r *http.Request) {
		n, _ := strconv.Atoi(r.URL.Path[1:])
		w.Header().Set("Content-Length", strconv.Itoa(n))
		for ; n > 0; n -= len(chunk) {
			_, _ = w.Write(chunk[:min(n, len(chunk))])
		}
	})
}

// bare serves the library's own proxy, as it comes.
func (l *lab) bare(t *tls.Config) string {
	in, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		l.t.Fatal(err)
	}
	to := &url.URL{Scheme: "https", Host: "one.test"}
	s := &http.Server{Handler: &httputil.ReverseProxy{Transport: l.p.upstream(nil),
		Rewrite: func(r *httputil.ProxyRequest) {
			r.SetURL(to)
		}}}
	if s.TLSConfig = t; t != nil {
		go func() { _ = s.ServeTLS(in, "", "") }()
	} else {
		go func() { _ = s.Serve(in) }()
	}
	l.t.Cleanup(func() { s.Close() })
	return in.Addr().String()
}

func get(b *testing.B, c *http.Client, address string, size int) {
	r, err := http.NewRequest(http.MethodGet, address+"/"+strconv.Itoa(size), nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+ghost)
	r.Header.Set("Accept-Encoding", "identity")
	resp, err := c.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	n, err := io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	if err != nil || int(n) != size {
		b.Fatalf("%d bytes, %v", n, err)
	}
}

// processorTime is what client, proxy and server have used: what a way takes more than the direct one is the proxy's.
func processorTime(b *testing.B) time.Duration {
	var u unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// One way each: straight to the server, through the library's proxy, and through this one.
func BenchmarkWays(b *testing.B) {
	const large = 64 << 20
	l := benchLab(b)
	own := l.addr
	leaf, err := l.p.ca.leaf("one.test")
	if err != nil {
		b.Fatal(err)
	}
	through := func(address string) *http.Client {
		l.addr = address
		return l.client(false)
	}
	plain, named := l.bare(nil), l.bare(&tls.Config{Certificates: []tls.Certificate{*leaf}})
	server := l.servers["one.test"].Listener.Addr().String()
	l.pool = l.up.TLSClientConfig.RootCAs.Clone() // a client that trusts the server as well
	l.pool.AddCert(l.p.ca.cert)
	for _, x := range []struct {
		name, url, address string
		size               int
	}{
		{"request/direct", "https://one.test", server, 100},
		{"request/bare", "http://one.test", plain, 100},
		{"request/own", "http://one.test", own, 100},
		{"requestTLS/bare", "https://one.test", named, 100},
		{"requestTLS/own", "https://one.test", l.tlsAddr, 100},
		{"bulk/direct", "https://one.test", server, large},
		{"bulkTLS/bare", "https://one.test", named, large},
		{"bulkTLS/own", "https://one.test", l.tlsAddr, large},
		{"bulk/bare", "http://one.test", plain, large},
		{"bulk/own", "http://one.test", own, large},
	} {
		b.Run(x.name, func(b *testing.B) {
			address := x.address
			c := through(address)
			c.Transport.(*http.Transport).DialContext = dialTo(address)
			get(b, c, x.url, x.size)
			if x.size == large {
				b.SetBytes(large)
			}
			before := processorTime(b)
			for b.Loop() {
				get(b, c, x.url, x.size)
			}
			b.ReportMetric(float64((processorTime(b)-before).Microseconds())/1000/float64(b.N), "cpu-ms/op")
		})
	}
}
