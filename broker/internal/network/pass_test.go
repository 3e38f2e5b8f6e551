//go:build linux

package network

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"sbx.example/sbx/broker/internal/network/sniff"
)

// hello is what a client of the standard library sends first.
func hello(t testing.TB, conf *tls.Config) []byte {
	t.Helper()
	a, b := net.Pipe()
	defer b.Close()
	conf.InsecureSkipVerify = true
	go func() { _ = tls.Client(a, conf).Handshake() }()
	_ = b.SetReadDeadline(time.Now().Add(time.Minute))
	record, err := sniff.Record(bufio.NewReader(b))
	a.Close()
	if err != nil {
		t.Fatal(err)
	}
	return record
}

// certificate is one that nobody trusts.
func certificate(t *testing.T) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

// TestPass leads connections through the pass-through to a server on the loopback, and some elsewhere.
func TestPass(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conf := &tls.Config{Certificates: []tls.Certificate{certificate(t)}}
	var mu sync.Mutex
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				mu.Lock()
				s := tls.Server(c, conf.Clone())
				mu.Unlock()
				if s.Handshake() == nil {
					_, _ = io.Copy(s, s)
				}
			}()
		}
	}()
	to := netip.MustParseAddrPort(l.Addr().String())
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var events []Event
	n := &Network{names: newResolver(), ctx: ctx}
	n.closed.Store(&[]netip.Prefix{})
	n.o.Note = func(e Event) {
		mu.Lock()
		defer mu.Unlock()
		events = append(events, e)
	}
	n.names.recordOpened("one.test", []netip.Addr{to.Addr()}, judgement{ports: []ports{{lo: 1, hi: 65535, sni: true}}},
		time.Hour)
	n.names.recordOpened("closed.test", []netip.Addr{to.Addr()}, judgement{ports: []ports{{lo: 1, hi: 65535, udp: true}}},
		time.Hour)
	n.names.recordOpened("old.test", []netip.Addr{to.Addr()}, judgement{ports: []ports{{lo: 1, hi: 65535}}}, -time.Second)
	try := func(c *tls.Config) error {
		a, b := loopback(t)
		defer a.Close()
		go func() {
			(&passage{n: n, in: b, to: to}).run()
			b.Close()
		}()
		_ = a.SetDeadline(time.Now().Add(time.Minute))
		c.InsecureSkipVerify = true
		s := tls.Client(a, c)
		if _, err := s.Write([]byte("hello")); err != nil {
			return err
		}
		got := make([]byte, 5)
		if _, err := io.ReadFull(s, got); err != nil || string(got) != "hello" {
			return errors.Join(errors.New("no echo"), err)
		}
		return nil
	}
	if err := try(&tls.Config{ServerName: "one.test"}); err != nil {
		t.Errorf("the allowed name: %v", err)
	}
	if err := try(&tls.Config{ServerName: "one.test", MaxVersion: tls.VersionTLS12}); err != nil {
		t.Errorf("the allowed name by TLS 1.2: %v", err)
	}
	mu.Lock()
	conf = &tls.Config{Certificates: conf.Certificates, CurvePreferences: []tls.CurveID{tls.CurveP521}}
	mu.Unlock()
	curves := []tls.CurveID{tls.X25519, tls.CurveP521}
	if err := try(&tls.Config{ServerName: "one.test", CurvePreferences: curves}); err != nil {
		t.Errorf("a server that wants another ClientHello: %v", err)
	}
	for name, why := range map[string]string{"two.test": "names two.test", "closed.test": "names closed.test",
		"old.test": "names old.test", "": "no SNI"} {
		mu.Lock()
		events = nil
		mu.Unlock()
		err := try(&tls.Config{ServerName: name})
		if err == nil || !strings.Contains(err.Error(), "unrecognized name") {
			t.Errorf("%q: %v", name, err)
		}
		mu.Lock()
		if len(events) != 1 || !events[0].Denied || !strings.Contains(events[0].Reason, why) {
			t.Errorf("%q: %+v", name, events)
		}
		mu.Unlock()
	}
	if list := n.passed.add(nil); len(list) != 1 || list[0].Out < 300 || list[0].In < 300 {
		t.Errorf("counted %+v", list)
	}
}

// loopback are the ends of a TCP connection.
func loopback(t *testing.T) (a, b net.Conn) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if a, err = net.Dial("tcp", l.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if b, err = l.Accept(); err != nil {
		t.Fatal(err)
	}
	return a, b
}

// TestPassSecondHello has a server ask for another ClientHello, and a program name another host in that one.
func TestPassSecondHello(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	random := sha256.Sum256([]byte("HelloRetryRequest")) // RFC 8446, 4.1.3
	retry := append([]byte{22, 3, 3, 0, 40, 2, 0, 0, 36, 3, 3}, random[:]...)
	retry = append(retry, 0, 0)
	got := make(chan []byte, 8)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			r := bufio.NewReader(c)
			_, _ = sniff.Record(r)
			_, _ = c.Write(retry)
			b, _ := io.ReadAll(r)
			got <- b
			c.Close()
		}
	}()
	to := netip.MustParseAddrPort(l.Addr().String())
	n := &Network{names: newResolver(), ctx: context.Background()}
	n.closed.Store(&[]netip.Prefix{})
	reasons := make(chan string, 8)
	n.o.Note = func(e Event) { reasons <- e.Reason }
	n.names.recordOpened("one.test", []netip.Addr{to.Addr()}, judgement{ports: []ports{{lo: 1, hi: 65535}}}, time.Hour)
	// even a name that is allowed too
	n.names.recordOpened("two.test", []netip.Addr{to.Addr()}, judgement{ports: []ports{{lo: 1, hi: 65535}}}, time.Hour)
	change := []byte{20, 3, 3, 0, 1, 1}
	for name, want := range map[string]int{"one.test": 100, "two.test": 0} {
		a, b := loopback(t)
		go func() {
			(&passage{n: n, in: b, to: to}).run()
			b.Close()
		}()
		second := hello(t, &tls.Config{ServerName: name})
		_, _ = a.Write(hello(t, &tls.Config{ServerName: "one.test"}))
		if back := make([]byte, len(retry)); func() bool {
			_, err := io.ReadFull(a, back)
			return err != nil ||
				!bytes.Equal(back, retry)
		}() {
			t.Fatalf("%s: the server's answer is another one", name)
		}
		_, _ = a.Write(append(change, second...))
		if want > 0 {
			a.Close()
		}
		b1 := <-got
		if want > 0 != bytes.HasSuffix(b1, second) || !bytes.HasPrefix(b1, change) {
			t.Errorf("%s: the server got %d bytes", name, len(b1))
		}
		if want == 0 {
			if r := <-reasons; !strings.Contains(r, "second ClientHello names two.test") {
				t.Error(r)
			}
			a.Close()
		}
	}
}
