package peer

import (
	"strings"
	"testing"
)

// TestHostTable is NT-15.
func TestHostTable(t *testing.T) {
	p, err := ParsePattern("example.com")
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{"example.com.evil.test", "notexample.com", "example.com@evil.test",
		"example.com%2eevil.test", "example.comx", "xexample.com",
		"example.com:443@evil.test", "example.com/../evil", "exa mple.com", "\u0435xample.com", "xn--xample-2of.com",
		".example.com", "example..com", "example.com..",
		"sub.example.com", "", ".", "com", "1.2.3.4"} {
		if h, err := Parse(s); err == nil && p.Match(h, 443, false) {
			t.Errorf("example.com must not match %q", s)
		}
	}
	for _, s := range []string{"EXAMPLE.COM", "example.com.", "Example.Com."} {
		if h, err := Parse(s); err != nil || !p.Match(h, 443, false) {
			t.Errorf("example.com must match %q: %v", s, err)
		}
	}
}

func TestHostPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, host string
		port          int
		want          bool
	}{
		{"*.example.com", "a.example.com", 443, true}, {"*.example.com", "a.b.example.com", 80, true}, {"*.example.com",
			"example.com", 443, false},
		{"*.example.com", "notexample.com", 443, false}, {"*.example.com", "example.com.evil.test", 443, false},
		{"example.com", "example.com", 22, false}, {"example.com:22", "example.com", 22, true}, {"example.com:22",
			"example.com", 443, false},
		{"example.com:*", "example.com", 53, true}, {"example.com:8000-8100", "example.com", 8050, true},
		{"example.com:8000-8100", "example.com", 8101, false},
		{"10.0.0.0/8", "10.1.2.3", 443, true}, {"10.0.0.0/8", "11.1.2.3", 443, false}, {"10.0.0.0/8:*", "10.1.2.3", 22, true},
		{"10.0.0.0/8", "::ffff:10.1.2.3", 443, true}, {"127.0.0.1", "[::ffff:127.0.0.1]", 443, true}, {"10.0.0.0/8",
			"10.example.com", 443, false},
		{"[::1]:80", "::1", 80, true}, {"2001:db8::/32", "2001:db8::5", 443, true}, {"*", "x.y", 443, true}, {"*", "x.y", 25,
			false}, {"*:*", "x.y", 25, true},
		{"example.com/icmp", "example.com", 443, false}, {"10.0.0.0/8/icmp", "10.1.1.1", 80, false},
		{"example.com:443,tls=sni", "example.com", 443, true}, {"*.example.com,tls=sni", "a.example.com", 80, true},
		{"localhost", "LOCALHOST", 80, true}, {"example.com:443/udp", "example.com", 443, false}, {"example.com:443/tcp",
			"example.com", 443, true}, {"10.0.0.0/8/tcp", "10.1.1.1", 443, true}, {"10.0.0.0/8:53/udp", "10.1.1.1", 53, false},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Errorf("%s: %v", c.pattern, err)
			continue
		}
		h, err := Parse(c.host)
		if err != nil {
			t.Errorf("%s: %v", c.host, err)
			continue
		}
		if got := p.Match(h, c.port, false); got != c.want {
			t.Errorf("%s on %s:%d: %v", c.pattern, c.host, c.port, got)
		}
		if q, err := ParsePattern(p.String()); err != nil || q != p {
			t.Errorf("%s is written as %s: %v", c.pattern, p, err)
		}
	}
	for s, why := range map[string]string{
		"": "1 to 253", "a b": "not allowed", "ex\u0430mple.com": "xn--", "*example.com": "whole label",
		"a.*.com": "not allowed", "http://x": "its host alone", "x:0": "port",
		"x:99999": "port", "x:080": "port", "x:5-4": "port", "-a.com": "not allowed", "a-.com": "not allowed",
		"a..b": "not allowed", "0x7f.1": "number", "127.1": "number", "1.2.3": "number",
		"0177.0.0.1": "number", "2130706433": "number", "10.0.0.1/8": "did you mean 10.0.0.0/8", "fe80::1%eth0": "zone",
		strings.Repeat("a", 64): "63", "*.": "1 to 253", "a/b": "",
		"::ffff:1.2.3.0/120": "IPv4", "1.2.3.4,tls=sni": "needs a name", "10.0.0.0/8,tls=sni": "needs a name",
		"*,tls=sni": "needs a name", "x:443/udp,tls=sni": "about TCP",
		"x:80/icmp": "no ports", "x:80/sctp": "a protocol is", "https://x/": "its host alone", "x:80/tcp/udp": "",
		"x:80/udp/tcp": "", "x/icmp,tls=sni": "about TCP", "x/udp/icmp": "", "x,tls=SNI": "not allowed",
		"x,tls=sni:443": "not allowed",
	} {
		if p, err := ParsePattern(s); err == nil || !strings.Contains(err.Error(), why) {
			t.Errorf("%.40q: %v %v, want %q", s, p, err, why)
		}
	}
}

func TestHostOrderAndCover(t *testing.T) {
	parse := func(s string) Pattern {
		p, err := ParsePattern(s)
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	order := []string{"a.example.com:443", "a.example.com:1-500", "a.example.com", "*.a.example.com", "*.example.com",
		"10.1.0.0/16", "10.0.0.0/8", "*:80", "*"}
	for i := range order[:len(order)-1] {
		if parse(order[i]).Compare(parse(order[i+1])) <= 0 {
			t.Errorf("%s must be more specific than %s", order[i], order[i+1])
		}
	}
	for _, c := range []struct {
		a, b string
		want bool
	}{
		{"*.example.com", "a.example.com", true}, {"*.example.com", "*.a.example.com", true}, {"*.example.com",
			"example.com", false}, {"*", "*.a.b", true},
		{"a.b", "*.a.b", false}, {"a.b:*", "a.b", true}, {"a.b", "a.b:*", false}, {"a.b", "a.b:443", true}, {"a.b", "a.b:22",
			false}, {"a.b:443", "a.b", false},
		{"10.0.0.0/8", "10.2.0.0/16", true}, {"10.2.0.0/16", "10.0.0.0/8", false}, {"10.0.0.0/8", "10.1.1.1", true},
		{"*.example.com", "*", false}, {"a.b", "a.b", true},
		{"a.b:443", "a.b:443/udp", false}, {"a.b:443/udp", "a.b:443", false}, {"*:*/udp", "10.0.0.1:53/udp", false},
		{"*", "169.254.169.254", false}, {"*:*", "10.0.0.0/8", false}, {"*", "[::1]:80", false},
		{"a.b", "a.b/icmp", false}, {"*/icmp", "a.b/icmp", true}, {"a.b", "a.b:443,tls=sni", true}, {"a.b:443,tls=sni",
			"a.b:443", false}, {"a.b,tls=sni", "a.b,tls=sni", true},
	} {
		if got := parse(c.a).Covers(parse(c.b)); got != c.want {
			t.Errorf("%s covers %s: %v", c.a, c.b, got)
		}
	}
	if p := parse("*"); !p.Includes(parse("10.0.0.0/8")) || parse("*.a.b").Includes(parse("10.0.0.0/8")) {
		t.Error("a refusal of everybody is about addresses, too, and one of names is not")
	}
}

func FuzzHostPattern(f *testing.F) {
	for _, s := range []string{"*.example.com:443", "[::1]:80", "10.0.0.0/8", "*:*", "a.b:1-2", "2001:db8::/32",
		"a.b:443,tls=sni"} {
		f.Add(s, "a.example.com")
	}
	f.Fuzz(func(t *testing.T, text, host string) {
		h, herr := Parse(host)
		if herr == nil {
			if again, err := Parse(h.String()); err != nil || again != h {
				t.Fatalf("host %q is written as %q: %v", host, h, err)
			}
		}
		p, err := ParsePattern(text)
		if err != nil {
			return
		}
		if q, err := ParsePattern(p.String()); err != nil || q != p {
			t.Fatalf("%q is written as %q: %v", text, p, err)
		}
		if !p.Covers(p) || p.Compare(p) != 0 {
			t.Fatalf("%q does not cover itself", text)
		}
		if herr == nil && p.Match(h, 443, false) && !p.Match(h, 443, true) {
			t.Fatalf("%q: an allow covers more than a deny", text)
		}
	})
}
