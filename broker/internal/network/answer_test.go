//go:build linux

package network

import (
	"context"
	"net"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/dns/dnsmessage"

	"sbx.example/sbx/broker/internal/network/nameserver"
	"sbx.example/sbx/broker/internal/policy/peer"
)

func name(s string) dnsmessage.Name { return dnsmessage.MustNewName(s) }

func header(n string, t dnsmessage.Type, ttl uint32) dnsmessage.ResourceHeader {
	return dnsmessage.ResourceHeader{Name: name(n), Type: t, Class: dnsmessage.ClassINET, TTL: ttl}
}

func a(n, ip string, ttl uint32) dnsmessage.Resource {
	return dnsmessage.Resource{Header: header(n, dnsmessage.TypeA, ttl),
		Body: &dnsmessage.AResource{A: netip.MustParseAddr(ip).As4()}}
}

func cname(n, to string) dnsmessage.Resource {
	return dnsmessage.Resource{Header: header(n, dnsmessage.TypeCNAME, 60), Body: &dnsmessage.CNAMEResource{
		CNAME: name(to)}}
}

func packed(t *testing.T, rs ...dnsmessage.Resource) []byte {
	t.Helper()
	b, err := (&dnsmessage.Message{Header: dnsmessage.Header{Response: true}, Answers: rs}).Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestReadAnswer(t *testing.T) {
	closed := func(ip netip.Addr) bool { return contains(closedPrefixes(), ip) }
	q := dnsmessage.Question{Name: name("One.test."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}
	for what, c := range map[string]struct {
		records             []dnsmessage.Resource
		addrs, refused, rrs int
		ttl                 uint32
	}{
		"plain":     {[]dnsmessage.Resource{a("one.test.", "192.0.2.1", 7)}, 1, 0, 1, 7},
		"zero life": {[]dnsmessage.Resource{a("one.test.", "192.0.2.1", 0)}, 1, 0, 1, 1},
		"long life": {[]dnsmessage.Resource{a("one.test.", "192.0.2.1", 1e6)}, 1, 0, 1, maxTTL},
		"stray": {[]dnsmessage.Resource{a("one.test.", "192.0.2.1", 9), a("two.test.", "192.0.2.2", 9)}, 1, 0, 1,
			9},
		"alias": {[]dnsmessage.Resource{a("two.test.", "192.0.2.2", 9), cname("one.test.", "two.test.")}, 1, 0, 2,
			9},
		"alias elsewhere": {[]dnsmessage.Resource{cname("three.test.", "two.test."), a("two.test.", "192.0.2.2", 9)}, 0, 0,
			0, noTTL},
		"circle": {[]dnsmessage.Resource{cname("one.test.", "two.test."), cname("two.test.", "one.test.")}, 0, 0, 0,
			noTTL},
		"loopback":      {[]dnsmessage.Resource{a("one.test.", "127.0.0.1", 9)}, 0, 1, 0, noTTL},
		"two faces":     {[]dnsmessage.Resource{a("one.test.", "10.1.2.3", 9), a("one.test.", "192.0.2.1", 9)}, 1, 1, 1, 9},
		"metadata":      {[]dnsmessage.Resource{a("one.test.", "169.254.169.254", 9)}, 0, 1, 0, noTTL},
		"azure":         {[]dnsmessage.Resource{a("one.test.", "168.63.129.16", 9)}, 0, 1, 0, noTTL},
		"its neighbour": {[]dnsmessage.Resource{a("one.test.", "168.63.129.17", 9)}, 1, 0, 1, 9},
	} {
		got, err := readAnswer(packed(t, c.records...), q, closed)
		if err != nil || len(got.addrs) != c.addrs || len(got.refused) != c.refused || len(got.records) != c.rrs ||
			got.ttl != c.ttl {
			t.Errorf("%s: %+v, %v", what, got, err)
		}
		for _, r := range got.records { // who keeps it longer would come to an address that is closed
			if r.Header.TTL > got.ttl {
				t.Errorf("%s: %v lives for %d s, and its address is open for %d", what, r.Header.Name, r.Header.TTL, got.ttl)
			}
		}
	}
}

// TestClosedInEveryForm: of IPv6 only what has been given out as public is open, and no spelling of an IPv4 address in
// it: that would lead to private ones. The controls are public.
func TestClosedInEveryForm(t *testing.T) {
	for s, want := range map[string]bool{
		"::1": true, "::": true, "fd00:ec2::254": true, "fe80::1": true, "fec0::1": true, "ff02::1": true, // IPv6's own
		"::ffff:127.0.0.1": true, "::ffff:0:10.0.0.1": true, "::10.0.0.1": true, // mapped, translated, compatible
		"64:ff9b::169.254.169.254": true, "64:ff9b:1::10.0.0.1": true, "64:ff9b:1:ffff::1": true, // NAT64
		"2002:7f00:1::": true, "2002:a9fe:a9fe::1": true, "2001:0:a00:1::f5ff:fffe": true, // 6to4, Teredo
		"100::1": true, "2001:2::1": true, "5f00::1": true, "4000::1": true, "8000::1": true, "e000::1": true, // no use yet
		"192.88.99.1": false, "2001:db8::1": false, "192.0.2.1": false, "2001:4860:4860::8888": false, "2a00::1": false,
		"2620:fe::fe": false, "3fff::1": false,
	} {
		if got := contains(closedPrefixes(), netip.MustParseAddr(s)); got != want {
			t.Errorf("%s is closed: %t", s, got)
		}
	}
}

// TestQuestionCarriesNothing: what servers outside are asked has the name as everybody writes it: the case of letters,
// and what else a program's question has, could carry data.
func TestQuestionCarriesNothing(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	heard := make(chan []byte, 1)
	go func() {
		b := make([]byte, 999)
		n, who, err := server.ReadFrom(b)
		if err != nil {
			return
		}
		heard <- b[:n]
		var m dnsmessage.Message
		if m.Unpack(b[:n]) == nil {
			m.Response, m.Answers = true, []dnsmessage.Resource{a("yes.test.", "192.0.2.1", 60)}
			b, _ = m.Pack()
			_, _ = server.WriteTo(b, who)
		}
	}()
	r := judged(new(atomic.Int32), nil)
	r.up = &nameserver.Servers{List: []netip.AddrPort{server.LocalAddr().(*net.UDPAddr).AddrPort()},
		Timeout: 10 * time.Second}
	q := dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true, AuthenticData: true},
		Questions: []dnsmessage.Question{{Name: name("YeS.tEsT."), Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}},
		Additionals: []dnsmessage.Resource{{Header: header("x.", dnsmessage.TypeTXT, 1),
			Body: &dnsmessage.TXTResource{TXT: []string{"data"}}}}}
	b, err := q.Pack()
	if err != nil {
		t.Fatal(err)
	}
	var got, said dnsmessage.Message
	if err := got.Unpack(r.answer(t.Context(), b, who{})); err != nil || len(got.Answers) != 1 ||
		got.Questions[0] != q.Questions[0] {
		t.Errorf("answered %+v, %v", got, err)
	}
	if err := said.Unpack(<-heard); err != nil || said.Questions[0].Name.String() != "yes.test." ||
		len(said.Additionals) > 0 || said.AuthenticData {
		t.Errorf("the server was asked %+v, %v", said, err)
	}
}

// judged is a resolver without a network: every question is counted and judged allow or not by its name.
func judged(asked *atomic.Int32, hold <-chan struct{}) *resolver {
	r := newResolver()
	r.up = &nameserver.Servers{}
	r.judge = func(ctx context.Context, h peer.Host, _ who) judgement {
		asked.Add(1)
		if hold != nil {
			<-hold
		}
		return judgement{allow: h.Name == "yes.test"}
	}
	r.admit = func([]netip.Addr, judgement, time.Duration) error { return nil }
	r.closed = func(netip.Addr) bool { return false }
	r.denied = func(peer.Host) bool { return false }
	r.note = func(Event) {}
	r.by = func(who) Program { return Program{} }
	return r
}

func question(t *testing.T, n string, typ dnsmessage.Type, class dnsmessage.Class) []byte {
	t.Helper()
	b, err := (&dnsmessage.Message{Header: dnsmessage.Header{ID: 7, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: name(n), Type: typ, Class: class}}}).Pack()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestWhatIsNotAllowedIsNotLookedUp(t *testing.T) {
	var asked atomic.Int32
	r := judged(&asked, nil)
	for _, c := range []struct {
		name  string
		typ   dnsmessage.Type
		class dnsmessage.Class
		code  dnsmessage.RCode
	}{
		{"no.test.", dnsmessage.TypeA, dnsmessage.ClassINET, dnsmessage.RCodeNameError},
		{"no.test.", dnsmessage.TypeTXT, dnsmessage.ClassINET, dnsmessage.RCodeNameError},
		{"yes.test.", dnsmessage.TypeA, dnsmessage.ClassCHAOS, dnsmessage.RCodeNameError},
		{"yes.test.", dnsmessage.TypeALL, dnsmessage.ClassINET, dnsmessage.RCodeNotImplemented},
		{"yes.test.", dnsmessage.TypeAXFR, dnsmessage.ClassINET, dnsmessage.RCodeNotImplemented},
		{"yes.test.", typeHTTPS, dnsmessage.ClassINET, dnsmessage.RCodeSuccess},
		{"yes.test.", dnsmessage.TypeA, dnsmessage.ClassINET, dnsmessage.RCodeNameError}, // nobody upstream
		{"a@b.test.", dnsmessage.TypeA, dnsmessage.ClassINET, dnsmessage.RCodeNameError},
		{"localhost.", dnsmessage.TypeA, dnsmessage.ClassINET, dnsmessage.RCodeSuccess},
		{"127.0.0.1.", dnsmessage.TypeA, dnsmessage.ClassINET, dnsmessage.RCodeNameError},
	} {
		var m dnsmessage.Message
		if err := m.Unpack(r.answer(context.Background(), question(t, c.name, c.typ, c.class), who{})); err != nil ||
			m.RCode != c.code || m.ID != 7 || !m.Response {
			t.Errorf("%s %v: %+v, %v", c.name, c.typ, m, err)
		}
	}
	if b := r.answer(context.Background(), []byte("short"), who{}); b != nil {
		t.Errorf("a message that is none is answered: %x", b)
	}
}

// TestLongestName: what can be asked can be asked on.
func TestLongestName(t *testing.T) {
	r := judged(new(atomic.Int32), nil)
	r.judge = func(context.Context, peer.Host, who) judgement { return judgement{allow: true} }
	long := strings.Repeat(strings.Repeat("a", 63)+".", 3) + strings.Repeat("a", 61) + "." // 255 bytes in a message
	for n, want := range map[string]int{long: 1, "_dmarc.Xn--a.test.": 1, "a b.test.": 0, "ä.test.": 0} {
		r.sent = map[string]bool{}
		if b := r.answer(t.Context(), question(t, n, dnsmessage.TypeA, dnsmessage.ClassINET), who{}); b == nil ||
			len(r.sent) != want {
			t.Errorf("%s: answered with %x, sent on: %v", n, b, r.sent)
		}
	}
}

// Where no server can be reached a name that is allowed does not exist: musl waits half a minute after a failure of the
// server, which is for one that may answer the next time.
func TestNobodyToLookUp(t *testing.T) {
	silent, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	shut, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	refusing := shut.LocalAddr().(*net.UDPAddr).AddrPort()
	shut.Close()
	for _, c := range []struct {
		name    string
		servers []netip.AddrPort
		code    dnsmessage.RCode
	}{
		{"no servers", nil, dnsmessage.RCodeNameError},
		{"a server that is not there", []netip.AddrPort{refusing}, dnsmessage.RCodeNameError},
		{"a server that is silent", []netip.AddrPort{silent.LocalAddr().(*net.UDPAddr).AddrPort()},
			dnsmessage.RCodeServerFailure},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := judged(new(atomic.Int32), nil)
			r.up = &nameserver.Servers{List: c.servers, Timeout: 50 * time.Millisecond}
			var m dnsmessage.Message
			asked := question(t, "yes.test.", dnsmessage.TypeA, dnsmessage.ClassINET)
			if err := m.Unpack(r.answer(context.Background(), asked, who{})); err != nil || m.RCode != c.code {
				t.Errorf("%v, %v, want %v", m.RCode, err, c.code)
			}
		})
	}
}

func TestManyNewNamesBelowAWildcard(t *testing.T) {
	r := newResolver()
	n := 0
	for range 1000 {
		if r.spend("*.wild.test") {
			n++
		}
	}
	if n < bucketSize || n > 3*bucketSize {
		t.Errorf("%d of 1000 names at once", n)
	}
	if !r.spend("*.other.test") {
		t.Error("another zone is limited too")
	}
}

func TestParsePublish(t *testing.T) {
	for s, want := range map[string]string{"8080:80": "127.0.0.1:8080 80", "80": "127.0.0.1:80 80",
		"0.0.0.0:1:2": "0.0.0.0:1 2", "[::1]:1:2": "[::1]:1 2", "::1:1:2": "[::1]:1 2"} {
		p, err := ParsePublish(s)
		if err != nil || p.Host.String()+" "+itoa(p.Port) != want {
			t.Errorf("%s: %v %d, %v", s, p.Host, p.Port, err)
		}
	}
	for _, s := range []string{"", "a", "1:b", "0:1", "70000:1", "x:1:2"} {
		if p, err := ParsePublish(s); err == nil {
			t.Errorf("%s is read as %+v", s, p)
		}
	}
}

func itoa(n uint16) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + string(rune('0'+n%10))
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte("\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x03yes\x04test\x00\x00\x01\x00\x01"))
	var asked atomic.Int32
	r := judged(&asked, nil)
	f.Fuzz(func(t *testing.T, b []byte) {
		out := r.answer(context.Background(), b, who{})
		var m dnsmessage.Message
		if out != nil && (m.Unpack(out) != nil || len(m.Answers) > 1) {
			t.Fatalf("%x is answered with %x", b, out)
		}
		if g, err := readAnswer(b, dnsmessage.Question{Name: name("yes.test."), Type: dnsmessage.TypeA,
			Class: dnsmessage.ClassINET}, func(ip netip.Addr) bool { return ip.IsLoopback() }); err == nil {
			for _, ip := range g.addrs {
				if ip.IsLoopback() {
					t.Fatal("a closed address came through")
				}
			}
		}
		_, _ = parseFlow(b)
	})
}
